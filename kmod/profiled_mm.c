// SPDX-License-Identifier: GPL-2.0-only
#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "kmod/profiled_mm.h"

static DEFINE_HASHTABLE(profiled_mms, 10);
static DEFINE_SPINLOCK(hash_lock); /* for changes; readers use RCU */

static struct workqueue_struct *workqueue;

/* --- The end --- */

static void free_profiled(struct kref *refs)
{
	struct profiled_mm *profiled = container_of(refs, struct profiled_mm, refs);

	region_table_put(profiled->table);
	user_drop_process(profiled->user);
	kfree_rcu(profiled, rcu);
	module_put(THIS_MODULE);
}

void profiled_mm_put(struct profiled_mm *profiled)
{
	kref_put(&profiled->refs, free_profiled);
}

/* Returns whether the caller has to end it: the first caller alone. */
static bool claim_end(struct profiled_mm *profiled)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&profiled->lock, flags);
	profiled->on = false;
	raw_spin_unlock_irqrestore(&profiled->lock, flags);
	return !test_and_set_bit(0, &profiled->end_claimed);
}

static void unhash(struct profiled_mm *profiled)
{
	spin_lock(&hash_lock);
	hash_del_rcu(&profiled->node);
	spin_unlock(&hash_lock);
}

static void end_profiled(struct profiled_mm *profiled)
{
	unhash(profiled);
	mmu_interval_notifier_remove(&profiled->notifier);
	profiled_mm_put(profiled);
}

static void end_by_work(struct work_struct *work)
{
	end_profiled(container_of(work, struct profiled_mm, end_work));
}

void profiled_mm_switch_off(struct profiled_mm *profiled)
{
	if (claim_end(profiled))
		queue_work(workqueue, &profiled->end_work);
}

void profiled_mm_stop(struct profiled_mm *profiled)
{
	if (claim_end(profiled))
		end_profiled(profiled);
	else
		unhash(profiled);
}

/* --- The notifier --- */

/*
 * Turns profiling off when a buffer is unmapped, and when the memory is released, at exit and exec.
 * All other changes of a page need nothing: a tick writes a cell as the process would.
 */
static bool invalidate(struct mmu_interval_notifier *notifier,
		       const struct mmu_notifier_range *range, unsigned long sequence)
{
	struct profiled_mm *profiled = container_of(notifier, struct profiled_mm, notifier);

	mmu_interval_set_seq(notifier, sequence);
	if (range->event == MMU_NOTIFY_RELEASE ||
	    (range->event == MMU_NOTIFY_UNMAP &&
	     region_table_overlaps(profiled->table, range->start, range->end)))
		profiled_mm_switch_off(profiled);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = invalidate,
};

struct insertion {
	struct work_struct work;
	struct profiled_mm *profiled;
	int err;
};

static int try_insert(struct profiled_mm *profiled)
{
	unsigned long start, length;

	region_table_span(profiled->table, &start, &length);
	return mmu_interval_notifier_insert(&profiled->notifier, profiled->mm, start, length,
					    &notifier_ops);
}

static void insert_by_work(struct work_struct *work)
{
	struct insertion *insertion = container_of(work, struct insertion, work);

	insertion->err = try_insert(insertion->profiled);
}

/*
 * The kernel refuses the first notifier of an address space with -EINTR while the current task has
 * a signal pending. A system call could be restarted after the signal, but a new child is not in
 * one. So a worker, which gets no signals, inserts the notifier then, while the task waits.
 */
static int insert_notifier(struct profiled_mm *profiled)
{
	struct insertion insertion = { .profiled = profiled };
	int err = try_insert(profiled);

	if (err == -EINTR) {
		INIT_WORK_ONSTACK(&insertion.work, insert_by_work);
		queue_work(workqueue, &insertion.work);
		flush_work(&insertion.work);
		destroy_work_on_stack(&insertion.work);
		err = insertion.err;
	}
	/* The notifier is not called for what is being unmapped now: wait for the end of that. */
	if (!err)
		mmu_interval_read_begin(&profiled->notifier);
	return err;
}

