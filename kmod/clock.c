// SPDX-License-Identifier: GPL-2.0-only
/*
 * One timer on each CPU for all processes that are profiled, at the fastest of their rates. The
 * task that the timer interrupts gets the tick: task switches cost nothing, and however short tasks
 * live, their ticks are in proportion to their CPU time.
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
#include <linux/smp.h>

#include "kmod/clock.h"
#include "kmod/compat.h"
#include "kmod/count_tick.h"
#include "kmod/settings.h"

struct clock {
	struct hrtimer timer;
	u64 phase;  /* added to the time of this CPU, in ns */
	u64 before; /* time of the last tick, or of the start of the timer */
};

static DEFINE_PER_CPU(struct clock, clocks);
static int hotplug_state;

static bool has_clock(int cpu, void *unused)
{
	return settings_isolated_cpus() || !cpu_is_isolated(cpu);
}

static enum hrtimer_restart timer_interrupt(struct hrtimer *timer)
{
	struct clock *clock = container_of(timer, struct clock, timer);
	u64 now = ktime_get_ns() + clock->phase;
	u32 period = rates_shortest_period();

	count_tick(clock->before, now, clock->phase);
	clock->before = now;
	if (!period || !has_clock(smp_processor_id(), NULL))
		return HRTIMER_NORESTART;
	hrtimer_set_expires(timer, ns_to_ktime(rate_next_point(now, period) - clock->phase));
	return HRTIMER_RESTART;
}

/* Runs on the CPU whose timer it starts, or sets to the present rate, with interrupts disabled. */
static void start_timer(void *unused)
{
	struct clock *clock = this_cpu_ptr(&clocks);
	u64 now = ktime_get_ns() + clock->phase;
	u32 period = rates_shortest_period();
	ktime_t next;

	if (!period)
		return;
	next = ns_to_ktime(rate_next_point(now, period) - clock->phase);
	if (!hrtimer_is_queued(&clock->timer))
		clock->before = now;
	else if (hrtimer_get_expires(&clock->timer) <= next)
		return; /* a process that changes its rate all the time cannot put off the tick */
	hrtimer_start(&clock->timer, next, HRTIMER_MODE_ABS_PINNED);
}

void clock_add(struct rate *rate)
{
	static unsigned int had_isolated; /* isolated CPUs had clocks at the request before */
	unsigned int isolated = settings_isolated_cpus();
	bool changed = xchg(&had_isolated, isolated) != isolated;

	if (!rate_add(rate) && !changed)
		return;
	cpus_read_lock(); /* the timer of a CPU that goes offline is not started again */
	on_each_cpu_cond(has_clock, start_timer, NULL, true);
	cpus_read_unlock();
}

static int clock_cpu_online(unsigned int cpu)
{
	if (!has_clock(cpu, NULL))
		return 0;
	local_irq_disable();
	start_timer(NULL);
	local_irq_enable();
	return 0;
}

static int clock_cpu_offline(unsigned int cpu)
{
	hrtimer_cancel(&per_cpu(clocks, cpu).timer);
	return 0;
}

int clock_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct clock *clock = per_cpu_ptr(&clocks, cpu);

		hrtimer_setup(&clock->timer, timer_interrupt, CLOCK_MONOTONIC,
			      HRTIMER_MODE_ABS_PINNED);
		clock->phase = cpu * GOLDEN_RATIO_FRACTION;
	}
	hotplug_state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "profil:clock", clock_cpu_online,
					  clock_cpu_offline);
	return min(hotplug_state, 0);
}

void clock_exit(void)
{
	rates_exit();
	cpuhp_remove_state(hotplug_state); /* calls clock_cpu_offline() for each CPU */
}
