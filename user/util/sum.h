/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_SUM_H
#define PROFIL_UTIL_SUM_H

#include <stdint.h>

/* Counts come from untrusted files: sums saturate. */

static inline void add_u64(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

static inline void add_i64(int64_t *sum, int64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = value < 0 ? INT64_MIN : INT64_MAX;
}

static inline int64_t saturate_i64(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

/* Of INT64_MIN, too. */
static inline uint64_t magnitude(int64_t value)
{
	return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

#ifdef __SIZEOF_INT128__ /* the library for 32-bit programs needs none */
/* A sum of magnitudes: what percentages are of. It is exact, for so many values fit no memory. */
typedef unsigned __int128 magnitude_sum;

/* For output; saturates. */
static inline uint64_t magnitude_u64(magnitude_sum sum)
{
	return sum > UINT64_MAX ? UINT64_MAX : (uint64_t)sum;
}
#endif

/* For qsort() and bsearch() */
static inline int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

#endif
