// SPDX-License-Identifier: GPL-2.0-only
/*
 * The points of a rate must not keep step with anything periodic, or ticks would hit the same code
 * each time. So the place of the point in its period moves on by a golden ratio each time: any
 * number of successive points are spread evenly over the period, and over the period of the
 * scheduler's tick, at which many tasks start that end before the next one. The rate stays exact.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "kmod/rates.h"

static DEFINE_SPINLOCK(lock);
static struct rb_root_cached rates = RB_ROOT_CACHED; /* in use, the fastest first */
static u32 shortest; /* what rates_shortest_period() returns; written with the lock held */

static void update_shortest(struct work_struct *work);
static DECLARE_DELAYED_WORK(update_work, update_shortest);

static void update_shortest(struct work_struct *work)
{
	struct rb_node *fastest;

	spin_lock(&lock);
	fastest = rb_first_cached(&rates);
	WRITE_ONCE(shortest, fastest ? rb_entry(fastest, struct rate, node)->period_ns : 0);
	spin_unlock(&lock);
}

static bool is_faster(struct rb_node *one, const struct rb_node *other)
{
	return rb_entry(one, struct rate, node)->period_ns <
	       rb_entry(other, struct rate, node)->period_ns;
}

void rate_init(struct rate *rate, u32 hz)
{
	RB_CLEAR_NODE(&rate->node);
	rate->period_ns = NSEC_PER_SEC / hz;
}

bool rate_add(struct rate *rate)
{
	bool fastest;

	spin_lock(&lock);
	rate->start_ns = ktime_get_ns();
	rb_add_cached(&rate->node, &rates, is_faster);
	fastest = !shortest || rate->period_ns < shortest;
	if (fastest)
		WRITE_ONCE(shortest, rate->period_ns);
	spin_unlock(&lock);
	return fastest;
}

void rate_remove(struct rate *rate)
{
	if (RB_EMPTY_NODE(&rate->node))
		return;
	spin_lock(&lock);
	rb_erase_cached(&rate->node, &rates);
	spin_unlock(&lock);
	schedule_delayed_work(&update_work, HZ);
}

u32 rates_shortest_period(void)
{
	return READ_ONCE(shortest);
}

/* Where in its period the point of this number is, in ns. */
static u32 point_in_period(u64 number, u32 period_ns)
{
	return mul_u32_u32((u32)number * GOLDEN_RATIO_FRACTION, period_ns) >> 32;
}

u64 rate_points(u64 time, u32 period_ns)
{
	u32 rest;
	u64 number = div_u64_rem(time, period_ns, &rest);

	return number + (rest >= point_in_period(number, period_ns));
}

u64 rate_next_point(u64 time, u32 period_ns)
{
	u64 number = rate_points(time, period_ns);

	return number * period_ns + point_in_period(number, period_ns);
}

void rates_exit(void)
{
	cancel_delayed_work_sync(&update_work);
}
