/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler's own tick: CONFIG_HZ times a second on every CPU that is not idle, whether we
 * trace it or not. It is one high-resolution timer of each CPU. A program on the tracepoint runs
 * for all timers; is_tick() recognises the tick.
 *
 * update_process_times(), which the tick calls, could be traced instead, but only in kernels with
 * function tracing.
 */
#ifndef PROFIL_BPF_TICK_H
#define PROFIL_BPF_TICK_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* The distances of these per-CPU variables from the per-CPU variable hrtimer_bases. */
const volatile __s64 tick_cpu_sched = 0;
const volatile __s64 irq_regs = 0; /* __irq_regs */

/* The per-CPU variable at this distance from hrtimer_bases, to which every timer points. */
static void *cpu_variable(struct hrtimer *timer, __s64 distance)
{
	return (void *)timer->base->cpu_base + distance;
}

/* What a tick interrupted. */
struct interrupted {
	__u64 pc;
	bool kernel;
};

/*
 * Whether the timer in the context of hrtimer_expire_entry (timer, now) is the scheduler's tick and
 * interrupted another task than the idle one. If so, *at receives what it interrupted.
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
	at->pc = BPF_PROBE_READ(regs, PC_REGISTER);
	at->kernel = is_kernel_mode(BPF_PROBE_READ(regs, MODE_REGISTER));
	return true;
}

#endif
