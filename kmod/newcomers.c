// SPDX-License-Identifier: GPL-2.0-only
/*
 * New tasks of processes that are counted. The kernel tells of each before it runs; it is given
 * some work then, which it does by itself before its first instruction in user mode.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>

#include "kmod/process.h"

struct newcomer {
	struct callback_head work;
	struct process *process; /* its parent's; its own when it shares the memory */
};

static struct tracepoint *tracepoint;

static void join(struct callback_head *work)
{
	struct newcomer *newcomer = container_of(work, struct newcomer, work);
	struct process *process = newcomer->process;
	int err = 0;

	if (current->mm == process->mm)
		err = threads_add(process, current);
	else if (current->mm) /* it was not killed */
		err = process_start(table_get(process->table));
	if (err)
		pr_warn_ratelimited("profil: a new task is not counted: error %d\n", err);
	kfree(newcomer);
	process_put(process);
}

/* In the parent, with preemption disabled. */
static void probe(void *unused, struct task_struct *parent, struct task_struct *child)
{
	struct newcomer *newcomer;
	struct process *process;

	smp_mb(); /* with that of threads_add_all() */
	process = process_find(parent->mm);
	if (!process)
		return;
	newcomer = kmalloc(sizeof(*newcomer), GFP_ATOMIC | __GFP_NOWARN);
	if (!newcomer) {
		pr_warn_ratelimited("profil: a new task is not counted: out of memory\n");
		process_put(process);
		return;
	}
	newcomer->process = process;
	init_task_work(&newcomer->work, join);
	if (task_work_add(child, &newcomer->work, TWA_RESUME)) { /* it was killed */
		kfree(newcomer);
		process_put(process);
	}
}

static void look_at(struct tracepoint *one, void *unused)
{
	if (!strcmp(one->name, "sched_process_fork"))
		tracepoint = one;
}

int newcomers_init(void)
{
	for_each_kernel_tracepoint(look_at, NULL);
	return tracepoint ? tracepoint_probe_register(tracepoint, probe, NULL) : -ENOENT;
}

void newcomers_exit(void)
{
	tracepoint_probe_unregister(tracepoint, probe, NULL);
	tracepoint_synchronize_unregister();
}
