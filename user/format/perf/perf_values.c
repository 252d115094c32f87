// SPDX-License-Identifier: GPL-2.0-only
#include "format/perf/perf_values.h"

#include <errno.h>
#include <string.h>

#include "util/sum.h"

/* The values of an event while samples are read */
enum {
	EVENT_SAMPLES,
	EVENT_PERIODS,
	EVENT_VALUES
};

int perf_values_find(struct perf_values *v, struct profile *p, const char *name,
		     enum perf_event_kind kind, uint32_t *number)
{
	struct perf_event event = { .kind = kind };
	size_t width = p->value_type_count;

	/* "cpu_core/cycles/", "cpu_atom/cycles/": a program runs on either. */
	if (profile_string(p, kind == PERF_EVENT_CYCLES && strchr(name, '/') ? "cycles" : name,
			   &event.name))
		return -ENOMEM;
	for (*number = 0; *number < v->count; ++*number)
		if (v->events[*number].name == event.name)
			return 0;
	if (v->count == PERF_EVENTS_MAX) {
		*number = PROFILE_NONE;
		return 0;
	}
	for (int i = 0; i < EVENT_VALUES; i++)
		if (profile_add_value_type(p, event.name, "count"))
			return -ENOMEM;
	v->events[v->count++] = event;
	return profile_widen_values(p, width);
}

void perf_values_add(struct profile *p, uint32_t sample, uint32_t number, uint64_t period)
{
	int64_t *values =
		p->values + (size_t)sample * p->value_type_count + (size_t)number * EVENT_VALUES;

	add_i64(&values[EVENT_SAMPLES], 1);
	add_i64(&values[EVENT_PERIODS], saturate_i64(period));
}

uint32_t perf_values_lead(const struct perf_values *v)
{
	uint32_t lead = v->count ? 0 : PROFILE_NONE;

	for (uint32_t i = 1; i < v->count; i++) {
		const struct perf_event *e = &v->events[i], *best = &v->events[lead];

		if (!e->samples != !best->samples ? e->samples > 0
		    : e->kind != best->kind	  ? e->kind < best->kind
						  : e->samples > best->samples)
			lead = i;
	}
	return lead;
}

int perf_values_end(const struct perf_values *v, struct profile *p)
{
	size_t width = p->value_type_count, count;
	uint32_t number = perf_values_lead(v), others[PERF_EVENTS_MAX];
	const struct perf_event *lead;
	bool is_clock;
	int err;

	p->value_type_count = 0;
	if (number == PROFILE_NONE)
		return profile_add_sum(p, PROFILE_SUM_SAMPLES);
	lead = &v->events[number];
	p->event = lead->name;
	is_clock = lead->kind == PERF_EVENT_CLOCK || !lead->has_periods;
	if (is_clock) {
		err = profile_add_clock(p, lead->kind == PERF_EVENT_CLOCK ? lead->period : 0);
	} else {
		err = profile_add_sum(p, PROFILE_SUM_SAMPLES)
			      ?: profile_add_value_type(p, lead->name, "count");
		p->value_types[PROFILE_SAMPLES].period = lead->period;
		p->default_value = 2; /* what perf's percentages are of */
	}
	count = p->value_type_count;
	for (uint32_t i = 0; i < v->count && !err; i++) {
		const struct perf_event *e = &v->events[i];
		bool is_time = e->kind == PERF_EVENT_CLOCK && e->has_periods;

		if (i == number || !e->samples)
			continue;
		others[p->value_type_count - count] = i;
		err = profile_add_value_type(p, e->name, is_time ? "nanoseconds" : "count");
	}
	if (err)
		return err;
	/* The rows become shorter, or are as long: the two values of each event become one. */
	for (size_t i = 0; i < p->sample_count; i++) {
		const int64_t *from = p->values + i * width;
		int64_t row[PERF_EVENTS_MAX + 1] = { from[number * EVENT_VALUES + EVENT_SAMPLES],
						     from[number * EVENT_VALUES + EVENT_PERIODS] };

		if (is_clock)
			profile_set_ticks(p, row[PROFILE_SAMPLES], row);
		for (size_t k = count; k < p->value_type_count; k++) {
			const struct perf_event *e = &v->events[others[k - count]];

			row[k] = from[others[k - count] * EVENT_VALUES +
				      (e->has_periods ? EVENT_PERIODS : EVENT_SAMPLES)];
		}
		memcpy(p->values + i * p->value_type_count, row,
		       p->value_type_count * sizeof(*row));
	}
	return 0;
}
