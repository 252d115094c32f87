/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of the module share. */
#ifndef PROFIL_KMOD_COUNTED_MEMORY_H
#define PROFIL_KMOD_COUNTED_MEMORY_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "kmod/compat.h"
#include "kmod/device.h"

/* --- What is to be counted: region_table.c --- */

/* Does not change once it is made. A process and its forked children have the same. */
struct table {
	struct kref users;
	struct rcu_head rcu;
	struct rb_node rate; /* among all that the clock ticks for */
	u64 since;	     /* when it began to, in ns; no time before is counted */
	u32 hz, period;	     /* in ns */
	bool wide;
	u32 count; /* at least 1 */
	struct profil_device_region regions[];
};

/* Copies a request from user space and checks it. The caller has a reference; or an ERR_PTR. */
struct table *table_read(const struct profil_device_set *set);
struct table *table_get(struct table *table);
void table_put(struct table *table);

/* The address of the cell that counts pc; NO_CELL, which no cell can have, when none does. */
unsigned long table_cell(const struct table *table, u64 pc);
#define NO_CELL ULONG_MAX

/* Whether a buffer has a byte from start on, before end. */
bool table_overlaps(const struct table *table, unsigned long start, unsigned long end);

/* Where all buffers are, one byte at least. */
void table_span(const struct table *table, unsigned long *start, unsigned long *length);

/* --- Processes that are counted: counted_memory.c --- */

/* Every tick is in one of the first three, but for late ones. */
struct counts {
	u64 counted, out_of_range, lost, kernel;
};

/*
 * Memory that is counted for, which is a process or several that share it. It is replaced as a
 * whole by the next request, and never turned on again.
 */
struct process {
	struct kref refs;
	struct hlist_node node; /* in the table of all; unhashed when it is off */
	struct mmu_interval_notifier notifier;
	struct work_struct end;
	unsigned long ended; /* bit 0: somebody sees to its end */
	struct rcu_head rcu;

	/* What a tick needs is in one cache line. What follows mm and table belongs to the lock. */
	raw_spinlock_t lock ____cacheline_aligned;
	struct mm_struct *mm; /* the notifier keeps it from being freed */
	struct table *table;
	bool on;
	struct counts counts;
	struct hlist_head late; /* ticks: cell_write.c */
};

/*
 * Counts for the memory of the current process from now on, instead of what was on. Takes over the
 * reference to the table, which the clock has. Returns 0 or a negative errno.
 */
int process_start(struct table *table);

/* The process of some memory that is on, with a reference; NULL when none is. */
struct process *process_find(const struct mm_struct *mm);
void process_put(struct process *process);

/* The same in an RCU read-side section, without a reference. It may be off by now. */
struct process *process_lookup(const struct mm_struct *mm);

/* No count changes any more. */
void process_stop(struct process *process);

/* The same, from any context. */
void process_switch_off(struct process *process);

int processes_init(void);
void processes_exit(void);

/* --- The clock: clock.c --- */

/* From now on it ticks at the table's rate, until the table is freed, which removes it. */
void clock_add(struct table *table);
void clock_remove(struct table *table);

/* How many points of that period there are up to some time. */
u64 clock_points(u64 time, u32 period);

int clock_init(void);
void clock_exit(void);

/* --- Ticks: cell_write.c --- */

/*
 * In the interrupt: counts for whom it hits. The CPU's time is ahead by `phase`; it is `now`, and
 * was `before` when the CPU ticked last.
 */
void tick(u64 before, u64 now, u64 phase);

/* --- Forked children: forks.c --- */

int forks_init(void);
void forks_exit(void);

#endif
