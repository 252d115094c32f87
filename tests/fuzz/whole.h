/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TESTS_WHOLE_H
#define PROFIL_TESTS_WHOLE_H

/* What the fuzzers share: whether a profile is whole in itself, whatever it was made from. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "profile/profile.h"

static inline void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "the profile is not whole: %s\n", what);
	abort();
}

static inline void check_locations(const struct profile *p)
{
	for (size_t i = 0; i < p->mapping_count; i++)
		require(p->mappings[i].image < p->image_count, "a mapping's image");
	for (size_t i = 0; i < p->line_count; i++)
		require(p->lines[i].function < p->function_count, "a line's function");
	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];

		require(l->mapping == PROFILE_NONE || l->mapping < p->mapping_count,
			"a location's mapping");
		require((uint64_t)l->first_line + l->line_count <= p->line_count,
			"a location's lines");
	}
}

static inline void check_samples(const struct profile *p)
{
	require(p->value_type_count > 0 || p->sample_count == 0, "samples without a value");
	require(profile_value(p, NULL) < (p->value_type_count ?: 1), "the value that is shown");
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *s = &p->samples[i];

		require(s->labels < p->label_count, "a sample's labels");
		require(s->first_frame + s->depth <= p->frame_count, "a sample's frames");
	}
	for (size_t i = 0; i < p->frame_count; i++)
		require(p->frames[i] < p->location_count, "a frame's location");
	for (size_t i = 0; i < p->arc_count; i++)
		require(p->arcs[i].from < p->location_count && p->arcs[i].to < p->location_count,
			"an arc's ends");
	for (size_t i = 0; i < p->extra_count; i++)
		require(p->extras[i].image == PROFILE_NONE || p->extras[i].image < p->image_count,
			"an extra's image");
}

/* A sample has at most as many times as it counts. */
static inline void check_ticks(const struct profile *p)
{
	uint64_t *counts = calloc(p->sample_count + 1, sizeof(*counts));

	require(counts, "memory");
	for (size_t i = 0; i < p->ticks.count; i++) {
		require(p->ticks.numbers[i] < p->sample_count, "a tick's sample");
		counts[p->ticks.numbers[i]]++;
	}
	for (size_t i = 0; i < p->sample_count; i++)
		require(!counts[i] || p->values[i * p->value_type_count + PROFILE_SAMPLES] >=
					      (int64_t)counts[i],
			"the number of a sample's times");
	free(counts);
}

/* A sample has no longer waits than its value, and none is after all time. */
static inline void check_waits(const struct profile *p)
{
	size_t width = p->value_type_count, wall = profile_find_sum(p, PROFILE_SUM_WALL);
	uint64_t *sums = calloc(p->sample_count + 1, sizeof(*sums));

	require(sums, "memory");
	require(wall < width || !p->waits.count, "waits without a value");
	for (size_t i = 0; i < p->waits.count; i++) {
		const struct timed_wait *wait = &p->waits.waits[i];

		require(wait->sample < p->sample_count, "a wait's sample");
		require(wait->length_ns <= INT64_MAX - wait->since_ns, "a wait's end");
		require(!__builtin_add_overflow(sums[wait->sample], wait->length_ns,
						&sums[wait->sample]),
			"the sum of waits");
	}
	for (size_t i = 0; i < p->sample_count; i++)
		require(!sums[i] || p->values[i * width + wall] >= (int64_t)sums[i],
			"the length of a sample's waits");
	free(sums);
}

#endif
