// SPDX-License-Identifier: GPL-2.0-only
#include "report/diff/comparison.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/thread_state.h"
#include "util/order.h"
#include "util/sum.h"

static const char *const side_names[] = { [OLD] = "old", [NEW] = "new" };

double comparison_seconds(const struct comparison *c, enum comparison_side side)
{
	const struct profile *p = c->profiles[side];

	return profile_meaning(p, profile_value(p, c->value)).seconds *
	       (double)profile_total(p, c->value);
}

int64_t comparison_value(const struct comparison *c, const struct row *row,
			 enum comparison_side side)
{
	return c->rows.by_total ? row->counts[side].total : row->counts[side].self;
}

/* True if wall time of both is compared, of which chance judges the waits. */
static bool is_of_waits(const struct comparison *c)
{
	for (size_t side = 0; side < SIDES; side++) {
		const struct profile *p = c->profiles[side];

		if (!p->value_type_count ||
		    profile_sum(p, profile_value(p, c->value)) != PROFILE_SUM_WALL)
			return false;
	}
	return true;
}

/* Collects the rows with something to compare, and their amounts. Returns 0 or -ENOMEM. */
static int collect_rows(struct comparison *c, const struct rows_options *o,
			const struct profile_meaning *meanings)
{
	struct rows_options both = *o;
	int err;

	both.base_names = true; /* a new build can be in another directory */
	err = rows_begin(&c->rows, &both, is_of_waits(c) ? WAIT_ROWS_COLUMNS : SIDES);
	for (size_t side = 0; side < SIDES && !err; side++) {
		const struct profile *p = c->profiles[side];

		if (is_of_waits(c))
			err = wait_rows_add(&c->rows, p, &both, side);
		else
			err = rows_add(&c->rows, p, &both, profile_value(p, o->value), side);
	}
	err = err ?: rows_finish(&c->rows);
	if (err)
		return err;
	c->compared = calloc(c->rows.count + 1, sizeof(*c->compared));
	if (!c->compared)
		return -ENOMEM;
	for (size_t i = 0; i < c->rows.count; i++) {
		struct compared *compared = &c->compared[c->count];
		const struct row *row = &c->rows.rows[i];

		if (!comparison_value(c, row, OLD) && !comparison_value(c, row, NEW))
			continue;
		c->count++;
		compared->row = row;
		for (size_t side = 0; side < SIDES; side++) {
			double value = (double)comparison_value(c, row, side);
			double all = (double)c->rows.columns[side].samples;
			double recorded_s = (double)c->profiles[side]->duration_ns / 1e9;

			if (c->amount == AMOUNT_SHARE)
				compared->amount[side] = all > 0 ? value * 100 / all : 0;
			else
				compared->amount[side] = value * meanings[side].seconds;
			if (c->amount == AMOUNT_RATE)
				compared->amount[side] = compared->amount[side] * 1000 / recorded_s;
		}
		compared->difference = compared->amount[NEW] - compared->amount[OLD];
	}
	return 0;
}

/* count: not negative */
static uint64_t to_samples(uint64_t count, const struct profile_meaning *meaning)
{
	return meaning->samples == 1 ? count : (uint64_t)((double)count * meaning->samples + 0.5);
}

/* Sets all_p, and what chance says of each row. Returns 0 or -ENOMEM. */
static int find_significant(struct comparison *c, const struct profile_meaning *meanings)
{
	double **p = calloc(c->count + 1, sizeof(*p));
	uint64_t counts[SIDES], all[SIDES];
	/* How many samples a side would have if the amounts were equal, as far as is known. */
	double exposure[SIDES], wait_exposure[SIDES] = { 1, 1 };
	const bool waits = is_of_waits(c);
	size_t tested = 0;

	if (!p)
		return -ENOMEM;
	for (size_t side = 0; side < SIDES; side++) {
		if (c->amount == AMOUNT_SHARE)
			wait_exposure[side] = fmax((double)c->rows.columns[side].samples, 1);
		else if (c->amount == AMOUNT_RATE)
			wait_exposure[side] = (double)c->profiles[side]->duration_ns;
		all[side] =
			to_samples(magnitude_u64(c->rows.columns[side].samples), &meanings[side]);
		exposure[side] = meanings[side].samples / meanings[side].seconds;
	}
	if (!waits && (c->all_rate[OLD] > 0 || c->all_rate[NEW] > 0)) {
		double rate_exposure[SIDES];

		for (size_t side = 0; side < SIDES; side++)
			rate_exposure[side] =
				exposure[side] * (double)c->profiles[side]->duration_ns;
		c->all_p = chance_of_counts(all[OLD], all[NEW],
					    rate_exposure[OLD] /
						    (rate_exposure[OLD] + rate_exposure[NEW]))
				   .p;
		if (c->amount == AMOUNT_RATE)
			memcpy(exposure, rate_exposure, sizeof(exposure));
	}
	for (size_t i = 0; i < c->count; i++) {
		struct compared *row = &c->compared[i];

		for (size_t side = 0; side < SIDES; side++)
			counts[side] =
				to_samples(comparison_value(c, row->row, side), &meanings[side]);
		if (waits)
			row->chance = wait_rows_chance(row->row, c->rows.by_total, wait_exposure);
		else if (c->amount == AMOUNT_SHARE)
			row->chance =
				chance_of_shares(counts[OLD], all[OLD], counts[NEW], all[NEW]);
		else
			row->chance =
				chance_of_counts(counts[OLD], counts[NEW],
						 exposure[OLD] / (exposure[OLD] + exposure[NEW]));
		if (row->chance.least <= CHANCE_LEVEL)
			p[tested++] = &row->chance.p;
		else
			row->chance.p = 1;
	}
	chance_correct(p, tested);
	for (size_t i = 0; i < tested; i++)
		c->significant += *p[i] <= CHANCE_LEVEL;
	free(p);
	return 0;
}

