/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of the module share. */
#ifndef PROFIL_KMOD_PROCESS_H
#define PROFIL_KMOD_PROCESS_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/spinlock.h>
#include <linux/task_work.h>
#include <linux/workqueue.h>

#include "kmod/compat.h"
#include "kmod/device.h"

/* --- What is to be counted: table.c --- */

/* Does not change once it is made. A process and its forked children have the same. */
struct table {
	struct kref users;
	struct rcu_head rcu;
	u32 hz;
	bool wide;
	u32 count; /* at least 1 */
	struct profil_device_region regions[];
};

/* Copies a request from user space and checks it. The caller has a reference; or an ERR_PTR. */
struct table *table_read(const struct profil_device_set *set);
struct table *table_get(struct table *table);
void table_put(struct table *table);

/*
 * The address of the cell that counts pc; NO_CELL, which no cell can have, when none does. *last is
 * a region, and the next one is often the same.
 */
unsigned long table_cell(const struct table *table, u64 pc,
			 const struct profil_device_region **last);
#define NO_CELL ULONG_MAX

/* Whether a buffer has a byte from start on, before end. */
bool table_overlaps(const struct table *table, unsigned long start, unsigned long end);

/* Where all buffers are, one byte at least. */
void table_span(const struct table *table, unsigned long *start, unsigned long *length);

/* --- Processes that are counted: process.c --- */

/* Whose ticks are counted. It lives as long as its process's struct. */
struct thread {
	struct hlist_node node;	  /* in the table of all */
	struct list_head sibling; /* in its process's list */
	struct process *process;
	struct task_struct *task;		 /* a reference: no other task gets its address */
	struct perf_event *event;		 /* NULL when it was let go of */
	u64 due;				 /* when the next tick is, in ns of its CPU time */
	const struct profil_device_region *last; /* that had a tick; at first, any */

	/*
	 * Ticks whose cell was not in memory: the thread adds them before it returns to user mode.
	 * Until then its user pc is the same, but for signals, so they are taken to be of one cell.
	 */
	struct callback_head late;
	unsigned long late_cell;
	u32 late_ticks, late_kernel; /* 0: `late` is not queued */
};

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

	struct mutex mutex; /* for what follows */
	struct list_head threads;
	u32 thread_count;
	u32 prune_at; /* so many threads: look for those that have ended */
	bool closed;  /* no more threads are added */

	struct work_struct end;
	unsigned long ended; /* bit 0: somebody sees to its end */
	struct rcu_head rcu;

	/* What a tick needs is in one cache line. on and counts belong to the lock. */
	raw_spinlock_t lock ____cacheline_aligned;
	bool on;
	struct counts counts;
	struct mm_struct *mm; /* the notifier keeps it from being freed */
	struct table *table;
};

/*
 * Counts for the current process from now on, in all its threads, instead of what was on. Takes
 * over the reference to the table. Returns 0 or a negative errno.
 */
int process_start(struct table *table);

/* The process of some memory that is on, with a reference; NULL when none is. */
struct process *process_find(const struct mm_struct *mm);
void process_put(struct process *process);

/* No count changes any more, and no thread ticks. */
void process_stop(struct process *process);

/* The same, from any context: no count changes any more, and soon no thread ticks. */
void process_switch_off(struct process *process);

int processes_init(void);
void processes_exit(void);

/* --- Threads of a process: threads.c --- */

void threads_init(struct process *process);
void threads_free(struct process *process);

/* Has the ticks of a task counted, if they are not yet. Returns 0 or a negative errno. */
int threads_add(struct process *process, struct task_struct *task);

/* Those of the current process. It has been published: who comes later adds itself. */
int threads_add_all(struct process *process);

/* Ends all ticks, and adds no more threads. The structs stay, for something may be late. */
void threads_end(struct process *process);

/* --- Ticks: tick.c --- */

/* Of a thread's event, in the interrupt; the context is its struct thread. */
void tick(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs);

/* --- New tasks: newcomers.c --- */

int newcomers_init(void);
void newcomers_exit(void);

#endif
