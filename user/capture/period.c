// SPDX-License-Identifier: GPL-2.0-only
#include "capture/period.h"

#include <stdbool.h>
#include <string.h>

#include "util/clock.h"

/* The parts of the scheduler's tick: a phase is met when a tick has come in its part. */
#define MOST_PARTS 64

/* So many ticks, at least, for all phases. */
#define LEAST_TICKS 256

/* How many parts so many ticks can be asked to meet: chance would leave out 1 in 50 of them. */
static unsigned int parts_of(unsigned int ticks)
{
	return ticks / 6 < MOST_PARTS ? ticks / 6 : MOST_PARTS;
}

static bool meets_all(uint64_t period, uint64_t tick_ns, unsigned int ticks)
{
	unsigned int parts = parts_of(ticks), met = 0;
	bool seen[MOST_PARTS];
	uint64_t phase = 0;

	memset(seen, 0, sizeof(seen));
	for (unsigned int i = 0; i < ticks && met < parts; i++) {
		unsigned int part = phase * parts / tick_ns;

		met += !seen[part];
		seen[part] = true;
		phase = (phase + period) % tick_ns;
	}
	return met == parts;
}

uint64_t period_choose(unsigned int frequency, uint64_t tick_ns)
{
	uint64_t nominal = NS_PER_S / frequency, most = nominal / 200;
	unsigned int ticks = frequency > LEAST_TICKS ? frequency : LEAST_TICKS;

	if (!tick_ns)
		return nominal;
	/* Steps of 0.005 %, and no whole part of anything. */
	for (uint64_t i = 0, step = nominal / 20011 ?: 1; i * step <= most; i++) {
		if (meets_all(nominal + i * step, tick_ns, ticks))
			return nominal + i * step;
		if (meets_all(nominal - i * step, tick_ns, ticks))
			return nominal - i * step;
	}
	return nominal;
}
