/* SPDX-License-Identifier: GPL-2.0-only */
/* Work to be profiled: arithmetic and memory, within and beyond the first cache. */
#ifndef TESTS_BENCH_WORK_H
#define TESTS_BENCH_WORK_H

#include <stdint.h>

#define WORK_CELLS (1U << 19) /* 2 MiB */

static uint32_t work_cells[WORK_CELLS];
static volatile uint32_t work_sink;

static __attribute__((noinline)) void work_prepare(void)
{
	uint32_t x = 1;

	for (uint32_t i = 0; i < WORK_CELLS; i++) {
		x = x * 1664525 + 1013904223;
		work_cells[i] = x >> 8;
	}
}

static __attribute__((noinline)) uint32_t work_wander(uint32_t at, unsigned int steps)
{
	while (steps--)
		at = (work_cells[at & (WORK_CELLS - 1)] + steps) ^ at >> 3;
	return at;
}

static __attribute__((noinline)) uint32_t work_sum(uint32_t from, uint32_t count)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i < count; i++)
		total = (total << 1 | total >> 31) + work_cells[(from + i) & (WORK_CELLS - 1)];
	return total;
}

static inline void work_for(unsigned long rounds)
{
	uint32_t x = 1;

	for (unsigned long i = 0; i < rounds; i++)
		x = work_wander(x, 20000) + work_sum(x, 200000);
	work_sink = x;
}

#endif
