/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The address spaces (struct mm_struct) that are profiled, from the request to the end of the last
 * tick: one for each process, or for several that share their memory.
 */
#ifndef PROFIL_KMOD_PROFILED_MM_H
#define PROFIL_KMOD_PROFILED_MM_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "kmod/compat.h"
#include "kmod/region_table.h"
#include "kmod/users.h"

/*
 * Deferred ticks of one address space, and how they are hashed: count_tick.c.
 * Bound: caller: threads of a process whose cells were paged out at their tick; then: further ticks
 * are lost; again: when the threads go on; share: the process's own; seen: lost of the device's
 * totals.
 */
#define DEFERRED_MAX  256
#define DEFERRED_BITS 4

/* Each tick is in one of the first three, but for deferred ticks: count_tick.c. */
struct counts {
	u64 counted, out_of_range, lost;
	u64 kernel; /* of the counted ticks */
};

/* One request for one address space. The next request replaces it; it is never turned on again. */
struct profiled_mm {
	struct kref refs;
	struct hlist_node node; /* in the hash table; unhashed when it is off */
	struct mmu_interval_notifier notifier;
	struct work_struct end_work;
	struct user_count *user;   /* whose processes it is one of */
	unsigned long end_claimed; /* bit 0: somebody removes the notifier */
	struct rcu_head rcu;

	/* What a tick needs is in one cache line. The lock guards what follows mm and table. */
	raw_spinlock_t lock ____cacheline_aligned;
	struct mm_struct *mm; /* the notifier keeps it from being freed */
	struct region_table *table;
	bool on;
	struct counts counts;
	u32 deferred_count;
	struct hlist_head deferred[1 << DEFERRED_BITS];
};

/*
 * Profiles the current process by the table from now on, instead of what was on. Takes over the
 * reference to the table, even if it fails. Returns 0 or a negative errno (-EDQUOT: its user has as
 * many profiled processes as may be). Sleeps.
 */
int profiled_mm_start(struct region_table *table);

/* Returns what is on for an address space, with a reference, or NULL if nothing is. */
struct profiled_mm *profiled_mm_find(const struct mm_struct *mm);
void profiled_mm_put(struct profiled_mm *profiled);

/* The same without a reference, in an RCU read-side section. It may be off by now. */
struct profiled_mm *profiled_mm_lookup(const struct mm_struct *mm);

/* When it returns, no count changes any more. Sleeps. */
void profiled_mm_stop(struct profiled_mm *profiled);

/* The same from any context; a work removes the notifier later. */
void profiled_mm_switch_off(struct profiled_mm *profiled);

/* Returns 0 or a negative errno. */
int profiled_mm_init(void);

/* No struct profiled_mm may be left. */
void profiled_mm_exit(void);

#endif
