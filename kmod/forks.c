// SPDX-License-Identifier: GPL-2.0-only
/*
 * Forked children of processes that are counted. A tracepoint reports each child before it runs;
 * the child is given task work then, which runs before its first instruction in user mode. Not
 * later: what the child unmaps before its memory has a notifier would go unnoticed. Not earlier:
 * the parent cannot sleep there. Threads, and all others that share the memory, need nothing.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>

#include "kmod/counted_memory.h"

struct entry {
	struct callback_head work;
	struct process *parent;
};

static struct tracepoint *tracepoint;

/* In the child. */
static void enter(struct callback_head *work)
{
	struct entry *entry = container_of(work, struct entry, work);
	struct process *parent = entry->parent;
	int err = 0;

	if (current->mm) /* it was not killed */
		err = process_start(table_get(parent->table));
	if (err)
		pr_warn_ratelimited("profil: a forked process is not counted: error %d\n", err);
	kfree(entry);
	process_put(parent);
}

/* In the parent, with preemption disabled. */
static void probe(void *unused, struct task_struct *parent, struct task_struct *child)
{
	struct process *process;
	struct entry *entry;

	if (child->mm == parent->mm)
		return;
	process = process_find(parent->mm);
	if (!process)
		return;
	entry = kmalloc(sizeof(*entry), GFP_ATOMIC | __GFP_NOWARN);
	if (!entry) {
		pr_warn_ratelimited("profil: a forked process is not counted: out of memory\n");
		process_put(process);
		return;
	}
	entry->parent = process;
	add_task_work(child, &entry->work, enter);
}

static void look_at(struct tracepoint *one, void *unused)
{
	if (!strcmp(one->name, "sched_process_fork"))
		tracepoint = one;
}

int forks_init(void)
{
	for_each_kernel_tracepoint(look_at, NULL);
	return tracepoint ? tracepoint_probe_register(tracepoint, probe, NULL) : -ENOENT;
}

void forks_exit(void)
{
	tracepoint_probe_unregister(tracepoint, probe, NULL);
	tracepoint_synchronize_unregister();
}
