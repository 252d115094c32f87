// SPDX-License-Identifier: GPL-2.0-only
#include "capture/period.h"

#include <stdbool.h>
#include <string.h>

#include "util/clock.h"

/* The scheduler's period is divided into up to this many parts. Bound: size. */
#define PARTS_MAX 64

/* The least number of ticks in which all parts must be met. */
#define TICKS_MIN 256

static bool meets_all(uint64_t period, uint64_t tick_ns, unsigned int ticks)
{
	/* Of more parts, even random ticks would often miss one. */
	unsigned int parts = ticks / 6 < PARTS_MAX ? ticks / 6 : PARTS_MAX, met = 0;
	bool seen[PARTS_MAX];
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
	uint64_t nominal = NS_PER_S / frequency, max_shift = nominal / 200;
	unsigned int ticks = frequency > TICKS_MIN ? frequency : TICKS_MIN;

	if (!tick_ns)
		return nominal;
	/* Steps of 0.005 %; 20011 is a prime. */
	for (uint64_t i = 0, step = nominal / 20011 ?: 1; i * step <= max_shift; i++) {
		if (meets_all(nominal + i * step, tick_ns, ticks))
			return nominal + i * step;
		if (meets_all(nominal - i * step, tick_ns, ticks))
			return nominal - i * step;
	}
	return nominal;
}
