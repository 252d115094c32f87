/* SPDX-License-Identifier: GPL-2.0-only */
/* A request's regions of program counters, and where their cells are. */
#ifndef PROFIL_KMOD_REGION_TABLE_H
#define PROFIL_KMOD_REGION_TABLE_H

#include <linux/kref.h>
#include <linux/limits.h>
#include <linux/rcupdate.h>

#include "kmod/device.h"
#include "kmod/rates.h"

/* Constant once it is made, but for `rate`. A process and its forked children share one. */
struct region_table {
	struct kref refs;
	struct rcu_head rcu;
	struct rate rate;
	u32 hz; /* as the request has it; the rate's period is rounded down */
	bool wide;
	u32 count;			       /* at least 1 */
	struct profil_device_region regions[]; /* in the order of their addresses */
};

/*
 * Copies a request's regions from the current process and checks the request. Returns a table with
 * a reference, whose rate is not in use yet, or an ERR_PTR().
 */
struct region_table *region_table_read(const struct profil_device_set *set);
struct region_table *region_table_get(struct region_table *table);

/* The last reference ends the use of the rate. Callable with preemption disabled. */
void region_table_put(struct region_table *table);

/* Returns the address of the cell that counts pc, or NO_CELL. */
unsigned long region_table_cell(const struct region_table *table, u64 pc);
#define NO_CELL ULONG_MAX /* no cell has this address */

/* Whether any byte of the buffers is at `start` or after, and before `end`. */
bool region_table_overlaps(const struct region_table *table, unsigned long start,
			   unsigned long end);

/* The shortest span of memory that all buffers are in, one byte at least. */
void region_table_span(const struct region_table *table, unsigned long *start,
		       unsigned long *length);

#endif