/* --- The hash table --- */

static bool is_on(struct profiled_mm *profiled)
{
	unsigned long flags;
	bool on;

	raw_spin_lock_irqsave(&profiled->lock, flags);
	on = profiled->on;
	raw_spin_unlock_irqrestore(&profiled->lock, flags);
	return on;
}

struct profiled_mm *profiled_mm_lookup(const struct mm_struct *mm)
{
	struct profiled_mm *profiled;

	hash_for_each_possible_rcu(profiled_mms, profiled, node, (unsigned long)mm,
				   lockdep_is_held(&hash_lock))
		if (profiled->mm == mm)
			return profiled;
	return NULL;
}

struct profiled_mm *profiled_mm_find(const struct mm_struct *mm)
{
	struct profiled_mm *profiled;
	bool maybe;

	rcu_read_lock(); /* most forks are of processes that are not profiled: no lock for them */
	maybe = profiled_mm_lookup(mm);
	rcu_read_unlock();
	if (!maybe)
		return NULL;
	spin_lock(&hash_lock);
	profiled = profiled_mm_lookup(mm);
	if (profiled && is_on(profiled))
		kref_get(&profiled->refs);
	else
		profiled = NULL;
	spin_unlock(&hash_lock);
	return profiled;
}

/*
 * Replaces what was on for the address space; its counts are in the process's buffers already. If
 * the new buffers were unmapped just now, the new one is not hashed: nobody would unhash it.
 */
static void publish(struct profiled_mm *profiled)
{
	struct profiled_mm *old;

	spin_lock(&hash_lock);
	old = profiled_mm_lookup(profiled->mm);
	if (old)
		kref_get(&old->refs);
	if (old && is_on(profiled)) {
		hlist_replace_rcu(&old->node, &profiled->node); /* a reader always finds one */
		WRITE_ONCE(old->node.pprev, NULL);		/* marks it as unhashed */
	} else if (is_on(profiled)) {
		hash_add_rcu(profiled_mms, &profiled->node, (unsigned long)profiled->mm);
	}
	spin_unlock(&hash_lock);
	if (!old)
		return;
	profiled_mm_stop(old);
	profiled_mm_put(old);
}

/* --- The beginning --- */

int profiled_mm_start(struct region_table *table)
{
	struct profiled_mm *profiled = kzalloc(sizeof(*profiled), GFP_KERNEL_ACCOUNT);
	/* The one that it replaces ends soon after. */
	struct profiled_mm *old = profiled_mm_find(current->mm);
	struct user_count *user = user_add_process(old);
	int err;

	if (old)
		profiled_mm_put(old);
	if (!profiled || IS_ERR(user)) {
		if (!IS_ERR(user))
			user_drop_process(user);
		kfree(profiled);
		region_table_put(table);
		return IS_ERR(user) ? PTR_ERR(user) : -ENOMEM;
	}
	profiled->user = user;
	kref_init(&profiled->refs);
	profiled->mm = current->mm;
	profiled->table = table;
	INIT_WORK(&profiled->end_work, end_by_work);
	raw_spin_lock_init(&profiled->lock);
	profiled->on = true;
	__module_get(THIS_MODULE); /* the caller holds a reference, so this cannot fail */
	kref_get(&profiled->refs); /* the notifier's, which end_profiled() puts */
	err = insert_notifier(profiled);
	if (err)
		profiled_mm_put(profiled);
	else
		publish(profiled);
	profiled_mm_put(profiled);
	return err;
}

int profiled_mm_init(void)
{
	workqueue = alloc_workqueue("profil", WQ_UNBOUND, 0);
	return workqueue ? 0 : -ENOMEM;
}

void profiled_mm_exit(void)
{
	destroy_workqueue(workqueue);
}
