/* SPDX-License-Identifier: GPL-2.0-only */
/* What a kernel must have. Linux 6.1 to 6.12 are nearly the same to this module. */
#ifndef PROFIL_KMOD_COMPAT_H
#define PROFIL_KMOD_COMPAT_H

#include <linux/kconfig.h>

#ifndef CONFIG_MMU_NOTIFIER
#error "profil.ko needs a kernel with CONFIG_MMU_NOTIFIER, to know when a buffer is unmapped"
#endif
#ifndef CONFIG_TRACEPOINTS
#error "profil.ko needs a kernel with CONFIG_TRACEPOINTS, to follow fork(2)"
#endif
#ifdef CONFIG_PREEMPT_RT
#error "profil.ko cannot allocate memory in interrupts of a PREEMPT_RT kernel"
#endif

#include <linux/hrtimer.h>
#include <linux/sched.h>
#include <linux/sched/isolation.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#ifndef PF_USER_WORKER /* 6.1: all such are PF_IO_WORKER */
#define PF_USER_WORKER PF_IO_WORKER
#endif

#ifdef NO_HRTIMER_SETUP /* before 6.13 */
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#ifdef NO_CPU_IS_ISOLATED /* before 6.4 */
#ifdef NO_HK_TYPE	  /* before 5.18 */
#define HK_TYPE_DOMAIN HK_FLAG_DOMAIN
#define HK_TYPE_TICK   HK_FLAG_TICK
#endif
static inline bool cpu_is_isolated(int cpu)
{
	return !housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN) ||
	       !housekeeping_test_cpu(cpu, HK_TYPE_TICK);
}
#endif

/* NO_PREV_STATE, before 5.18: the tracepoint sched_switch has no such argument. */

struct tracepoint_search {
	const char *name;
	struct tracepoint *found;
};

static inline void match_tracepoint(struct tracepoint *tracepoint, void *context)
{
	struct tracepoint_search *search = context;

	if (!strcmp(tracepoint->name, search->name))
		search->found = tracepoint;
}

/* Most of the kernel's own tracepoints are not exported. Returns NULL if there is none. */
static inline struct tracepoint *find_tracepoint(const char *name)
{
	struct tracepoint_search search = { .name = name };

	for_each_kernel_tracepoint(match_tracepoint, &search);
	return search.found;
}

/*
 * task_work_add() with TWA_RESUME, for the current task or one that has not run yet: most kernels
 * do not export it. The list of works is this task's own, but for others that add to it or cancel
 * theirs, and always takes one more until it exits (PF_EXITING).
 */
static inline void add_task_work(struct task_struct *task, struct callback_head *work,
				 void (*function)(struct callback_head *))
{
	struct callback_head *first = READ_ONCE(task->task_works);

	work->func = function;
	do {
		work->next = first;
	} while (!try_cmpxchg(&task->task_works, &first, work));
	set_tsk_thread_flag(task, TIF_NOTIFY_RESUME);
}

#endif
