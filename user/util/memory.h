/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_MEMORY_H
#define PROFIL_UTIL_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* The size of a mapping that holds so many bytes. */
static inline size_t whole_pages(size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

/*
 * How many bytes this process could use now without swapping: the machine's available memory, but
 * no more than the limits of the process's control groups. 0: unknown.
 */
uint64_t memory_available(void);

/* For tests: the same, reading /proc and /sys below another root directory. */
uint64_t memory_available_below(const char *root);

/* Where the memory of all, or of its control group, is short, the kernel ends this process first.
 */
void memory_offer(void);

#endif
