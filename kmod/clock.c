// SPDX-License-Identifier: GPL-2.0-only
/*
 * One timer on each CPU for all processes that are profiled, at the fastest of their rates. The
 * task that the timer interrupts gets the tick: however short tasks live, their ticks are in
 * proportion to their CPU time.
 *
 * The timer of a CPU is started when a task that is profiled comes to run there, and ends with the
 * first interrupt of another: an idle CPU, and one that others use, has none. So a task switch
 * looks whether the timer runs, and if not, whose the next task is.
 *
 * At an interrupt, a process gets one tick for each point of its own rate since the interrupt
 * before, whichever other rates there are, and however late the interrupt comes. So the time before
 * a late interrupt is counted for the task that it finds, which ran with interrupts disabled, or on
 * a virtual CPU that its host did not let run. The kernel adds the same time to that task's CPU
 * time, except for what the host reports as stolen.
 *
 * Each CPU has a phase of its own, so that CPUs are not interrupted all at once. CPUs that were
 * isolated for work that must not be interrupted have no timer, unless root says so.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/percpu.h>
#include <linux/sched/mm.h>
#include <linux/smp.h>
#include <linux/tracepoint.h>

#include "kmod/clock.h"
#include "kmod/compat.h"
#include "kmod/count_tick.h"
#include "kmod/profiled_mm.h"
#include "kmod/settings.h"

struct clock {
	struct hrtimer timer;
	u64 phase;  /* added to the time of this CPU, in ns */
	u64 before; /* time of the last tick, or of the start of the timer */
	bool online;
};

static DEFINE_PER_CPU(struct clock, clocks);
static int hotplug_state;
static struct tracepoint *switch_tracepoint;

static bool has_clock(int cpu, void *unused)
{
	return settings_isolated_cpus() || !cpu_is_isolated(cpu);
}

static enum hrtimer_restart timer_interrupt(struct hrtimer *timer)
{
	struct clock *clock = container_of(timer, struct clock, timer);
	u64 now = ktime_get_ns() + clock->phase;
	u32 period = rates_shortest_period();
	bool is_profiled = count_tick(clock->before, now, clock->phase);

	clock->before = now;
	if (!is_profiled || !period || !has_clock(smp_processor_id(), NULL))
		return HRTIMER_NORESTART;
	hrtimer_set_expires(timer, ns_to_ktime(rate_next_point(now, period) - clock->phase));
	return HRTIMER_RESTART;
}

static bool is_profiled(const struct task_struct *task)
{
	bool found;

	if (!task->mm)
		return false;
	rcu_read_lock();
	found = profiled_mm_lookup(task->mm);
	rcu_read_unlock();
	return found;
}

/* Starts the timer of this CPU, or sets it to the present rate. With interrupts disabled. */
static void set_timer(void)
{
	struct clock *clock = this_cpu_ptr(&clocks);
	u64 now = ktime_get_ns() + clock->phase;
	u32 period = rates_shortest_period();
	ktime_t next;

	if (!period || !clock->online || !has_clock(smp_processor_id(), NULL))
		return;
	next = ns_to_ktime(rate_next_point(now, period) - clock->phase);
	if (!hrtimer_is_queued(&clock->timer))
		clock->before = now;
	else if (hrtimer_get_expires(&clock->timer) <= next)
		return; /* a process that changes its rate all the time cannot put off the tick */
	hrtimer_start(&clock->timer, next, HRTIMER_MODE_ABS_PINNED);
}

/* Runs on a CPU whose timer is to have a faster rate, or whose task may be profiled now. */
static void update_timer(void *unused)
{
	if (hrtimer_is_queued(&this_cpu_ptr(&clocks)->timer) || is_profiled(current))
		set_timer();
}

/* Runs at each task switch, with interrupts disabled, before the next task runs. */
static void probe_switch(void *unused, bool preempt, struct task_struct *prev,
#ifndef NO_PREV_STATE
			 struct task_struct *next, unsigned int prev_state)
#else
			 struct task_struct *next)
#endif
{
	if (rates_shortest_period() && !hrtimer_is_queued(&this_cpu_ptr(&clocks)->timer) &&
	    is_profiled(next))
		set_timer();
}

void clock_add(struct rate *rate)
{
	if (rate_add(rate))
		on_each_cpu_cond(has_clock, update_timer, NULL, true);
}

void clock_start(void)
{
	/* Other threads may run on other CPUs, and not be switched for long. */
	if (atomic_read(&current->mm->mm_users) > 1) {
		on_each_cpu_cond(has_clock, update_timer, NULL, true);
		return;
	}
	local_irq_disable();
	update_timer(NULL);
	local_irq_enable();
}

static int clock_cpu_online(unsigned int cpu)
{
	WRITE_ONCE(per_cpu(clocks, cpu).online, true);
	return 0;
}

static int clock_cpu_offline(unsigned int cpu)
{
	struct clock *clock = per_cpu_ptr(&clocks, cpu);

	WRITE_ONCE(clock->online, false); /* on this CPU: its timer is not started again */
	hrtimer_cancel(&clock->timer);
	return 0;
}

int clock_init(void)
{
	unsigned int cpu;
	int err;

	for_each_possible_cpu(cpu) {
		struct clock *clock = per_cpu_ptr(&clocks, cpu);

		hrtimer_setup(&clock->timer, timer_interrupt, CLOCK_MONOTONIC,
			      HRTIMER_MODE_ABS_PINNED);
		clock->phase = cpu * GOLDEN_RATIO_FRACTION;
	}
	hotplug_state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "profil:clock", clock_cpu_online,
					  clock_cpu_offline);
	if (hotplug_state < 0)
		return hotplug_state;
	switch_tracepoint = find_tracepoint("sched_switch");
	err = switch_tracepoint ? tracepoint_probe_register(switch_tracepoint, probe_switch, NULL)
				: -ENOENT;
	if (err)
		cpuhp_remove_state(hotplug_state);
	return err;
}

void clock_exit(void)
{
	tracepoint_probe_unregister(switch_tracepoint, probe_switch, NULL);
	tracepoint_synchronize_unregister();
	rates_exit();
	cpuhp_remove_state(hotplug_state); /* calls clock_cpu_offline() for each CPU */
}
