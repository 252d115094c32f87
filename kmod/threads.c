// SPDX-License-Identifier: GPL-2.0-only
/* The threads of a process that is counted: each has a perf event of its own. */
#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "kmod/process.h"

/* Below that many threads, those that have ended do not matter. */
#define PRUNE_LEAST 8

static DEFINE_HASHTABLE(threads, 10); /* by task */
static DEFINE_SPINLOCK(threads_lock);

void threads_init(struct process *process)
{
	mutex_init(&process->mutex);
	INIT_LIST_HEAD(&process->threads);
	process->prune_at = PRUNE_LEAST;
}

/* Sets the event, which ticks each time that the task has used so much CPU time. */
static int begin(struct thread *thread)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.size = sizeof(attr),
		.sample_period = thread->due,
		.remove_on_exec = 1,
	};
	struct perf_event *event =
		perf_event_create_kernel_counter(&attr, -1, thread->task, tick, thread);

	if (IS_ERR(event))
		return PTR_ERR(event);
	thread->event = event;
	return 0;
}

static void free_thread(struct thread *thread)
{
	if (thread->event)
		perf_event_release_kernel(thread->event);
	put_task_struct(thread->task);
	kfree(thread);
}

static void remove_thread(struct thread *thread)
{
	spin_lock(&threads_lock);
	hash_del(&thread->node);
	spin_unlock(&threads_lock);
	list_del(&thread->sibling);
	free_thread(thread);
}

/* Whether it ticks no more. What became another program may have late ticks still. */
static bool has_ended(const struct thread *thread)
{
	struct process *process = thread->process;
	bool late;

	if (READ_ONCE(thread->event->state) > PERF_EVENT_STATE_EXIT)
		return false;
	raw_spin_lock_irq(&process->lock);
	late = thread->late_ticks;
	raw_spin_unlock_irq(&process->lock);
	return !late;
}

/* With the mutex: lets go of threads that have ended, once they may be as many as the others. */
static void prune(struct process *process)
{
	struct thread *thread, *next;

	if (process->thread_count < process->prune_at)
		return;
	list_for_each_entry_safe(thread, next, &process->threads, sibling) {
		if (!has_ended(thread))
			continue;
		remove_thread(thread);
		WRITE_ONCE(process->thread_count, process->thread_count - 1);
	}
	process->prune_at = max_t(u32, PRUNE_LEAST, 2 * process->thread_count);
}

static struct thread *make_thread(struct process *process, struct task_struct *task)
{
	struct thread *thread = kzalloc(sizeof(*thread), GFP_KERNEL_ACCOUNT);

	if (!thread)
		return NULL;
	thread->process = process;
	thread->due = NSEC_PER_SEC / process->table->hz;
	thread->last = process->table->regions;
	thread->task = get_task_struct(task);
	return thread;
}

static bool is_known(const struct process *process, const struct task_struct *task)
{
	const struct thread *thread;
	bool known = false;

	spin_lock(&threads_lock);
	hash_for_each_possible(threads, thread, node, (unsigned long)task)
		known |= thread->task == task && thread->process == process;
	spin_unlock(&threads_lock);
	return known;
}

/* With the mutex. */
static int add_thread(struct process *process, struct task_struct *task)
{
	struct thread *thread;
	int err;

	if (process->closed || is_known(process, task))
		return 0;
	prune(process);
	thread = make_thread(process, task);
	if (!thread)
		return -ENOMEM;
	err = begin(thread);
	if (err) {
		free_thread(thread);
		return err == -ESRCH ? 0 : err; /* it ends */
	}
	spin_lock(&threads_lock);
	hash_add(threads, &thread->node, (unsigned long)task);
	spin_unlock(&threads_lock);
	list_add(&thread->sibling, &process->threads);
	WRITE_ONCE(process->thread_count, process->thread_count + 1);
	return 0;
}

int threads_add(struct process *process, struct task_struct *task)
{
	int err;

	mutex_lock(&process->mutex);
	err = add_thread(process, task);
	mutex_unlock(&process->mutex);
	return err;
}

void threads_end(struct process *process)
{
	struct thread *thread;

	mutex_lock(&process->mutex);
	list_for_each_entry(thread, &process->threads, sibling) {
		if (thread->event)
			perf_event_release_kernel(thread->event);
		thread->event = NULL;
		cond_resched();
	}
	process->closed = true;
	mutex_unlock(&process->mutex);
}

void threads_free(struct process *process)
{
	struct thread *thread, *next;

	list_for_each_entry_safe(thread, next, &process->threads, sibling)
		remove_thread(thread);
}

/* --- All that there are --- */

/* Returns how many tasks the process has; the first `room` are in tasks then, with a reference. */
static u32 get_tasks(struct task_struct **tasks, u32 room)
{
	struct task_struct *task;
	u32 count = 0;

	rcu_read_lock();
	for_each_thread(current, task) {
		if (task->flags & (PF_IO_WORKER | PF_USER_WORKER))
			continue; /* the kernel's own, which have no program counter of the user's
				   */
		if (count < room)
			tasks[count] = get_task_struct(task);
		count++;
	}
	rcu_read_unlock();
	return count;
}

static void put_tasks(struct task_struct **tasks, u32 count)
{
	for (u32 i = 0; i < count; i++)
		put_task_struct(tasks[i]);
	kvfree(tasks);
}

/* Sets *tasks to an array, for put_tasks(). Returns its length, or -ENOMEM. */
static long list_tasks(struct task_struct ***tasks)
{
	u32 room = get_nr_threads(current), count;

	for (;;) {
		room += room / 4 + 1;
		*tasks = kvcalloc(room, sizeof(**tasks), GFP_KERNEL_ACCOUNT);
		if (!*tasks)
			return -ENOMEM;
		count = get_tasks(*tasks, room);
		if (count <= room)
			return count;
		put_tasks(*tasks, room);
		room = count;
	}
}

int threads_add_all(struct process *process)
{
	struct task_struct **tasks;
	long count;
	int err = 0;

	smp_mb(); /* with that of newcomers.c: it finds the process, or we find its task */
	count = list_tasks(&tasks);
	if (count < 0)
		return count;
	for (long i = 0; i < count && !err; i++) {
		err = threads_add(process, tasks[i]);
		cond_resched();
	}
	put_tasks(tasks, count);
	return err;
}
