// SPDX-License-Identifier: GPL-2.0-only
#include "capture/counts.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"

static bool sample_equal(const void *array, uint32_t number, const void *key)
{
	const struct sample *a = (const struct sample *)array + number, *b = key;

	return a->pc == b->pc && a->id == b->id;
}

int counts_add(struct counts *counts, const struct sample *sample)
{
	uint64_t hash = hash_u64(sample->pc, sample->id);
	uint32_t number = index_find(&counts->index, hash, sample_equal, counts->samples, sample);

	if (number == INDEX_NONE) {
		if (array_reserve(&counts->samples, &counts->room, counts->count + 1,
				  sizeof(*sample)) ||
		    index_add(&counts->index, hash, counts->count))
			return -ENOMEM;
		counts->samples[counts->count++] = *sample;
		return 0;
	}
	counts->samples[number].count += sample->count;
	if (sample->first_ns < counts->samples[number].first_ns)
		counts->samples[number].first_ns = sample->first_ns;
	return 0;
}

int counts_add_table(struct counts *counts, const struct sample_bucket *table, size_t buckets)
{
	for (size_t i = 0; i < buckets; i++)
		for (size_t k = 0; k < SAMPLE_PER_BUCKET; k++) {
			const struct sample *sample = &table[i].samples[k];

			if (sample->id && counts_add(counts, sample))
				return -ENOMEM;
		}
	return 0;
}

uint64_t counts_sum(const struct counts *counts, uint64_t *kernel)
{
	uint64_t sum = 0;

	*kernel = 0;
	for (size_t i = 0; i < counts->count; i++) {
		sum += counts->samples[i].count;
		if (counts->samples[i].id & SAMPLE_ID_KERNEL)
			*kernel += counts->samples[i].count;
	}
	return sum;
}

/* The thread numbers of the samples with or without the late bit, as a sorted array. */
static int ascending(const void *left, const void *right)
{
	unsigned int a = *(const unsigned int *)left, b = *(const unsigned int *)right;

	return a < b ? -1 : a > b;
}

static unsigned int *list_threads(const struct counts *counts, size_t *count)
{
	unsigned int *tids = calloc(counts->count ?: 1, sizeof(*tids));

	*count = 0;
	if (!tids)
		return NULL;
	for (size_t i = 0; i < counts->count; i++)
		if (!(counts->samples[i].id & SAMPLE_ID_LATE))
			tids[(*count)++] = sample_id_tid(counts->samples[i].id);
	qsort(tids, *count, sizeof(*tids), ascending);
	return tids;
}

int counts_drop_doubles(struct counts *counts, uint64_t *dropped)
{
	size_t count;
	unsigned int *tids = list_threads(counts, &count);

	*dropped = 0;
	if (!tids)
		return -ENOMEM;
	for (size_t i = 0; i < counts->count; i++) {
		struct sample *sample = &counts->samples[i];
		unsigned int tid = sample_id_tid(sample->id);

		if (!(sample->id & SAMPLE_ID_LATE) ||
		    !bsearch(&tid, tids, count, sizeof(tid), ascending))
			continue;
		*dropped += sample->count;
		sample->count = 0;
	}
	free(tids);
	return 0;
}

bool counts_has_double(const struct counts *counts, unsigned int tid)
{
	for (size_t i = 0; i < counts->count; i++)
		if (!counts->samples[i].count && sample_id_tid(counts->samples[i].id) == tid)
			return true;
	return false;
}

void counts_free(struct counts *counts)
{
	free(counts->samples);
	index_free(&counts->index);
	*counts = (struct counts){ 0 };
}
