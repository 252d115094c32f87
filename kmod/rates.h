/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rates in use, and the points in time at which each has a tick. A rate divides the time of a
 * CPU into periods and has one point in each.
 */
#ifndef PROFIL_KMOD_RATES_H
#define PROFIL_KMOD_RATES_H

#include <linux/rbtree.h>
#include <linux/types.h>

/* 2^32 times the fractional part of the golden ratio. */
#define GOLDEN_RATIO_FRACTION 0x9e3779b9U

struct rate {
	struct rb_node node; /* in the tree of rates in use; clear: it is not in use */
	u64 start_ns;	     /* when it was added; its earlier points are not counted */
	u32 period_ns;
};

/* Initializes a rate of `hz` ticks per second, 1 at least. It is not in use yet. */
void rate_init(struct rate *rate, u32 hz);

/*
 * Puts a rate to use from now on. Returns whether it is now the fastest, so that timers that run
 * already are too slow for it.
 */
bool rate_add(struct rate *rate);

/*
 * Ends the use of a rate; nothing happens if it was never added. Callable with preemption disabled.
 * Timers keep their period for a second, so that a process that starts and stops again and again
 * does not interrupt all CPUs each time.
 */
void rate_remove(struct rate *rate);

/* The period of the fastest rate in use, in ns; 0: no rate is in use. Takes no lock. */
u32 rates_shortest_period(void);

/* How many points with this period there are up to `time`. */
u64 rate_points(u64 time, u32 period_ns);

/* The time of the first point after `time`. */
u64 rate_next_point(u64 time, u32 period_ns);

/* No rate may be in use any more. */
void rates_exit(void);

#endif
