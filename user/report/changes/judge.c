// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/changes/data.h"
#include "util/array.h"
#include "util/clock.h"

/* More of one side is not compared: what a service did days ago says little. */
#define SIDE_NS (24 * 3600 * NS_PER_S)

/*
 * A side is divided into so many parts of equal length at most, by whose scatter chance is judged:
 * the longer a part, the less does it depend on the one before. With fewer than the least, nothing
 * is known of it.
 */
#define MOST_PARTS  6
#define LEAST_PARTS 3

/* How much a part depends on the one before is known badly from so few. */
#define MOST_DEPENDENCE 0.7

/* A function in nearly all stacks is what all is compared with. */
#define ALL 0.99

/* The part of a function's time that its main caller has, and the p of parts that are not alike. */
#define MAIN_CALLER 0.8
#define NOT_ALIKE   0.01

/* A function with fewer ticks on both sides together is not compared. */
#define LEAST_TICKS 50

/* Of a function that takes part in the scale: it must be known well, and there must be some. */
#define SCALE_TICKS	100
#define SCALE_FUNCTIONS 5

/* One of so many that are reported differs by chance. */
#define FALSE_DISCOVERIES 0.05

/* --- Student's t --- */

/* The continued fraction of the incomplete beta function: Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), value;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	value = d;
	for (int m = 1; m < 300; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		value *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		step = d * c;
		value *= step;
		if (fabs(step - 1) < 1e-12)
			break;
	}
	return value;
}

/* The regularized incomplete beta function. */
static double beta(double a, double b, double x)
{
	int sign;
	double front;

	if (x <= 0 || x >= 1)
		return x >= 1;
	front = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) + a * log(x) +
		    b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* The probability that |t| is as large or larger. */
