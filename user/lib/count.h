/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Counts that the kernel may be adding to. */
#ifndef PROFIL_LIB_COUNT_H
#define PROFIL_LIB_COUNT_H

#include <stdint.h>

/* Aligned so that 32-bit programs can change them by one instruction, too. */
typedef uint64_t kernel_count __attribute__((aligned(8)));

static inline uint64_t count_load(const void *count)
{
	return __atomic_load_n((const kernel_count *)count, __ATOMIC_RELAXED);
}

/* Returns the count and sets it to 0. */
static inline uint64_t count_take(void *count)
{
	return __atomic_exchange_n((kernel_count *)count, 0, __ATOMIC_SEQ_CST);
}

#endif
