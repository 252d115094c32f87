// SPDX-License-Identifier: GPL-2.0-only
#include "profile/service.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "profile/image_name.h"
#include "util/array.h"
#include "util/order.h"

#define UNIT_SERVICE ".service"
#define UNIT_USER    "user@" /* a user's own systemd: what runs in it is a session */

#define CONTAINER_ID_DIGITS 64

/* The service of a sample; the name has `size` bytes. */
struct key {
	const char *name;
	size_t size;
	const char *container;
};

static struct key service_key(const struct profile *p, const struct profile_sample *s)
{
	const struct profile_labels *labels = &p->labels[s->labels];
	const char *unit = profile_tag_text(labels, TAG_UNIT);
	struct key key = { .container = profile_tag_text(labels, TAG_CONTAINER) };
	bool in_kernel = labels->kernel;

	if (!key.container && unit) {
		size_t length = strlen(unit), suffix = strlen(UNIT_SERVICE);

		if (length > suffix && strcmp(unit + length - suffix, UNIT_SERVICE) == 0 &&
		    strncmp(unit, UNIT_USER, strlen(UNIT_USER)) != 0) {
			key.name = unit;
			key.size = length - suffix;
			return key;
		}
	}
	/* A thread of the kernel is in no unit, and has a root in the kernel. */
	if (s->depth) {
		uint32_t root = p->frames[s->first_frame + s->depth - 1];
		uint32_t mapping = p->locations[root].mapping;

		in_kernel = mapping != PROFILE_NONE &&
			    image_is_in_kernel(p->images[p->mappings[mapping].image].path);
	}
	key.name = labels->comm;
	if (!key.container && !unit && in_kernel)
		key.name = SERVICE_KERNEL;
	else if (!*key.name)
		key.name = SERVICE_OTHER;
	key.size = strlen(key.name);
	return key;
}

EQUAL(key_equal, struct service, struct key,
      SAME(container) && strlen(a->name) == b->size && memcmp(a->name, b->name, b->size) == 0)

/* Returns the number of the service, which is added if it is new; INDEX_NONE: out of memory. */
static uint32_t find_service(struct services *s, const struct key *key)
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

ORDER(compare_totals, struct service *const,
      COMPARE((*b)->total, (*a)->total) ?: strcmp((*a)->name, (*b)->name))

/*
 * Orders the services, and merges all that exceed SERVICES_MAX into the last one. numbers: set to
 * the new number of each. Returns 0 or -ENOMEM.
 */
static int order_services(struct services *s, uint32_t *numbers)
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
	if (s->count > kept &&
	    (items[kept - 1].container || strcmp(items[kept - 1].name, SERVICE_OTHER) != 0)) {
		free(items[kept - 1].name);
		items[kept - 1].name = strdup(SERVICE_OTHER);
	}
	free(sorted);
	free(s->items);
	s->items = items;
	s->count = s->room = kept;
	return items[kept - 1].name ? 0 : -ENOMEM;
}

int services_find(const struct profile *p, size_t value, struct services *s, struct error *e)
{
	uint32_t *numbers;
	int err;

	s->of_sample = calloc(p->sample_count + 1, sizeof(*s->of_sample));
	if (!s->of_sample)
		return error_no_memory(e);
	for (size_t i = 0; i < p->sample_count; i++) {
		struct key key = service_key(p, &p->samples[i]);
		int64_t counted = p->values[i * p->value_type_count + value];

		s->of_sample[i] = find_service(s, &key);
		if (s->of_sample[i] == INDEX_NONE)
			return error_no_memory(e);
		s->items[s->of_sample[i]].total += MAX(counted, 0);
	}
	if (!s->count)
		return 0;
	numbers = calloc(s->count, sizeof(*numbers));
	err = numbers ? order_services(s, numbers) : -ENOMEM;
	for (size_t i = 0; i < p->sample_count && !err; i++)
		s->of_sample[i] = numbers[s->of_sample[i]];
	free(numbers);
	return err ? error_no_memory(e) : 0;
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
