// SPDX-License-Identifier: GPL-2.0-only
#include "format/mapping_index.h"

#include <errno.h>
#include <stdlib.h>

struct mapping_entry {
	uint64_t start;
	uint64_t limit;
	uint64_t limit_so_far; /* the highest limit of this and all entries before it */
	uint32_t mapping;
};

static int compare_start(const void *x, const void *y)
{
	const struct mapping_entry *a = x, *b = y;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	/* The first in the file is found first, and the search goes downwards. */
	return a->mapping > b->mapping ? -1 : a->mapping < b->mapping;
}

int mapping_index_init(struct mapping_index *index, const struct profile *p)
{
	uint64_t limit = 0;

	index->count = p->mapping_count;
	index->entries = calloc(index->count + 1, sizeof(*index->entries));
	if (!index->entries)
		return -ENOMEM;
	for (size_t i = 0; i < index->count; i++)
		index->entries[i] = (struct mapping_entry){ .start = p->mappings[i].start,
							    .limit = p->mappings[i].limit,
							    .mapping = i };
	qsort(index->entries, index->count, sizeof(*index->entries), compare_start);
	for (size_t i = 0; i < index->count; i++) {
		if (limit < index->entries[i].limit)
			limit = index->entries[i].limit;
		index->entries[i].limit_so_far = limit;
	}
	return 0;
}

uint32_t mapping_index_find(const struct mapping_index *index, uint64_t address)
{
	size_t low = 0, high = index->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index->entries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low && index->entries[low - 1].limit_so_far > address; low--)
		if (index->entries[low - 1].limit > address)
			return index->entries[low - 1].mapping;
	return PROFILE_NONE;
}

void mapping_index_free(struct mapping_index *index)
{
	free(index->entries);
	*index = (struct mapping_index){ 0 };
}
