// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "format/pprof/pprof.h"

uint64_t pprof_unit_ns(const char *unit)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "nanoseconds", 1 },
		{ "microseconds", 1000 },
		{ "milliseconds", 1000000 },
		{ "seconds", 1000000000 },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (strcmp(unit, units[i].name) == 0)
			return units[i].ns;
	return 0;
}

/* Whether value `time` of each sample is its value `count` multiplied by the period. */
static bool is_time_of(const struct profile *p, size_t time, size_t count)
{
	uint64_t ns = pprof_unit_ns(p->value_types[time].unit);

	if (!ns || !p->period_ns || strcmp(p->value_types[count].unit, "count") != 0)
		return false;
	for (size_t i = 0; i < p->sample_count; i++) {
		const int64_t *values = p->values + i * p->value_type_count;

		if ((__int128)values[time] * ns != (__int128)values[count] * p->period_ns)
			return false;
	}
	return true;
}

/* The last value that is not 0 in all samples; the last, if all are. */
static size_t last_counted(const struct profile *p)
{
	for (size_t value = p->value_type_count; value-- > 0;)
		for (size_t i = 0; i < p->sample_count; i++)
			if (p->values[i * p->value_type_count + value])
				return value;
	return p->value_type_count - 1;
}

size_t pprof_default_value(const struct profile *p)
{
	size_t last;

	/* Only recordings of profiltool have these. */
	if (*p->event || p->totals.known)
		return profile_value(p, NULL);
	last = last_counted(p);
	for (size_t i = 0; i < last; i++)
		if (is_time_of(p, last, i))
			return i;
	return last;
}
