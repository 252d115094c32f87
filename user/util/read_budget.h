/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_READ_BUDGET_H
#define PROFIL_UTIL_READ_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What reading untrusted files may cost, of a thread that records meanwhile: any user can make a
 * file of which a gigabyte is to be read. All functions accept NULL: no limit.
 */
struct read_budget {
	uint64_t bytes;	   /* that may still be read */
	uint64_t until_ns; /* CPU time of this thread, on CLOCK_THREAD_CPUTIME_ID */
	size_t memory;	   /* how large a part of a file may be in memory at once */
	bool exceeded;	   /* what was read is incomplete */
};

/* Takes `bytes` that are to be read; 0: checks the time alone. False: the budget is exceeded. */
bool read_budget_take(struct read_budget *budget, uint64_t bytes);

/* Whether a part of a file, of this size, may be in memory. If not, the budget is exceeded. */
bool read_budget_has_memory(struct read_budget *budget, uint64_t size);

#endif
