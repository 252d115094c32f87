/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler's own tick. It comes anyway, CONFIG_HZ times a second, on every CPU that is not
 * idle. It is a timer of each CPU, and a program that traces timers runs for all of them, whoever
 * runs there: the tick is told apart here.
 *
 * Tracing update_process_times(), which the tick calls, would do as well, but takes a kernel whose
 * functions can be traced.
 */
#ifndef PROFIL_BPF_TICK_H
#define PROFIL_BPF_TICK_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* How far the variables of these names lie behind the variable hrtimer_bases, on each CPU. */
const volatile __s64 tick_cpu_sched = 0;
const volatile __s64 irq_regs = 0; /* __irq_regs */

/* The CPU's own variables that lie so far behind the one that all its timers know. */
static void *cpu_variable(struct hrtimer *timer, __s64 distance)
{
	return (void *)timer->base->cpu_base + distance;
}

/* What the tick has interrupted. */
struct interrupted {
	__u64 pc;
	bool kernel;
};

/*
 * Whether the timer of hrtimer_expire_entry (its context: timer, now) is the scheduler's tick, and
 * not the idle task's. If so, *at is what it has interrupted.
 */
static __always_inline bool is_tick(const __u64 *ctx, const struct task_struct *task,
				    struct interrupted *at)
{
	struct hrtimer *timer = (void *)ctx[0];
	struct tick_sched *tick = cpu_variable(timer, tick_cpu_sched);
	struct pt_regs *regs = NULL;

	if (timer != &tick->sched_timer || task->pid == 0)
		return false;
	bpf_probe_read_kernel(&regs, sizeof(regs), cpu_variable(timer, irq_regs));
	at->pc = BPF_PROBE_READ(regs, ip);
	at->kernel = (BPF_PROBE_READ(regs, cs) & 3) == 0;
	return true;
}

#endif
