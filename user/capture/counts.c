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

/* Thread and generation in one number, so that a thread's lowest generation sorts first. */
static uint64_t origin(const struct sample *sample)
{
	return (uint64_t)sample_id_tid(sample->id) * SAMPLE_GENERATIONS +
	       sample_id_generation(sample->id);
}

static int ascending(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static int same_thread(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left / SAMPLE_GENERATIONS;
	uint64_t b = *(const uint64_t *)right / SAMPLE_GENERATIONS;

	return a < b ? -1 : a > b;
}

/* The lowest origin of each thread, sorted. */
static uint64_t *list_origins(const struct counts *counts, size_t *count)
{
	uint64_t *origins = calloc(counts->count ?: 1, sizeof(*origins));
	size_t kept = 0;

	if (!origins)
		return NULL;
	for (size_t i = 0; i < counts->count; i++)
		origins[i] = origin(&counts->samples[i]);
	qsort(origins, counts->count, sizeof(*origins), ascending);
	for (size_t i = 0; i < counts->count; i++)
		if (!kept || same_thread(&origins[i], &origins[kept - 1]) != 0)
			origins[kept++] = origins[i];
	*count = kept;
	return origins;
}

int counts_drop_doubles(struct counts *counts, uint64_t *dropped)
{
	size_t count;
	uint64_t *origins = list_origins(counts, &count);

	*dropped = 0;
	if (!origins)
		return -ENOMEM;
	for (size_t i = 0; i < counts->count; i++) {
		struct sample *sample = &counts->samples[i];
		uint64_t key = origin(sample);
		const uint64_t *lowest = bsearch(&key, origins, count, sizeof(key), same_thread);

		if (*lowest == key)
			continue;
		*dropped += sample->count;
		sample->count = 0;
	}
	free(origins);
	return 0;
}

bool counts_has_double(const struct counts *counts, unsigned int tid, unsigned int generation)
{
	for (size_t i = 0; i < counts->count; i++) {
		const struct sample *sample = &counts->samples[i];

		if (!sample->count && sample_id_tid(sample->id) == tid &&
		    sample_id_generation(sample->id) == generation)
			return true;
	}
	return false;
}

void counts_free(struct counts *counts)
{
	free(counts->samples);
	index_free(&counts->index);
	*counts = (struct counts){ 0 };
}
