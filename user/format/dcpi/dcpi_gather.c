// SPDX-License-Identifier: GPL-2.0-only
#include "format/dcpi/dcpi_gather.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dcpi/describe.h"
#include "format/dcpi/dcpi.h"
#include "profile/image_name.h"
#include "util/array.h"

static bool group_equal(const void *array, uint32_t id, const void *key)
{
	const struct dcpi_group *a = (const struct dcpi_group *)array + id, *b = key;

	return a->image == b->image && a->value == b->value && a->addresses == b->addresses &&
	       a->window == b->window && a->label == b->label;
}

static int find_group(struct dcpi_groups *groups, const struct dcpi_group *key,
		      struct dcpi_group **group)
{
	uint64_t hash = hash_u64((uint64_t)key->image << 32 | key->value,
				 (uint64_t)key->window << 2 | key->addresses);
	uint32_t id;

	hash = hash_u64((uintptr_t)key->label, hash);
	id = index_find(&groups->index, hash, group_equal, groups->all, key);
	if (id == INDEX_NONE) {
		id = groups->count;
		if (array_reserve(&groups->all, &groups->room, groups->count + 1,
				  sizeof(*groups->all)) ||
		    index_add(&groups->index, hash, id))
			return -ENOMEM;
		groups->all[groups->count++] = *key;
	}
	*group = &groups->all[id];
	return 0;
}

/* Whose addresses the locations of this mapping have. */
static enum dcpi_addresses addresses_of(const struct profile_mapping *m,
					const struct profile_image *image)
{
	if (image_is_kernel(image->path))
		return DCPI_MEMORY;
	if (m->linked || image->text_size)
		return DCPI_OWN;
	return dcpi_is_memory(image->path) ? DCPI_MEMORY : DCPI_FILE;
}

static const char *label_of(const struct profile_labels *labels)
{
	for (uint32_t i = 0; i < labels->tag_count; i++)
		if (strcmp(labels->tags[i].key, PROFILE_DCPI_LABEL) == 0)
			return labels->tags[i].text;
	return NULL;
}

/* Where a sample is counted: the group's key, and the address in it. */
static uint64_t place_sample(const struct profile *p, const struct profile_sample *sample,
			     struct dcpi_group *key)
{
	const struct profile_location *l = NULL;
	const struct profile_mapping *m;

	*key = (struct dcpi_group){ .image = PROFILE_NONE,
				    .label = label_of(&p->labels[sample->labels]) };
	if (sample->depth)
		l = &p->locations[p->frames[sample->first_frame]];
	if (!l || l->mapping == PROFILE_NONE)
		return 0;
	m = &p->mappings[l->mapping];
	key->image = m->image;
	key->addresses = addresses_of(m, &p->images[m->image]);
	if (key->addresses == DCPI_OWN)
		return l->image_address;
	if (key->addresses == DCPI_FILE)
		return l->address - m->start + m->offset;
	key->window = l->address >> 32;
	return l->address;
}

static int add_sample(struct dcpi_groups *groups, const struct profile *p, size_t sample,
		      uint32_t value, struct error *e)
{
	int64_t count = p->values[sample * p->value_type_count + value];
	struct dcpi_group key, *group;
	uint64_t address;

	if (count == 0)
		return 0;
	address = place_sample(p, &p->samples[sample], &key);
	if (count < 0)
		return error_set(e, 0,
				 "address 0x%" PRIx64 ": a count of %" PRIi64
				 ": a DCPI file has none below 0",
				 address, count);
	key.value = value;
	if (find_group(groups, &key, &group) ||
	    array_reserve(&group->counts, &group->count_room, group->count + 1,
			  sizeof(*group->counts)))
		return error_no_memory(e);
	group->counts[group->count++] = (struct dcpi_count){ address, count };
	return 0;
}

/* Time beside counts says no more than their period does. */
static bool is_told_by_period(const struct profile *p, uint32_t value)
{
	const struct profile_value_type *t = p->value_types;

	if (strcmp(t[value].type, "cpu") != 0 || strcmp(t[value].unit, "nanoseconds") != 0)
		return false;
	for (size_t i = 0; i < p->value_type_count; i++)
		if (strcmp(t[i].unit, "count") == 0)
			return true;
	return false;
}

