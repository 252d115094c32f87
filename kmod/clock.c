// SPDX-License-Identifier: GPL-2.0-only
/*
 * The clock: one timer on each CPU for all processes that are counted. The task that it interrupts
 * gets the tick: a switch of tasks costs nothing, and however short tasks live, their ticks are in
 * proportion to their CPU time. All rates share the timers, which run at the fastest.
 *
 * A rate divides the time of a CPU into periods and has a point in each. At an interrupt, a process
 * gets a tick for each point of its rate since the interrupt before: so many for so much time,
 * whichever other rates there are, and however late interrupts come. The time before a late one is
 * thus counted for the task that it finds, which ran with interrupts disabled, or on a virtual CPU
 * that its host did not let run: the kernel adds the same time to that task's CPU time, but for
 * what a host says that it stole.
 *
 * The points keep no step with anything: each has its place in the period a golden ratio behind the
 * last one's, so that any number of them are spread evenly over the period; and over that of the
 * scheduler's tick, behind which much begins that ends before the next. Rates stay exact by that.
 * Each CPU has a phase of its own.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "kmod/counted_memory.h"

/* A fraction of 2^32: the golden ratio's. */
#define GOLDEN 0x9e3779b9U

struct clock {
	struct hrtimer timer;
	u64 phase;  /* what this CPU's time is ahead, in ns */
	u64 before; /* when it ticked last, or was started */
};

static DEFINE_PER_CPU(struct clock, clocks);

static DEFINE_SPINLOCK(rates_lock);
static struct rb_root_cached rates = RB_ROOT_CACHED; /* tables in use, the fastest first */
static u32 shortest; /* period of all timers, in ns; 0: none ticks. For changes, the lock. */

static void slow_down(struct work_struct *work);
static DECLARE_DELAYED_WORK(slower, slow_down);
static int hotplug_state;

/* --- Points --- */

static u32 point(u64 number, u32 period)
{
	return mul_u32_u32((u32)number * GOLDEN, period) >> 32;
}

u64 clock_points(u64 time, u32 period)
{
	u32 rest;
	u64 number = div_u64_rem(time, period, &rest);

	return number + (rest >= point(number, period));
}

static u64 next_point(u64 time, u32 period)
{
	u64 number = clock_points(time, period);

	return number * period + point(number, period);
}

/* --- The timer of a CPU --- */

static enum hrtimer_restart interrupt(struct hrtimer *timer)
{
	struct clock *clock = container_of(timer, struct clock, timer);
	u64 now = ktime_get_ns() + clock->phase;
	u32 period = READ_ONCE(shortest);

	tick(clock->before, now, clock->phase);
	clock->before = now;
	if (!period)
		return HRTIMER_NORESTART;
	hrtimer_set_expires(timer, ns_to_ktime(next_point(now, period) - clock->phase));
	return HRTIMER_RESTART;
}

/* On its CPU, with interrupts disabled: it ticks at the present rate from now on. */
static void start(void *unused)
{
	struct clock *clock = this_cpu_ptr(&clocks);
	u64 now = ktime_get_ns() + clock->phase;
	u32 period = READ_ONCE(shortest);
	ktime_t next;

	if (!period)
		return;
	next = ns_to_ktime(next_point(now, period) - clock->phase);
	if (!hrtimer_is_queued(&clock->timer))
		clock->before = now;
	else if (hrtimer_get_expires(&clock->timer) <= next)
		return; /* who asks for other rates all the time does not put off the tick */
	hrtimer_start(&clock->timer, next, HRTIMER_MODE_ABS_PINNED);
}

/* --- The rates --- */

static bool is_faster(struct rb_node *one, const struct rb_node *other)
{
	return rb_entry(one, struct table, rate)->period <
	       rb_entry(other, struct table, rate)->period;
}

void clock_add(struct table *table)
{
	bool faster;

	spin_lock(&rates_lock);
	table->since = ktime_get_ns();
	rb_add_cached(&table->rate, &rates, is_faster);
	faster = !shortest || table->period < shortest;
	if (faster)
		WRITE_ONCE(shortest, table->period);
	spin_unlock(&rates_lock);
	if (!faster)
		return;
	cpus_read_lock(); /* a CPU on its way out is not started again */
	on_each_cpu(start, NULL, 1);
	cpus_read_unlock();
}

static void slow_down(struct work_struct *work)
{
	struct rb_node *fastest;

	spin_lock(&rates_lock);
	fastest = rb_first_cached(&rates);
	WRITE_ONCE(shortest, fastest ? rb_entry(fastest, struct table, rate)->period : 0);
	spin_unlock(&rates_lock);
}

/* After a second, so that who is on and off all the time does not interrupt all CPUs by that. */
void clock_remove(struct table *table)
{
	if (RB_EMPTY_NODE(&table->rate))
		return;
	spin_lock(&rates_lock);
	rb_erase_cached(&table->rate, &rates);
	spin_unlock(&rates_lock);
	schedule_delayed_work(&slower, HZ);
}

/* --- CPUs come and go --- */

static int come(unsigned int cpu)
{
	local_irq_disable();
	start(NULL);
	local_irq_enable();
	return 0;
}

static int go(unsigned int cpu)
{
	hrtimer_cancel(&per_cpu(clocks, cpu).timer);
	return 0;
}

int clock_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct clock *clock = per_cpu_ptr(&clocks, cpu);

		hrtimer_setup(&clock->timer, interrupt, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED);
		clock->phase = cpu * GOLDEN;
	}
	hotplug_state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "profil:clock", come, go);
	return min(hotplug_state, 0);
}

/* Nobody is on. */
void clock_exit(void)
{
	cancel_delayed_work_sync(&slower);
	cpuhp_remove_state(hotplug_state); /* which stops the timers */
}
