// SPDX-License-Identifier: GPL-2.0-only
/*
 * A tracepoint reports each new task before it runs. A child with an address space of its own then
 * gets a task work, which runs before the child's first instruction in user mode. That is the right
 * moment: later, the child could unmap a buffer before its memory has a notifier; earlier, only the
 * parent runs, and cannot sleep there. New threads and others that share the memory need nothing.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>

#include "kmod/clock.h"
#include "kmod/compat.h"
#include "kmod/forks.h"
#include "kmod/profiled_mm.h"

struct fork_work {
	struct callback_head work;
	struct profiled_mm *parent; /* a reference */
};

static struct tracepoint *fork_tracepoint;

/* Runs in the child. */
static void profile_child(struct callback_head *callback)
{
	struct fork_work *work = container_of(callback, struct fork_work, work);
	int err = current->mm ? profiled_mm_start(region_table_get(work->parent->table))
			      : -ESRCH; /* it was killed before it ran */

	if (!err)
		clock_start();
	else if (err != -ESRCH)
		pr_warn_ratelimited("profil: cannot profile a forked process: error %d%s\n", err,
				    err == -EDQUOT ? ", max_processes" : "");
	profiled_mm_put(work->parent);
	kfree(work);
}

/* Runs in the parent, with preemption disabled. */
static void probe_fork(void *unused, struct task_struct *parent, struct task_struct *child)
{
	struct profiled_mm *profiled;
	struct fork_work *work;

	if (child->mm == parent->mm)
		return;
	profiled = profiled_mm_find(parent->mm);
	if (!profiled)
		return;
	work = kmalloc(sizeof(*work), GFP_ATOMIC | __GFP_NOWARN);
	if (!work) {
		pr_warn_ratelimited("profil: cannot profile a forked process: out of memory\n");
		profiled_mm_put(profiled);
		return;
	}
	work->parent = profiled;
	add_task_work(child, &work->work, profile_child);
}

int forks_init(void)
{
	fork_tracepoint = find_tracepoint("sched_process_fork");
	return fork_tracepoint ? tracepoint_probe_register(fork_tracepoint, probe_fork, NULL)
			       : -ENOENT;
}

void forks_exit(void)
{
	tracepoint_probe_unregister(fork_tracepoint, probe_fork, NULL);
	tracepoint_synchronize_unregister();
}
