// SPDX-License-Identifier: GPL-2.0-only
/* The processes that are counted, from the request to the end of the last tick. */
#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "kmod/counted_memory.h"

static DEFINE_HASHTABLE(processes, 10);
static DEFINE_SPINLOCK(processes_lock); /* for changes; readers use RCU */

static struct workqueue_struct *works;

/* --- The end --- */

static void free_process(struct kref *refs)
{
	struct process *process = container_of(refs, struct process, refs);

	table_put(process->table);
	kfree_rcu(process, rcu);
	module_put(THIS_MODULE);
}

void process_put(struct process *process)
{
	kref_put(&process->refs, free_process);
}

static void switch_off(struct process *process)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&process->lock, flags);
	process->on = false;
	raw_spin_unlock_irqrestore(&process->lock, flags);
}

static void unhash(struct process *process)
{
	spin_lock(&processes_lock);
	hash_del_rcu(&process->node);
	spin_unlock(&processes_lock);
}

/* Once, by who has set the bit. */
static void end_process(struct process *process)
{
	unhash(process);
	mmu_interval_notifier_remove(&process->notifier);
	process_put(process);
}

static void end_by_work(struct work_struct *work)
{
	end_process(container_of(work, struct process, end));
}

void process_switch_off(struct process *process)
{
	switch_off(process);
	if (!test_and_set_bit(0, &process->ended))
		queue_work(works, &process->end);
}

void process_stop(struct process *process)
{
	switch_off(process);
	if (!test_and_set_bit(0, &process->ended))
		end_process(process);
	else
		unhash(process);
}

/* --- What becomes of the memory --- */

/*
 * At exit(2) and execve(2), when nobody uses the memory any more, it is all of it. All else that
 * can happen to a page, a tick that writes to it meets like the process.
 */
static bool invalidate(struct mmu_interval_notifier *notifier,
		       const struct mmu_notifier_range *range, unsigned long sequence)
{
	struct process *process = container_of(notifier, struct process, notifier);

	mmu_interval_set_seq(notifier, sequence);
	if (range->event == MMU_NOTIFY_RELEASE ||
	    (range->event == MMU_NOTIFY_UNMAP &&
	     table_overlaps(process->table, range->start, range->end)))
		process_switch_off(process);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = invalidate,
};

struct insertion {
	struct work_struct work;
	struct process *process;
	int err;
};

static int insert(struct process *process)
{
	unsigned long start, length;

	table_span(process->table, &start, &length);
	return mmu_interval_notifier_insert(&process->notifier, process->mm, start, length,
					    &notifier_ops);
}

static void insert_by_work(struct work_struct *work)
{
	struct insertion *insertion = container_of(work, struct insertion, work);

	insertion->err = insert(insertion->process);
}

/*
 * The first notifier of some memory is refused with -EINTR while the current task has a signal
 * pending. A new child, which is not in a system call, could not restart one after the signal: a
 * worker, which gets no signals, inserts it then, and the task waits with its memory.
 */
static int insert_notifier(struct process *process)
{
	struct insertion insertion = { .process = process };
	int err = insert(process);

	if (err == -EINTR) {
		INIT_WORK_ONSTACK(&insertion.work, insert_by_work);
		queue_work(works, &insertion.work);
		flush_work(&insertion.work);
		destroy_work_on_stack(&insertion.work);
		err = insertion.err;
	}
	if (!err) /* it may be told of nothing until what is being unmapped now is unmapped */
		mmu_interval_read_begin(&process->notifier);
	return err;
}

/* --- The beginning --- */

/*
 * For the current memory; takes over the table, even when it fails. The caller has one reference,
 * the notifier another.
 */
static struct process *make_process(struct table *table)
{
	struct process *process = kzalloc(sizeof(*process), GFP_KERNEL_ACCOUNT);
	int err;

	if (!process) {
		table_put(table);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&process->refs);
	process->mm = current->mm;
	process->table = table;
	INIT_WORK(&process->end, end_by_work);
	raw_spin_lock_init(&process->lock);
	process->on = true;
	__module_get(THIS_MODULE); /* the caller has it, too */
	kref_get(&process->refs);
	err = insert_notifier(process);
	if (!err)
		return process;
	process_put(process);
	process_put(process);
	return ERR_PTR(err);
}

static bool is_on(struct process *process)
{
	unsigned long flags;
	bool on;

	raw_spin_lock_irqsave(&process->lock, flags);
	on = process->on;
	raw_spin_unlock_irqrestore(&process->lock, flags);
	return on;
}

/* With the lock, too. */
struct process *process_lookup(const struct mm_struct *mm)
{
	struct process *process;

	hash_for_each_possible_rcu(processes, process, node, (unsigned long)mm,
				   lockdep_is_held(&processes_lock))
		if (process->mm == mm)
			return process;
	return NULL;
}

struct process *process_find(const struct mm_struct *mm)
{
	struct process *process;
	bool maybe;

	rcu_read_lock(); /* most processes are not counted, and wait for nobody */
	maybe = process_lookup(mm);
	rcu_read_unlock();
	if (!maybe)
		return NULL;
	spin_lock(&processes_lock);
	process = process_lookup(mm);
	if (process && is_on(process))
		kref_get(&process->refs);
	else
		process = NULL;
	spin_unlock(&processes_lock);
	return process;
}

/* With the lock. Readers find one of the two all the time. */
static void replace(struct process *old, struct process *process)
{
	hlist_replace_rcu(&old->node, &process->node);
	WRITE_ONCE(old->node.pprev, NULL); /* it is unhashed */
}

/*
 * Takes the place of what was on, whose counts so far are in its own buffer. If the buffer was
 * unmapped just now, the process is not to be found: nobody would take it away any more.
 */
static void publish(struct process *process)
{
	struct process *old;

	spin_lock(&processes_lock);
	old = process_lookup(process->mm);
	if (old)
		kref_get(&old->refs);
	if (old && is_on(process))
		replace(old, process);
	else if (is_on(process))
		hash_add_rcu(processes, &process->node, (unsigned long)process->mm);
	spin_unlock(&processes_lock);
	if (!old)
		return;
	process_stop(old);
	process_put(old);
}

int process_start(struct table *table)
{
	struct process *process = make_process(table);

	if (IS_ERR(process))
		return PTR_ERR(process);
	publish(process);
	process_put(process);
	return 0;
}

int processes_init(void)
{
	works = alloc_workqueue("profil", WQ_UNBOUND, 0);
	return works ? 0 : -ENOMEM;
}

/* There are none left, for each has a reference of the module. */
void processes_exit(void)
{
	destroy_workqueue(works);
}
