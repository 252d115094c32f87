// SPDX-License-Identifier: GPL-2.0-only
#include "capture/tick_cost.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/perf_event.h"
#include "util/clock.h"

/* Bound: pace. */
#define PERIOD_NS 100000
#define GAPS	  32	   /* enough for a median */
#define LIMIT_NS  30000000 /* on a busy machine, other tasks run meanwhile */
/* Two reads of the clock take some 50 ns, every interrupt takes longer than this. Bound: pace. */
#define SHORTEST_NS 400
#define AGAIN_NS    (3600 * NS_PER_S)

static int ascending(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static uint64_t cost_of_interrupt(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = PERIOD_NS,
	};
	uint64_t gaps[GAPS], start = now_ns(), before = start;
	size_t count = 0;
	int fd = perf_event_open(&attr, -1, sched_getcpu());

	if (fd < 0)
		return 0;
	while (count < GAPS && before - start < LIMIT_NS) {
		uint64_t now = now_ns();

		if (now - before > SHORTEST_NS)
			gaps[count++] = now - before;
		before = now;
	}
	close(fd);
	if (count < GAPS / 4)
		return 0;
	/* The median: other interrupts and other tasks cause gaps too, but few. */
	qsort(gaps, count, sizeof(*gaps), ascending);
	return gaps[count / 2];
}

void tick_cost_update(struct tick_cost *cost, uint64_t now)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (cost->ns && cpus == cost->cpus && now < cost->next_ns)
		return;
	cost->ns = cost_of_interrupt() ?: cost->ns;
	cost->cpus = cpus;
	cost->next_ns = now + AGAIN_NS;
}
