/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_PERF_VALUES_H
#define PROFIL_FORMAT_PERF_VALUES_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"

/*
 * The values of a recording of several events. One event leads: the first value counts its samples,
 * the second is their CPU time if it is a clock, else the sum of their periods. Each other event
 * has a value, the sum of its periods. Which one leads is known when all samples were read; until
 * then each event has two values of the profile, its samples and its periods.
 */

/*
 * So many events become values; of wildcards such as syscalls:* the others are not read.
 * Bound: files: events of a file; then: samples of others are ignored.
 */
#define PERF_EVENTS_MAX 64

/* The name of a thread that had ended when its sample came: the kernel has no numbers for it. */
#define PERF_ENDED "[exited]"

/* What a reader warns of then; with the number of their samples. */
#define PERF_OTHERS_WARNING "%" PRIu64 " samples of more than the first 64 events are not read"

/* The first of these kinds that has samples leads; of several events the one with the most. */
enum perf_event_kind {
	PERF_EVENT_CLOCK, /* cpu-clock, task-clock */
	PERF_EVENT_CYCLES,
	PERF_EVENT_OTHER
};

struct perf_values {
	struct perf_event {
		const char *name; /* a string of the profile */
		enum perf_event_kind kind;
		bool has_periods; /* else its samples are what is known */
		uint64_t period;  /* of each of its samples, if that is known; else 0 */
		uint64_t samples;
	} events[PERF_EVENTS_MAX];
	uint32_t count;
};

/*
 * Sets *number to that of the event with this name, which is added if there is none; PROFILE_NONE:
 * there are too many. The name of cycles is that of all kinds of CPU. Returns 0 or -ENOMEM.
 */
int perf_values_find(struct perf_values *v, struct profile *p, const char *name,
		     enum perf_event_kind kind, uint32_t *number);

/* Adds a sample of the event with this period to a sample of the profile. */
void perf_values_add(struct profile *p, uint32_t sample, uint32_t number, uint64_t period);

/* The number of the event that leads, by the samples of each; PROFILE_NONE: there is no event. */
uint32_t perf_values_lead(const struct perf_values *v);

/*
 * Replaces the values of the profile by those of the leading event and the others that have
 * samples, and sets p->event. Returns 0 or -ENOMEM.
 */
int perf_values_end(const struct perf_values *v, struct profile *p);

#endif