static double student(double t, double freedom)
{
	return beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

/* The t that |t| exceeds with a probability of 0.05. */
static double student_95(double freedom)
{
	double low = 1.9, high = 1000;

	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2;

		if (student(middle, freedom) > 0.05)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* --- Shares and their scatter --- */

/* The parts of one side of a change. */
struct side {
	const uint32_t *parts; /* of each block, from 1 on; 0: none */
	size_t count;
	double all[MOST_PARTS + 1]; /* what the service took in each part */
	double sum, ticks;
};

struct share {
	double share, variance, freedom;
	double last; /* the share in the second half */
};

/*
 * The share of a part of the service's time, as a ratio of two sums over parts, each of which
 * scatters. Not below what chance does with so many ticks.
 */
static struct share share_of(const struct changes_cells *c, bool total, const struct side *side)
{
	double of[MOST_PARTS + 1] = { 0 }, sum = 0, squares = 0, least, late = 0, late_all = 0;
	double before = 0, products = 0, dependence;
	struct share s = { .freedom = (double)side->count - 1 };

	for (size_t i = 0; i < c->count; i++)
		if (side->parts[c->cells[i].block]) {
			double value = (double)(total ? c->cells[i].total : c->cells[i].self);

			of[side->parts[c->cells[i].block]] += value;
			sum += value;
		}
	s.share = sum / side->sum;
	for (size_t i = 1; i <= side->count; i++) {
		double rest = of[i] - s.share * side->all[i];

		squares += rest * rest;
		products += rest * before;
		before = rest;
		if (2 * i > side->count) {
			late += of[i];
			late_all += side->all[i];
		}
	}
	s.last = late_all > 0 ? late / late_all : s.share;
	s.variance = squares * (double)side->count / s.freedom / (side->sum * side->sum);
	/* Parts that depend on each other tell less; of so few, the sum is too small by 1 of them.
	 */
	dependence = squares > 0 ? products / squares + 1 / (double)side->count : 0;
	dependence = fmin(fmax(dependence, 0), MOST_DEPENDENCE);
	s.variance *= (1 + dependence) / (1 - dependence);
	least = s.share * (1 - s.share) / side->ticks;
	if (s.variance < least)
		s.variance = least;
	return s;
}

/* --- One change --- */

struct candidate {
	struct change_row row;
	uint32_t change;
	const struct changes_function *function;
	double lasting; /* the difference in the second half of the time after */
	bool alike;	/* it takes the same part of its caller's time */
	bool differs;
};

struct judge {
	struct changes *c;
	const struct changes_options *o;
	struct candidate *candidates;
	size_t count, room;
	uint32_t *parts; /* scratch: of each block, for each side */
	double *ratios;
	size_t ratio_room;
};

/*
 * Divides the blocks of a host that lie in a span, and in which the service ran, into parts. Sets
 * the span to what they have.
 */
static void divide(struct judge *j, struct change *change, enum change_side number,
		   struct side *side)
{
	struct changes_data *d = j->c->data;
	const struct changes_service *s = &d->services[change->number];
	struct change_span *span = &change->spans[number];
	uint32_t *parts = j->parts + number * d->block_count;
	uint64_t since_ns = span->since_ns, until_ns = span->until_ns;
	size_t count = 0, each, seen = 0;

	memset(parts, 0, d->block_count * sizeof(*parts));
	*side = (struct side){ .parts = parts };
	for (size_t i = 0; i < s->cells.count; i++) {
		const struct changes_block *b = &d->blocks[s->cells.cells[i].block];

		if (b->start_ns >= since_ns && b->limit_ns <= until_ns)
			count++;
	}
	*span = (struct change_span){ 0 };
	if (count < LEAST_PARTS)
		return;
	side->count = count < MOST_PARTS ? count : MOST_PARTS;
	each = count / side->count + (count % side->count > 0);
	side->count = (count + each - 1) / each;
	for (size_t i = 0; i < s->cells.count; i++) {
		const struct changes_cell *cell = &s->cells.cells[i];
		const struct changes_block *b = &d->blocks[cell->block];
		size_t part;

		if (b->start_ns < since_ns || b->limit_ns > until_ns)
			continue;
		part = seen++ / each + 1;
		parts[cell->block] = part;
		side->all[part] += (double)cell->total;
		side->sum += (double)cell->total;
		side->ticks += (double)cell->ticks;
		span->since_ns = span->since_ns ?: b->start_ns;
		span->until_ns = b->limit_ns;
		span->ticks += cell->ticks;
		span->recorded_ns += b->recorded_ns;
	}
	span->cpu_ns = side->sum;
	span->parts = side->count;
}

static int compare_doubles(const void *one, const void *other)
{
	const double *a = one, *b = other;

	return (*a > *b) - (*a < *b);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare_doubles);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/*
 * The scale of shares after the change: the median of their ratios to those before. *error: its
 * relative standard error, by the median of the deviations. 1 where there are too few functions.
 */
static int find_scale(struct judge *j, const struct change *change, const struct side *sides,
		      double *scale, double *error)
{
	struct changes_data *d = j->c->data;
	size_t count = 0;

	*scale = 1;
	*error = 0;
	for (size_t i = 0; i < d->function_count; i++) {
		const struct changes_function *f = &d->functions[i];
		struct share s[CHANGE_SIDES];

		if (f->service != change->number)
			continue;
		for (int k = 0; k < CHANGE_SIDES; k++)
			s[k] = share_of(&f->cells, false, &sides[k]);
		if (s[BEFORE].share * sides[BEFORE].ticks < SCALE_TICKS ||
		    s[AFTER].share * sides[AFTER].ticks < SCALE_TICKS)
			continue;
		if (array_reserve(&j->ratios, &j->ratio_room, count + 1, sizeof(*j->ratios)))
			return -ENOMEM;
		j->ratios[count++] = s[AFTER].share / s[BEFORE].share;
	}
	if (count < SCALE_FUNCTIONS)
		return 0;
	*scale = median(j->ratios, count);
	for (size_t i = 0; i < count; i++)
		j->ratios[i] = fabs(j->ratios[i] / *scale - 1);
	/* Of the normal distribution: that of a median, by the median of the deviations. */
	*error = 1.4826 * 1.2533 * median(j->ratios, count) / sqrt((double)count);
	return 0;
}

/*
 * The scatter of a short time is seen in a longer one that is divided into parts as long: loads
 * have hours. So each side's variance is not less than what the other's says of its length.
 */
static void share_variances(struct share *s, const struct side *sides)
{
	double of_tick[CHANGE_SIDES];

	for (int k = 0; k < CHANGE_SIDES; k++)
		of_tick[k] = s[k].variance * sides[k].ticks;
	for (int k = 0; k < CHANGE_SIDES; k++)
		if (sides[!k].ticks > sides[k].ticks)
			s[k].variance = fmax(of_tick[k], of_tick[!k]) / sides[k].ticks;
}

/* The p of two shares; sets *variance and the freedom of their difference. */
static double difference_p(const struct share *s, double scale, double scale_error,
			   double *variance, double *freedom)
{
	double scaled = s[AFTER].share / scale;
	double a = s[BEFORE].variance, b = s[AFTER].variance / (scale * scale);

	*variance = a + b + scaled * scaled * scale_error * scale_error;
	*freedom = (a + b) * (a + b) / (a * a / s[BEFORE].freedom + b * b / s[AFTER].freedom);
	return a + b > 0 ? student(fabs(scaled - s[BEFORE].share) / sqrt(*variance), *freedom) : 1;
}

/*
 * Whether a function took the same part of its caller's time before and after, as far as is known:
 * only of one that had nearly always the same caller, which is not all of the service.
 */
static bool is_alike(const struct judge *j, const struct changes_function *f, bool total,
		     const struct side *sides)
{
	const struct changes_function *functions = j->c->data->functions;
	const struct changes_caller *caller = NULL;
	struct side of_caller[CHANGE_SIDES] = { sides[BEFORE], sides[AFTER] };
	struct share s[CHANGE_SIDES];
	double variance, freedom, all = 0;

	for (size_t i = 0; i < f->caller_count; i++) {
		all += (double)f->callers[i].total;
		if (!caller || f->callers[i].total > caller->total)
			caller = &f->callers[i];
	}
	if (!caller || (double)caller->total < MAIN_CALLER * all)
		return false;
	for (int k = 0; k < CHANGE_SIDES; k++) {
		const struct changes_cells *c = &functions[caller->number].cells;
		struct side *side = &of_caller[k];

		memset(side->all, 0, sizeof(side->all));
		side->sum = 0;
		for (size_t i = 0; i < c->count; i++)
			if (side->parts[c->cells[i].block]) {
				side->all[side->parts[c->cells[i].block]] +=
					(double)c->cells[i].total;
				side->sum += (double)c->cells[i].total;
			}
		side->ticks *= side->sum / sides[k].sum;
		if (side->ticks < LEAST_TICKS || side->sum > ALL * sides[k].sum)
			return false;
		s[k] = share_of(&f->cells, total, side);
	}
	share_variances(s, of_caller);
	return difference_p(s, 1, 0, &variance, &freedom) > NOT_ALIKE;
}

/* Compares a function, by self or by total. */
static int compare(struct judge *j, const struct change *change, const struct changes_function *f,
		   bool total, const struct side *sides, double scale, double scale_error)
{
	struct share s[] = { share_of(&f->cells, total, &sides[BEFORE]),
			     share_of(&f->cells, total, &sides[AFTER]) };
	double scaled = s[AFTER].share / scale, difference = scaled - s[BEFORE].share;
	struct candidate *candidate;
	double variance, freedom, p;

	share_variances(s, sides);
	p = difference_p(s, scale, scale_error, &variance, &freedom);
	if (s[BEFORE].share * sides[BEFORE].ticks + s[AFTER].share * sides[AFTER].ticks <
		    LEAST_TICKS ||
	    fmin(s[BEFORE].share, s[AFTER].share) > ALL || !(variance > 0))
		return 0;
	if (array_reserve(&j->candidates, &j->room, j->count + 1, sizeof(*j->candidates)))
		return -ENOMEM;
	candidate = &j->candidates[j->count++];
	*candidate = (struct candidate){
		.change = change - j->c->changes,
		.function = f,
		.alike = is_alike(j, f, total, sides),
		.lasting = s[AFTER].last / scale - s[BEFORE].share,
		.row = {
			.function = f->function,
			.image = f->image,
			.total = total,
			.percent = { s[BEFORE].share * 100, scaled * 100 },
			.difference = difference * 100,
			.error = sqrt(variance) * student_95(freedom) * 100,
			.p = p,
		},
	};
	return 0;
}

/* The spans that may be compared: between the changes before and after of the same service. */
static void set_spans(struct changes *c, size_t number)
{
	struct change *change = &c->changes[number];
	uint64_t since_ns = 0, until_ns = UINT64_MAX;

	if (number && c->changes[number - 1].number == change->number)
		since_ns = c->changes[number - 1].end_ns;
	if (number + 1 < c->count && c->changes[number + 1].number == change->number)
		until_ns = c->changes[number + 1].begin_ns;
	if (change->begin_ns > SIDE_NS && since_ns < change->begin_ns - SIDE_NS)
		since_ns = change->begin_ns - SIDE_NS;
	if (until_ns > change->end_ns + SIDE_NS)
		until_ns = change->end_ns + SIDE_NS;
	change->spans[BEFORE] = (struct change_span){ since_ns, change->begin_ns, 0, 0, 0, 0 };
	change->spans[AFTER] = (struct change_span){ change->end_ns, until_ns, 0, 0, 0, 0 };
}

static bool calls(const struct changes_function *f)
{
	for (size_t i = 0; i < f->cells.count; i++)
		if (f->cells.cells[i].total != f->cells.cells[i].self)
			return true;
	return false;
}

static int compare_change(struct judge *j, size_t number)
{
	struct change *change = &j->c->changes[number];
	struct side sides[CHANGE_SIDES];
	double scale, error;
	int err;

	set_spans(j->c, number);
	for (int k = 0; k < CHANGE_SIDES; k++)
		divide(j, change, k, &sides[k]);
	if (!sides[BEFORE].count || !sides[AFTER].count)
		return 0;
	change->outcome = CHANGE_NONE;
	err = find_scale(j, change, sides, &scale, &error);
	for (size_t i = 0; i < j->c->data->function_count && !err; i++) {
		const struct changes_function *f = &j->c->data->functions[i];

		if (f->service != change->number)
			continue;
		err = compare(j, change, f, false, sides, scale, error);
		if (!err && calls(f)) /* else both are the same */
			err = compare(j, change, f, true, sides, scale, error);
	}
	return err;
}

/* --- All of them --- */

static int compare_p(const void *one, const void *other)
{
	const struct candidate *const *a = one, *const *b = other;

	return ((*a)->row.p > (*b)->row.p) - ((*a)->row.p < (*b)->row.p);
}

/* Benjamini and Hochberg's correction: of those up to a limit, so large a part is by chance. */
static int correct(struct judge *j)
{
	struct candidate **order = calloc(j->count + 1, sizeof(struct candidate *));
	double least = 1;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < j->count; i++)
		order[i] = &j->candidates[i];
	if (j->count)
		qsort(order, j->count, sizeof(*order), compare_p);
	for (size_t i = j->count; i-- > 0;) {
		double p = order[i]->row.p * (double)j->count / (double)(i + 1);

		least = p < least ? p : least;
		order[i]->row.p = least;
	}
	free(order);
	return 0;
}

static int compare_rows(const void *one, const void *other)
{
	const struct change_row *a = one, *b = other;

	return (a->difference < b->difference) - (a->difference > b->difference)
		       ?: a->total - b->total
		       ?: strcmp(a->function ?: "", b->function ?: "")
		       ?: strcmp(a->image, b->image);
}

/* What functions cost more, and what they cost less. */
struct balance {
	double more, less;
};

static enum change_outcome outcome(const struct balance *b, double least)
{
	if (b->more - b->less >= least)
		return CHANGE_WORSE;
	if (b->less - b->more >= least)
		return CHANGE_BETTER;
	return b->more >= least ? CHANGE_MOVED : CHANGE_NONE;
}

/*
 * Chooses the rows of a change that differ: by more than chance, by as much as was asked for, and
 * still in the second half of the time after. What some functions cost more and others less has
 * only moved.
 */
static int conclude(struct judge *j, uint32_t number)
{
	struct change *change = &j->c->changes[number];
	struct balance balance = { 0 };
	size_t count = 0;

	for (size_t i = 0; i < j->count; i++) {
		struct candidate *candidate = &j->candidates[i];
		const struct change_row *row = &candidate->row;
		double amount = fabs(row->difference);

		if (candidate->change != number)
			continue;
		change->compared++;
		if (row->p > FALSE_DISCOVERIES || candidate->lasting * 100 / row->difference < 0.5)
			continue;
		candidate->differs =
			amount >= j->o->least_percent && (row->total || !candidate->alike);
		count += candidate->differs;
		/* Callers have what they call in their totals, so these do not add up. */
		if (!row->total && !candidate->alike)
			*(row->difference > 0 ? &balance.more : &balance.less) += amount;
	}
	if (!count)
		return 0;
	change->outcome = outcome(&balance, j->o->least_percent);
	change->cost = balance.more - balance.less;
	/* Then all that differs is in totals, or alike. */
	if (change->outcome == CHANGE_NONE)
		change->outcome = CHANGE_MIXTURE;
	change->rows = calloc(count, sizeof(*change->rows));
	if (!change->rows)
		return -ENOMEM;
	for (size_t i = 0; i < j->count; i++)
		if (j->candidates[i].change == number && j->candidates[i].differs)
			change->rows[change->row_count++] = j->candidates[i].row;
	qsort(change->rows, change->row_count, sizeof(*change->rows), compare_rows);
	return 0;
}

int changes_judge(struct changes *c, const struct changes_options *o)
{
	struct judge j = { .c = c, .o = o };
	int err = 0;

	j.parts = calloc(CHANGE_SIDES * c->data->block_count + 1, sizeof(*j.parts));
	if (!j.parts)
		return -ENOMEM;
	for (size_t i = 0; i < c->count && !err; i++)
		err = compare_change(&j, i);
	err = err ?: correct(&j);
	for (size_t i = 0; i < c->count && !err; i++)
		err = conclude(&j, i);
	free(j.parts);
	free(j.ratios);
	free(j.candidates);
	return err;
}
