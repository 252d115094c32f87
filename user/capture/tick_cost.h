/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_TICK_COST_H
#define PROFIL_CAPTURE_TICK_COST_H

#include <stdint.h>

/* What a tick of a timer perf event costs without a program. Zero-initialised is unknown. */
struct tick_cost {
	uint64_t ns;	  /* 0: unknown */
	uint64_t next_ns; /* when it is measured again */
	long cpus;	  /* that there were when it was measured */
};

/*
 * Measures it: by the gaps that such an event causes in a loop that reads the clock. Takes 3 ms, up
 * to 30 ms on a busy machine, so it is done each hour, when CPUs have come or gone, and while it is
 * unknown. If it cannot be measured now, the last one stays.
 */
void tick_cost_update(struct tick_cost *cost, uint64_t now);

#endif
