// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bound: size. */
#define SLOTS_KEPT 4096

struct index_slot {
	uint32_t hash;
	uint32_t id; /* + 1; 0 is an empty slot */
};

/* The stored half also chooses the slot, so that the table grows without the elements. */
static uint32_t stored_hash(uint64_t hash)
{
	return hash >> 32;
}

uint32_t index_find(const struct index *index, uint64_t hash, index_equal *equal, const void *array,
		    const void *key)
{
	if (!index->slots)
		return INDEX_NONE;
	for (size_t i = stored_hash(hash) & index->mask;; i = (i + 1) & index->mask) {
		const struct index_slot *slot = &index->slots[i];

		if (!slot->id)
			return INDEX_NONE;
		if (slot->hash == stored_hash(hash) && equal(array, slot->id - 1, key))
			return slot->id - 1;
	}
}

static void index_place(struct index_slot *slots, size_t mask, struct index_slot entry)
{
	size_t i = entry.hash & mask;

	while (slots[i].id)
		i = (i + 1) & mask;
	slots[i] = entry;
}

static int index_resize(struct index *index, size_t count)
{
	struct index_slot *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; index->slots && i <= index->mask; i++)
		if (index->slots[i].id)
			index_place(slots, count - 1, index->slots[i]);
	free(index->slots);
	index->slots = slots;
	index->mask = count - 1;
	return 0;
}

int index_add(struct index *index, uint64_t hash, uint32_t id)
{
	if (!index->slots || index->used * 4 >= (index->mask + 1) * 3) {
		int err = index_resize(index, index->slots ? (index->mask + 1) * 2 : 64);

		if (err)
			return err;
	}
	index_place(index->slots, index->mask,
		    (struct index_slot){ .hash = stored_hash(hash), .id = id + 1 });
	index->used++;
	return 0;
}

void index_remove(struct index *index, uint64_t hash, uint32_t id)
{
	size_t mask = index->mask, i = stored_hash(hash) & mask, hole;
	struct index_slot *slots = index->slots;

	if (!slots)
		return;
	for (; slots[i].id != id + 1; i = (i + 1) & mask)
		if (!slots[i].id)
			return;
	/* What follows it is moved nearer to where its search begins: no search passes a hole. */
	hole = i;
	for (i = (i + 1) & mask; slots[i].id; i = (i + 1) & mask)
		if (((i - slots[i].hash) & mask) >= ((i - hole) & mask)) {
			slots[hole] = slots[i];
			hole = i;
		}
	slots[hole] = (struct index_slot){ 0 };
	index->used--;
	/* It stays larger than one that is added next needs; without memory it stays as it is. */
	if (index->used * 16 < mask + 1 && mask + 1 > SLOTS_KEPT)
		index_resize(index, (mask + 1) / 4);
}

void index_free(struct index *index)
{
	free(index->slots);
	*index = (struct index){ 0 };
}

/*
 * Multiplies, then folds the halves: each input bit reaches the upper half, which the index uses.
 * The secret of the process is where this function was loaded.
 */
uint64_t hash_u64(uint64_t value, uint64_t seed)
{
	uint64_t h = (seed ^ (uintptr_t)hash_u64) * 0xd6e8feb86659fd93ULL;

	/* Mixes the seed first: a value and a seed that grow in step would cancel out. */
	h ^= h >> 32;
	h = (value ^ h) * 0x9e3779b97f4a7c15ULL;
	h ^= h >> 32;
	return h * 0xd6e8feb86659fd93ULL;
}

uint64_t hash_bytes(const void *bytes, size_t size, uint64_t seed)
{
	const unsigned char *p = bytes;
	uint64_t h = hash_u64(size, seed);
	uint64_t word;

	for (; size >= sizeof(word); p += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = hash_u64(word, h);
	}
	word = 0;
	if (size)
		memcpy(&word, p, size);
	return hash_u64(word, h);
}