ORDER(compare_effects, struct compared,
      COMPARE(fabs(b->difference), fabs(a->difference)) ?: rows_compare(a->row, b->row))

bool comparison_is_of_times(const struct comparison *c)
{
	for (size_t side = 0; side < SIDES; side++) {
		const struct profile *p = c->profiles[side];
		size_t value = profile_value(p, c->value);

		if (value >= p->value_type_count || (profile_sum(p, value) != PROFILE_SUM_WALL &&
						     profile_sum(p, value) != PROFILE_SUM_DELAY))
			return false;
	}
	return true;
}

int comparison_make(struct comparison *c, const struct profile *earlier,
		    const struct profile *later, const struct comparison_options *o,
		    struct error *e)
{
	const char *value = o->rows.value;
	struct profile_meaning meanings[] = {
		profile_meaning(earlier, profile_value(earlier, value)),
		profile_meaning(later, profile_value(later, value)),
	};
	size_t kept = 0;
	bool has_rate;

	*c = (struct comparison){
		.profiles = { earlier, later },
		.value = value,
		.amount = o->amount,
		.all_p = 1,
	};
	has_rate = meanings[OLD].seconds > 0 && meanings[NEW].seconds > 0 && earlier->duration_ns &&
		   later->duration_ns;
	for (size_t side = 0; side < SIDES && has_rate; side++)
		c->all_rate[side] =
			comparison_seconds(c, side) * 1e12 / (double)c->profiles[side]->duration_ns;
	if (c->amount == AMOUNT_AUTO) {
		bool selected =
			earlier->all_samples || later->all_samples || comparison_is_of_times(c);

		c->amount = selected && has_rate ? AMOUNT_RATE : AMOUNT_SHARE;
	}
	for (size_t side = 0; side < SIDES; side++) {
		if (c->amount == AMOUNT_RATE && !c->profiles[side]->duration_ns) {
			error_set(e, 0, "the %s profile does not hold how long it was recorded",
				  side_names[side]);
			return error_hint(e, "--normalize share compares their shares");
		}
		if (c->amount != AMOUNT_SHARE && !(meanings[side].seconds > 0)) {
			error_set(e, 0, "the %s profile does not hold the time of its counts",
				  side_names[side]);
			return error_hint(e, "--normalize share compares their shares");
		}
		if (o->significant && !(meanings[side].samples > 0) && !is_of_waits(c))
			return error_set(e, 0,
					 "the %s profile counts no samples: significance "
					 "cannot be computed",
					 side_names[side]);
	}
	c->has_p = is_of_waits(c) || (meanings[OLD].samples > 0 && meanings[NEW].samples > 0);
	if (collect_rows(c, &o->rows, meanings) || (c->has_p && find_significant(c, meanings)))
		return error_no_memory(e);
	for (size_t i = 0; i < c->count; i++)
		if (!o->significant || c->compared[i].chance.p <= CHANCE_LEVEL)
			c->compared[kept++] = c->compared[i];
	c->omitted = c->count - kept;
	c->count = kept;
	if (c->count)
		qsort(c->compared, c->count, sizeof(*c->compared), compare_effects);
	return 0;
}

void comparison_free(struct comparison *c)
{
	rows_free(&c->rows);
	free(c->compared);
	*c = (struct comparison){ 0 };
}

/* --- Rows of waits --- */

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