/* What the symbol layer, or the file that was read, says of the image's text. */
static void find_text(struct dcpi_group *g, const struct profile *p)
{
	const struct profile_image *image = &p->images[g->image];
	uint64_t start = UINT64_MAX, limit = 0;

	g->start = image->text_start;
	g->size = image->text_size;
	for (size_t i = 0; i < p->mapping_count && !image->text_size; i++) {
		const struct profile_mapping *m = &p->mappings[i];

		if (m->image != g->image || !m->linked || m->start >= m->limit)
			continue;
		start = m->start < start ? m->start : start;
		limit = m->limit > limit ? m->limit : limit;
		g->start = start;
		g->size = limit - start;
	}
}

/* Where nothing tells the text, or not all of it, the pages that have samples do. */
static void find_range(struct dcpi_group *g, const struct profile *p)
{
	if (g->image == PROFILE_NONE) {
		g->size = 1;
		return;
	}
	if (g->count)
		g->size = 0;
	if (g->addresses == DCPI_OWN)
		find_text(g, p);
	dcpi_fit_range(g->counts, g->count, &g->start, &g->size);
}

/* The label of all of a profile, when it has one alone. */
static const char *only_label(const struct profile *p)
{
	const char *label = NULL;

	for (size_t i = 0; i < p->label_count; i++) {
		const char *next = label_of(&p->labels[i]);

		if (label && next && next != label)
			return NULL;
		label = next ?: label;
	}
	return label;
}

/* The group of a file that had no samples: its header says something all the same. */
static int add_empty(struct dcpi_groups *groups, const struct profile *p, uint32_t image)
{
	struct dcpi_group *group, key = { .image = image, .value = profile_count_value(p) };
	const struct profile_mapping *m = p->mappings, *end = p->mappings + p->mapping_count;

	while (m < end && m->image != image)
		m++;
	if (m < end) {
		key.addresses = addresses_of(m, &p->images[image]);
		key.start = m->start;
		key.size = m->limit - m->start;
	}
	if (!p->sample_count)
		key.label = only_label(p);
	return find_group(groups, &key, &group);
}

/* Files come from files: where those had no samples, their images would else be lost. */
static int add_images_without_samples(struct dcpi_groups *groups, const struct profile *p)
{
	bool *seen = calloc(p->image_count + 1, sizeof(*seen));
	int err = seen ? 0 : -ENOMEM;

	for (size_t i = 0; i < groups->count && !err; i++)
		if (groups->all[i].image != PROFILE_NONE)
			seen[groups->all[i].image] = true;
	for (size_t i = 0; i < p->image_count && !err; i++)
		err = seen[i] ? 0 : add_empty(groups, p, i);
	free(seen);
	return err;
}

static int gather(const struct profile *p, struct dcpi_groups *groups, struct error *e)
{
	struct dcpi_group none = { .image = PROFILE_NONE, .value = profile_count_value(p) }, *first;
	bool from_dcpi = p->format && strcmp(p->format, DCPI_NAME) == 0;

	for (uint32_t value = 0; value < p->value_type_count; value++) {
		if (is_told_by_period(p, value))
			continue;
		for (size_t i = 0; i < p->sample_count; i++) {
			int err = add_sample(groups, p, i, value, e);

			if (err)
				return err;
		}
	}
	if (from_dcpi && add_images_without_samples(groups, p))
		return error_no_memory(e);
	return groups->count || !find_group(groups, &none, &first) ? 0 : error_no_memory(e);
}

int dcpi_gather(const struct profile *p, struct dcpi_groups *groups, struct error *e)
{
	int err = gather(p, groups, e);

	for (size_t i = 0; i < groups->count && !err; i++) {
		struct dcpi_group *g = &groups->all[i];

		g->count = dcpi_body_fold(g->counts, g->count);
		find_range(g, p);
	}
	return err;
}

void dcpi_groups_free(struct dcpi_groups *groups)
{
	for (size_t i = 0; i < groups->count; i++)
		free(groups->all[i].counts);
	free(groups->all);
	index_free(&groups->index);
}
