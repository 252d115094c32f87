// SPDX-License-Identifier: GPL-2.0-only
#include "profile/latency.h"

#include <errno.h>
#include <stdlib.h>

#include "util/order.h"

/*
 * A thread that runs all the time has as many ticks in so many periods, wherever these begin. In a
 * single one, one of another CPU at the edge would be in it or not by a microsecond. Bound: pace.
 */
#define PERIODS 3

ORDER(by_time, uint64_t, COMPARE(*a, *b))

int profile_add_latency(struct profile *p)
{
	const uint64_t tick_ns = profile_tick_ns(p), reach_ns = tick_ns * PERIODS / 2;
	size_t count = p->ticks.count, width = p->value_type_count, first = 0, last = 0;
	/* In order of time, with the number in ticks. */
	struct {
		uint64_t time_ns;
		size_t tick;
	} * ticks;
	int err;

	if (!count || !tick_ns || tick_ns > UINT64_MAX / PERIODS)
		return -EINVAL;
	err = profile_add_sum(p, PROFILE_SUM_LATENCY) ?: profile_widen_values(p, width);
	ticks = err ? NULL : malloc(count * sizeof(*ticks));
	if (!ticks)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		ticks[i].time_ns = p->ticks.times[i];
		ticks[i].tick = i;
	}
	qsort(ticks, count, sizeof(*ticks), by_time);
	for (size_t i = 0; i < count; i++) {
		uint64_t time_ns = ticks[i].time_ns, ran;
		size_t sample = p->ticks.numbers[ticks[i].tick];

		while (time_ns - ticks[first].time_ns >= reach_ns)
			first++;
		while (last < count && ticks[last].time_ns - time_ns < reach_ns)
			last++;
		ran = MAX(last - first, PERIODS);
		add_i64(&p->values[sample * (width + 1) + width],
			saturate_i64(tick_ns * PERIODS / ran));
	}
	free(ticks);
	return 0;
}
