/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_INDEX_H
#define PROFIL_UTIL_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/array.h"

#define INDEX_NONE UINT32_MAX

/*
 * A hash index of the elements of an array, which the caller owns: finds the number of the element
 * that equals a key. Zero-initialised: empty. Not thread-safe.
 */
struct index {
	struct index_slot *slots;
	size_t mask; /* slots - 1 */
	size_t used;
};

/* Whether element `id` of `array` equals `key`. */
typedef bool index_equal(const void *array, uint32_t id, const void *key);

/*
 * Such a function, static: a is the element, of an array of `type`, b is the key. equal is an
 * expression of both, in which SAME() stands for a member of this name that is the same in both.
 */
#define EQUAL(name, type, key_type, equal)                                                  \
	static bool name(const void *index_array, uint32_t index_id, const void *index_key) \
	{                                                                                   \
		const type *a = (const type *)index_array + index_id;                       \
		const key_type *b = index_key;                                              \
                                                                                            \
		return equal;                                                               \
	}
#define SAME(member) (a->member == b->member)

/* The number of the element with this hash that equals key, or INDEX_NONE. */
uint32_t index_find(const struct index *index, uint64_t hash, index_equal *equal, const void *array,
		    const void *key);

/* Adds element `id`, which must not be in the index yet. Returns 0 or -ENOMEM. */
int index_add(struct index *index, uint64_t hash, uint32_t id);

/* array_add() of an element with this hash, which is not in the index. Returns 0 or -ENOMEM. */
#define array_add_indexed(array, count, room, index, hash, ...) \
	(array_reserve(&(array), &(room), (count) + 1, sizeof(*(array))) \
		 ? -ENOMEM                                               \
		 : index_add((index), (hash), (count))                   \
			   ?: ((array)[(count)++] = (__VA_ARGS__), 0))

/*
 * Removes element `id`, added with this hash, if it is in the index. One that is added next needs
 * no memory.
 */
void index_remove(struct index *index, uint64_t hash, uint32_t id);

void index_free(struct index *index);

/*
 * 64-bit hashes. seed: 0, or the hash of what comes before. Different in each process: an attacker
 * who writes the keys cannot make them collide.
 */
uint64_t hash_bytes(const void *bytes, size_t size, uint64_t seed);
uint64_t hash_u64(uint64_t value, uint64_t seed);

#endif
