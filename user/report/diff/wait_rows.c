// SPDX-License-Identifier: GPL-2.0-only
#include "report/diff/wait_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/thread_state.h"
#include "util/sum.h"

#define COUNTS	SIDES
#define SQUARES (2 * SIDES)

/* Squares are of microseconds: those of nanoseconds would not fit. */
static int64_t square(uint64_t ns)
{
	uint64_t us = ns / 1000;

	return us < INT32_MAX ? (int64_t)(us * us) : INT64_MAX;
}

/* Sets counts and squares of each sample. Returns 0 or -ENOMEM. */
static int count_waits(const struct profile *p, size_t wall, int64_t *counts, int64_t *squares)
{
	int64_t *rest = calloc(p->sample_count + 1, sizeof(*rest));

	if (!rest)
		return -ENOMEM;
	for (size_t i = 0; i < p->sample_count; i++) {
		const int64_t *values = &p->values[i * p->value_type_count];
		const int64_t ticks = values[PROFILE_SAMPLES];

		rest[i] = values[wall];
		if (profile_state_function(p, &p->samples[i]) || ticks <= 0)
			continue;
		counts[i] = ticks;
		squares[i] = square(rest[i] / ticks);
		squares[i] = squares[i] < INT64_MAX / ticks ? squares[i] * ticks : INT64_MAX;
		rest[i] = 0;
	}
	for (size_t i = 0; i < p->waits.count; i++) {
		const struct timed_wait *wait = &p->waits.waits[i];

		counts[wait->sample]++;
		add_i64(&squares[wait->sample], square(wait->length_ns));
		rest[wait->sample] -= (int64_t)wait->length_ns;
	}
	for (size_t i = 0; i < p->sample_count; i++) {
		if (rest[i] <= 0)
			continue;
		counts[i]++;
		add_i64(&squares[i], square(rest[i]));
	}
	free(rest);
	return 0;
}

int wait_rows_add(struct rows *rows, const struct profile *p, const struct rows_options *o,
		  enum comparison_side side)
{
	const size_t wall = profile_find_sum(p, PROFILE_SUM_WALL);
	int64_t *counts = calloc(p->sample_count + 1, sizeof(*counts));
	int64_t *squares = calloc(p->sample_count + 1, sizeof(*squares));
	struct rows_options weighed = *o;
	int err = counts && squares ? count_waits(p, wall, counts, squares) : -ENOMEM;

	err = err ?: rows_add(rows, p, o, wall, side);
	weighed.weights = counts;
	err = err ?: rows_add(rows, p, &weighed, wall, COUNTS + side);
	weighed.weights = squares;
	err = err ?: rows_add(rows, p, &weighed, wall, SQUARES + side);
	free(counts);
	free(squares);
	return err;
}

uint64_t wait_rows_count(const struct row *row, enum comparison_side side)
{
	return row->counts[COUNTS + side].self;
}

struct chance wait_rows_chance(const struct row *row, bool by_total, const double exposure[SIDES])
{
	struct chance_times sides[SIDES];

	for (int side = 0; side < SIDES; side++) {
		const struct callgraph_cost *sum = &row->counts[side];
		const struct callgraph_cost *count = &row->counts[COUNTS + side];
		const struct callgraph_cost *squares = &row->counts[SQUARES + side];

		sides[side] = (struct chance_times){
			.sum = (double)(by_total ? sum->total : sum->self) / 1e3,
			.squares = (double)(by_total ? squares->total : squares->self),
			.count = by_total ? count->total : count->self,
			.exposure = exposure[side],
		};
	}
	return chance_of_times(sides);
}
