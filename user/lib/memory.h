/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Memory for what is made while profiling is turned on or off, also in a signal handler: by
 * mmap(2), as the code that the handler interrupted may hold the locks of malloc(3).
 */
#ifndef PROFIL_LIB_MEMORY_H
#define PROFIL_LIB_MEMORY_H

#include <stddef.h>

/*
 * Returns `size` bytes of zeros, which the caller releases by profil__memory_free(); NULL: out of
 * memory.
 */
void *profil__memory_make(size_t size);

/* NULL is allowed. */
void profil__memory_free(void *memory);

#endif
