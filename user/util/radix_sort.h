/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_RADIX_SORT_H
#define PROFIL_UTIL_RADIX_SORT_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

#define RADIX_DIGIT_BITS 11
#define RADIX_DIGITS	 (1U << RADIX_DIGIT_BITS)

/*
 * Sorts elements of `size` bytes by a number of each, stably: by two of them, the less important
 * one comes first. Takes linear time; of millions, qsort() would take a second. Inlined, so that
 * size and number() are known. Returns 0, or -ENOMEM and leaves the array as it was.
 */
static inline __attribute__((always_inline)) int radix_sort(void *array, size_t count, size_t size,
							    uint64_t (*number)(const void *element))
{
	uint64_t first = UINT64_MAX, last = 0;
	char *other, *from = array, *to;
	bool in_order = true;

	for (size_t i = 0; i < count; i++) {
		uint64_t key = number(from + i * size);

		in_order = in_order && key >= last;
		first = MIN(key, first);
		last = MAX(key, last);
	}
	if (in_order)
		return 0;
	other = to = array_to_fill(count, size);
	if (!other)
		return -ENOMEM;
	for (unsigned int shift = 0; shift < 64 && (last - first) >> shift;
	     shift += RADIX_DIGIT_BITS) {
		size_t places[RADIX_DIGITS] = { 0 }, sum = 0;
		char *sorted = to;

		for (size_t i = 0; i < count; i++)
			places[(number(from + i * size) - first) >> shift & (RADIX_DIGITS - 1)]++;
		for (size_t i = 0; i < RADIX_DIGITS; i++) {
			size_t here = places[i];

			places[i] = sum;
			sum += here;
		}
		for (size_t i = 0; i < count; i++) {
			uint64_t key = number(from + i * size) - first;

			memcpy(to + size * places[key >> shift & (RADIX_DIGITS - 1)]++,
			       from + i * size, size);
		}
		to = from;
		from = sorted;
	}
	if (from == other)
		memcpy(array, other, count * size);
	free(other);
	return 0;
}

#endif
