// SPDX-License-Identifier: GPL-2.0-only
#include "push/service.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "profile/image_name.h"
#include "push/request.h"
#include "util/array.h"

#define UNIT_SERVICE ".service"
#define UNIT_USER    "user@" /* a user's own systemd: what runs in it is a session */

#define CONTAINER_ID_DIGITS 64

/* Where a sample belongs; the name has `size` bytes. */
struct key {
	const char *name;
	size_t size;
	const char *container;
};

static bool is_systemd_service(const char *unit, size_t *size)
{
	size_t length = strlen(unit), suffix = strlen(UNIT_SERVICE);

	if (length <= suffix || strcmp(unit + length - suffix, UNIT_SERVICE) != 0 ||
	    strncmp(unit, UNIT_USER, strlen(UNIT_USER)) == 0)
		return false;
	*size = length - suffix;
	return true;
}

/* A thread of the kernel is in no unit, and nobody in user space has called what it runs. */
static bool is_kernel_thread(const struct profile *p, const struct profile_sample *s)
{
	const struct profile_location *root;

	if (s->depth == 0)
		return p->labels[s->labels].kernel;
	root = &p->locations[p->frames[s->first_frame + s->depth - 1]];
	return root->mapping != PROFILE_NONE &&
	       image_is_in_kernel(p->images[p->mappings[root->mapping].image].path);
}

static struct key key_of(const struct profile *p, const struct profile_sample *s)
{
	const struct profile_labels *labels = &p->labels[s->labels];
	const char *unit = request_tag(labels, TAG_UNIT);
	struct key key = { .container = request_tag(labels, TAG_CONTAINER) };

	key.name = unit;
	if (!key.container && unit && is_systemd_service(unit, &key.size))
		return key;
	key.name = labels->comm;
	if (!key.container && !unit && is_kernel_thread(p, s))
		key.name = SERVICE_KERNEL;
	else if (!*key.name)
		key.name = SERVICE_OTHER;
	key.size = strlen(key.name);
	return key;
}

static bool key_equal(const void *array, uint32_t id, const void *wanted)
{
	const struct service *service = &((const struct service *)array)[id];
	const struct key *key = wanted;

	return service->container == key->container && strlen(service->name) == key->size &&
	       memcmp(service->name, key->name, key->size) == 0;
}

/* Returns the number of the service, which is made if need be; INDEX_NONE: out of memory. */
static uint32_t find_or_add(struct services *s, const struct key *key)
{
	uint64_t seed = key->container ? hash_bytes(key->container, strlen(key->container), 0) : 0;
	uint64_t hash = hash_bytes(key->name, key->size, seed);
	uint32_t id = index_find(&s->index, hash, key_equal, s->items, key);
	struct service *service;

	if (id != INDEX_NONE)
		return id;
	if (array_reserve(&s->items, &s->room, s->count + 1, sizeof(*s->items)))
		return INDEX_NONE;
	service = &s->items[s->count];
	*service = (struct service){ strndup(key->name, key->size), key->container, 0 };
	if (!service->name)
		return INDEX_NONE;
	id = s->count++;
	return index_add(&s->index, hash, id) ? INDEX_NONE : id;
}

/* Whether it is in no container, and has a name that is not of a process, or of many. */
static bool is_other(const struct service *s)
{
	return !s->container && strcmp(s->name, SERVICE_OTHER) == 0;
}

static int compare_totals(const void *a, const void *b)
{
	const struct service *x = *(struct service *const *)a, *y = *(struct service *const *)b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return strcmp(x->name, y->name);
}

/*
 * Orders the services, and merges those that are too many into the last one. *numbers: the new
 * number of each.
 */
static int order(struct services *s, uint32_t *numbers)
{
	struct service **sorted = calloc(s->count, sizeof(*sorted));
	struct service *items = calloc(s->count, sizeof(*items));
	size_t kept = s->count <= SERVICES_MAX ? s->count : SERVICES_MAX;

	if (!sorted || !items) {
		free(sorted);
		free(items);
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->count; i++)
		sorted[i] = &s->items[i];
	qsort(sorted, s->count, sizeof(*sorted), compare_totals);
	for (size_t i = 0; i < s->count; i++) {
		size_t to = i < kept ? i : kept - 1;

		numbers[sorted[i] - s->items] = to;
		if (i < kept) {
			items[i] = *sorted[i];
			continue;
		}
		items[to].total += sorted[i]->total;
		items[to].container = NULL;
		free(sorted[i]->name);
	}
	if (s->count > kept && !is_other(&items[kept - 1])) {
		free(items[kept - 1].name);
		items[kept - 1].name = strdup(SERVICE_OTHER);
	}
	free(sorted);
	free(s->items);
	s->items = items;
	s->count = s->room = kept;
	return items[kept - 1].name ? 0 : -ENOMEM;
}

static int find(const struct profile *p, size_t value, struct services *s)
{
	uint32_t *numbers;
	int err;

	s->of_sample = calloc(p->sample_count + 1, sizeof(*s->of_sample));
	if (!s->of_sample)
		return -ENOMEM;
	for (size_t i = 0; i < p->sample_count; i++) {
		struct key key = key_of(p, &p->samples[i]);
		int64_t counted = p->values[i * p->value_type_count + value];

		s->of_sample[i] = find_or_add(s, &key);
		if (s->of_sample[i] == INDEX_NONE)
			return -ENOMEM;
		s->items[s->of_sample[i]].total += counted > 0 ? counted : 0;
	}
	if (!s->count)
		return 0;
	numbers = calloc(s->count, sizeof(*numbers));
	err = numbers ? order(s, numbers) : -ENOMEM;
	for (size_t i = 0; i < p->sample_count && !err; i++)
		s->of_sample[i] = numbers[s->of_sample[i]];
	free(numbers);
	return err;
}

int services_find(const struct profile *p, size_t value, struct services *s, struct error *e)
{
	return find(p, value, s) ? error_no_memory(e) : 0;
}

void services_free(struct services *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->items[i].name);
	free(s->items);
	free(s->of_sample);
	index_free(&s->index);
	*s = (struct services){ 0 };
}

const char *service_container_key(const char *container, const char *id, const char *name)
{
	size_t digits = strspn(container, "0123456789abcdef");

	return digits == CONTAINER_ID_DIGITS && !container[digits] ? id : name;
}
