// SPDX-License-Identifier: GPL-2.0-only
#include "report/time_slot.h"

#include <stdio.h>
#include <time.h>

#include "util/clock.h"

/* Bound: size. */
#define MOST_SLOTS 60

uint64_t time_slot_count(const struct time_interval *interval, uint64_t step_ns)
{
	uint64_t first = interval->since_ns / step_ns;

	return interval->until_ns > interval->since_ns
		       ? (interval->until_ns - 1) / step_ns + 1 - first
		       : 0;
}

uint64_t time_slot_step(const struct time_interval *interval)
{
	static const uint64_t steps_ms[] = {
		10,    20,    50,    100,    200,    500,     1000,    2000,	    5000,
		10000, 30000, 60000, 300000, 600000, 1800000, 3600000, 6 * 3600000, 24 * 3600000,
	};
	const size_t count = sizeof(steps_ms) / sizeof(*steps_ms);
	const uint64_t day_ns = steps_ms[count - 1] * NS_PER_MS;
	uint64_t days;

	for (size_t i = 0; i < count; i++)
		if (time_slot_count(interval, steps_ms[i] * NS_PER_MS) <= MOST_SLOTS)
			return steps_ms[i] * NS_PER_MS;
	/* Where it does not begin at a multiple, the last slot may be one too many. */
	days = time_slot_count(interval, day_ns) / MOST_SLOTS;
	while (time_slot_count(interval, days * day_ns) > MOST_SLOTS)
		days++;
	return days * day_ns;
}

const char *time_slot_text(uint64_t start_ns, uint64_t step_ns, bool utc,
			   char buffer[TABLE_CELL_SIZE])
{
	const char *format = utc			 ? "%Y-%m-%dT%H:%M:%S"
			     : step_ns % (60 * NS_PER_S) ? "%Y-%m-%d %H:%M:%S"
							 : "%Y-%m-%d %H:%M";
	uint64_t seconds = start_ns / NS_PER_S;
	char fraction[8] = "";

	if (step_ns % NS_PER_S)
		snprintf(fraction, sizeof(fraction), ".%03u",
			 (unsigned int)(start_ns % NS_PER_S / NS_PER_MS));
	snprintf(buffer, TABLE_CELL_SIZE, "%.20s%s%.7s", time_text(seconds, utc, format).text,
		 fraction, time_text(seconds, utc, utc ? "Z" : " %Z").text);
	return buffer;
}
