// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/changes/data.h"
#include "report/chance.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/order.h"
#include "util/sum.h"

/*
 * More of one side is not compared: what a service did days ago says little.
 * Bound: caller: time of one side of a comparison; then: what is older is left out; seen: in the
 * report.
 */
#define SIDE_NS (24 * 3600 * NS_PER_S)

/*
 * A side is divided into so many parts of equal length at most, by whose scatter chance is judged:
 * the longer a part, the less does it depend on the one before. With fewer than the least, nothing
 * is known of it.
 * Bound: size.
 */
#define MOST_PARTS  6
#define LEAST_PARTS 3

/*
 * Parts of each side for the CPU time of a request. It drifts for longer than a short part lasts,
 * so that many short parts would make its error too small. The variance of so few is taken from
 * both sides together.
 */
#define REQUEST_PARTS 3

/* How much a part depends on the one before is known badly from so few. Bound: pace. */
#define MOST_DEPENDENCE 0.7

/* A function in nearly all stacks is what all is compared with. */
#define ALL 0.99

/* The part of a function's time that its main caller has, and the p of parts that are not alike. */
#define MAIN_CALLER 0.8
#define NOT_ALIKE   0.01

/* What takes less than this of what it takes on the other side was hardly done there. */
#define HARDLY 0.1

/*
 * Callers of callers that are looked at.
 * Bound: files: callers of callers that are looked at; then: those beyond are left out; seen: not
 * seen.
 */
#define MOST_DEPTH 128

/* The part of a block in which requests were counted, at least. */
#define LEAST_COVERED 0.95

/* How CPU time depends on requests is not known from fewer blocks. */
#define LEAST_FIT 6

/* A function with fewer ticks on both sides together is not compared. */
#define LEAST_TICKS 50

/*
 * The scale is the median over functions with at least SCALE_TICKS on each side. Of two functions
 * it cannot be known which one has changed; below SCALE_MANY_FUNCTIONS the error of the scale
 * cannot be estimated from how the functions scatter.
 */
#define SCALE_TICKS	     100
#define SCALE_FUNCTIONS	     3
#define SCALE_MANY_FUNCTIONS 5

/* A sum of differences within so many standard errors of the scale is not a change. */
#define SCALE_ERRORS 3

/* --- Shares and their scatter --- */

/* The parts of one side of a change. */
struct side {
	const uint32_t *parts; /* of each block, from 1 on; 0: none */
	size_t count;
	double all[MOST_PARTS + 1];	   /* what the service took in each part */
	double with_waits[MOST_PARTS + 1]; /* of this, in blocks that have all waits */
	double sum, ticks;
	double cut, nameless; /* as of cells */
	double due, lost;     /* ticks of the machine, counted or not */
};

struct share {
	double share, variance, freedom;
	double last; /* the share in the second half */
};

/* Of two shares: after to before. */
struct scale_ratio {
	double ratio, error; /* relative, by the scatter of both */
	double weight;	     /* the better known, the larger */
};

/* The ratio of two sums over parts, each of which scatters; the second one is not 0. */
static struct share ratio_of(const double *of, const double *all, size_t count)
{
	double sum = 0, sum_all = 0, squares = 0, late = 0, late_all = 0;
	double before = 0, products = 0, dependence;
	struct share s = { .freedom = (double)count - 1 };

	for (size_t i = 0; i < count; i++) {
		sum += of[i];
		sum_all += all[i];
	}
	s.share = sum / sum_all;
	for (size_t i = 0; i < count; i++) {
		double rest = of[i] - s.share * all[i];

		squares += rest * rest;
		products += rest * before;
		before = rest;
		if (2 * (i + 1) > count) {
			late += of[i];
			late_all += all[i];
		}
	}
	s.last = late_all > 0 ? late / late_all : s.share;
	s.variance = squares * (double)count / s.freedom / (sum_all * sum_all);
	/* Parts that depend on each other tell less; of so few, the sum is too small by 1 of them.
	 */
	dependence = squares > 0 ? products / squares + 1 / (double)count : 0;
	dependence = fmin(fmax(dependence, 0), MOST_DEPENDENCE);
	s.variance *= (1 + dependence) / (1 - dependence);
	return s;
}

/* The share of a part of the service's time. Not below what chance does with so many ticks. */
static struct share share_of(const struct changes_cells *c, bool total, const struct side *side)
{
	double of[MOST_PARTS + 1] = { 0 };
	struct share s;

	for (size_t i = 0; i < c->count; i++)
		of[side->parts[c->cells[i].block]] +=
			(double)(total ? c->cells[i].total : c->cells[i].self);
	s = ratio_of(of + 1, side->all + 1, side->count);
	s.variance = fmax(s.variance, s.share * (1 - s.share) / side->ticks);
	return s;
}

/* --- One change --- */

struct candidate {
	struct change_row row;
	uint32_t change;
	const struct changes_function *function;
	double lasting; /* the difference in the second half of the time after */
	bool differs, counted;
	/* As a part of the time of its main caller, beside what else that calls; NULL: it has none.
	 */
	const struct changes_caller *caller;
	struct share of_caller[CHANGE_SIDES]; /* its part of that one's time */
	double caller_share;		      /* that one's, before */
	bool compared;
	bool alike;   /* it takes the same part */
	bool added;   /* its caller had it done on one side, and hardly on the other */
	double moved; /* the difference, in percent of the service's time; 0: not known to last */
};

struct judge {
	struct changes *c;
	const struct changes_options *o;
	size_t first_change;
	struct candidate *candidates; /* by change */
	size_t count, room;
	size_t *ends;	      /* of the candidates of each change */
	bool *excluded;	      /* scratch: functions of a service that are not compared */
	uint32_t *parts;      /* scratch: of each block, for each side */
	double *scale_errors; /* of each change */
	struct scale_ratio *ratios;
	size_t ratio_room;
	struct measured *measured; /* of each change, CHANGE_MEASURES */
};

/* What is known of a measure beside what is printed. */
struct measured {
	double lasting;
	/* How much of the difference another number of requests explains, at most and least. */
	double explained[2];
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
	for (size_t i = 0; i < s->cell_count; i++) {
		const struct changes_block *b = &d->blocks[s->cells[i].block];

		if (b->start_ns >= since_ns && b->limit_ns <= until_ns)
			count++;
	}
	*span = (struct change_span){ 0 };
	if (count < LEAST_PARTS)
		return;
	side->count = MIN(count, MOST_PARTS);
	each = count / side->count + (count % side->count > 0);
	side->count = (count + each - 1) / each;
	for (size_t i = 0; i < s->cell_count; i++) {
		const struct changes_service_cell *cell = &s->cells[i];
		const struct changes_block *b = &d->blocks[cell->block];
		size_t part;

		if (b->start_ns < since_ns || b->limit_ns > until_ns)
			continue;
		part = seen++ / each + 1;
		parts[cell->block] = part;
		side->all[part] += (double)cell->cpu_ns;
		if (b->waits_ns && b->waits_ns == b->recorded_ns)
			side->with_waits[part] += (double)cell->cpu_ns;
		side->sum += (double)cell->cpu_ns;
		side->ticks += (double)cell->ticks;
		side->cut += (double)cell->cut;
		side->nameless += (double)cell->nameless;
		side->due += (double)b->ticks;
		side->lost += (double)b->lost;
		span->since_ns = span->since_ns ?: b->start_ns;
		span->until_ns = b->limit_ns;
		add_u64(&span->ticks, cell->ticks);
		add_u64(&span->recorded_ns, b->recorded_ns);
	}
	span->cpu_ns = side->sum;
	span->parts = side->count;
}

ORDER(compare_ratios, struct scale_ratio, LEAST(ratio))

ORDER(compare_weights, struct scale_ratio, MOST(weight))

/* The ratio with half of the weight on each side. *error: that of the ratios in the middle. */
static double median(struct scale_ratio *r, size_t count, double *error)
{
	double all = 0, below = 0;
	size_t low = 0, high;

	qsort(r, count, sizeof(*r), compare_ratios);
	for (size_t i = 0; i < count; i++)
		all += r[i].weight;
	/* Halves that are equal may differ by what was rounded. */
	while (low + 1 < count && below + r[low].weight < all / 2 * (1 - 1e-9))
		below += r[low++].weight;
	high = low + 1 < count && below + r[low].weight <= all / 2 * (1 + 1e-9) ? low + 1 : low;
	*error = low == high ? r[low].error : hypot(r[low].error, r[high].error) / 2;
	return (r[low].ratio + r[high].ratio) / 2;
}

static void add_ratio(struct judge *j, size_t *count, const struct share *s)
{
	const struct share *a = &s[BEFORE], *b = &s[AFTER];

	j->ratios[(*count)++] = (struct scale_ratio){
		.ratio = b->share / a->share,
		.error = sqrt(a->variance / (a->share * a->share) +
			      b->variance / (b->share * b->share)),
		.weight = sqrt(fmin(a->share, b->share)),
	};
}

/*
 * The scale of shares after the change: the median of their ratios to those before, j->ratios.
 * Small shares have less weight, as chance differs more in them; the largest SCALE_FUNCTIONS have
 * the same. *error: its relative standard error, from the median of the deviations; below
 * SCALE_MANY_FUNCTIONS of equal weight, that of the functions in the middle. *scale is 1, and
 * *error 0, below SCALE_FUNCTIONS.
 */
static void set_scale(struct judge *j, size_t count, double *scale, double *error)
{
	struct scale_ratio *r = j->ratios;
	double sum = 0, squares = 0, equal, unused;

	*scale = 1;
	*error = 0;
	if (count < SCALE_FUNCTIONS)
		return;
	qsort(r, count, sizeof(*r), compare_weights);
	for (size_t i = 0; i < count; i++) {
		r[i].weight = fmin(r[i].weight, r[SCALE_FUNCTIONS - 1].weight);
		sum += r[i].weight;
		squares += r[i].weight * r[i].weight;
	}
	equal = sum * sum / squares; /* so many of equal weight would tell as much */
	*scale = median(r, count, error);
	if (round(equal) < SCALE_MANY_FUNCTIONS)
		return;
	for (size_t i = 0; i < count; i++)
		r[i].ratio = fabs(r[i].ratio / *scale - 1);
	/* Of the normal distribution: that of a median, by the median of the deviations. */
	*error = 1.4826 * 1.2533 * median(r, count, &unused) / sqrt(equal);
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

/* The scale of all of the service. */
static int find_scale(struct judge *j, const struct change *change, const struct side *sides,
		      double *scale, double *error)
{
	const struct changes_data *d = j->c->data;
	const struct changes_service *service = &d->services[change->number];
	size_t count = 0;

	for (size_t i = service->first; i < service->first + service->count; i++) {
		const struct changes_function *f = &d->functions[d->order[i]];
		struct share s[CHANGE_SIDES];

		if (j->excluded[i - service->first])
			continue;
		for (int k = 0; k < CHANGE_SIDES; k++)
			s[k] = share_of(&f->cells, false, &sides[k]);
		if (s[BEFORE].share * sides[BEFORE].ticks < SCALE_TICKS ||
		    s[AFTER].share * sides[AFTER].ticks < SCALE_TICKS)
			continue;
		if (array_reserve(&j->ratios, &j->ratio_room, count + 1, sizeof(*j->ratios)))
			return -ENOMEM;
		share_variances(s, sides);
		add_ratio(j, &count, s);
	}
	set_scale(j, count, scale, error);
	return 0;
}

/* Of two sides that scatter alike, as parts of what they have: by both together. */
static void pool_variances(struct share *s, const struct side *sides)
{
	double of_tick = 0;

	for (int k = 0; k < CHANGE_SIDES; k++)
		of_tick +=
			s[k].variance / (s[k].share * s[k].share) * sides[k].ticks / CHANGE_SIDES;
	for (int k = 0; k < CHANGE_SIDES; k++)
		s[k].variance = of_tick * s[k].share * s[k].share / sides[k].ticks;
}

/* The p of two shares; sets *variance and the freedom of their difference. */
static double difference_p(const struct share *s, double scale, double scale_error,
			   double *variance, double *freedom)
{
	double scaled = s[AFTER].share / scale;
	double a = s[BEFORE].variance, b = s[AFTER].variance / (scale * scale);

	*variance = a + b + scaled * scaled * scale_error * scale_error;
	*freedom = (a + b) * (a + b) / (a * a / s[BEFORE].freedom + b * b / s[AFTER].freedom);
	return a + b > 0 ? chance_of_t(fabs(scaled - s[BEFORE].share) / sqrt(*variance), *freedom)
			 : 1;
}

/* The caller that a function nearly always had; NULL: there is none. */
static const struct changes_caller *main_caller(const struct changes_function *f)
{
	const struct changes_caller *caller = NULL;
	double all = 0;

	for (size_t i = 0; i < f->caller_count; i++) {
		all += (double)f->callers[i].total;
		if (!caller || f->callers[i].total > caller->total)
			caller = &f->callers[i];
	}
	return caller && (double)caller->total >= MAIN_CALLER * all ? caller : NULL;
}

/*
 * Sets which part of its caller's time a function took: only of one that had nearly always the same
 * caller, which is not all of the service.
 */
static void set_part_of_caller(const struct judge *j, struct candidate *candidate,
			       const struct side *sides)
{
	const struct changes_function *functions = j->c->data->functions;
	const struct changes_caller *caller = main_caller(candidate->function);
	struct side of_caller[CHANGE_SIDES] = { sides[BEFORE], sides[AFTER] };
	struct share s[CHANGE_SIDES];

	if (!caller)
		return;
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
			return;
		s[k] = share_of(&candidate->function->cells, candidate->row.total, side);
	}
	share_variances(s, of_caller);
	candidate->caller = caller;
	memcpy(candidate->of_caller, s, sizeof(s));
	candidate->caller_share = of_caller[BEFORE].sum / sides[BEFORE].sum;
}

static bool calls(const struct changes_function *f)
{
	for (size_t i = 0; i < f->cells.count; i++)
		if (f->cells.cells[i].total != f->cells.cells[i].self)
			return true;
	return false;
}

/*
 * Compares what the same caller calls with each other, of the candidates from that one on, as parts
 * of its time: by the median of their ratios, as all of the service, for where one is slower, the
 * parts of all others fall. How often the caller is called does not matter here.
 */
static int compare_siblings(struct judge *j, const struct change *change, struct candidate *first)
{
	const struct candidate *end = j->candidates + j->count;
	double scale, scale_error, variance, freedom;
	size_t count = 0;

	if (array_reserve(&j->ratios, &j->ratio_room, end - first, sizeof(*j->ratios)))
		return -ENOMEM;
	for (const struct candidate *one = first; one < end; one++) {
		double ticks[CHANGE_SIDES];

		if (!one->caller || one->caller->number != first->caller->number)
			continue;
		for (int k = 0; k < CHANGE_SIDES; k++)
			ticks[k] = one->row.percent[k] / 100 * (double)change->spans[k].ticks;
		/* Each function once, with what it calls. */
		if (fmin(ticks[BEFORE], ticks[AFTER]) >= SCALE_TICKS &&
		    (one->row.total || !calls(one->function)))
			add_ratio(j, &count, one->of_caller);
	}
	set_scale(j, count, &scale, &scale_error);
	for (struct candidate *one = first; one < end; one++) {
		const struct share *s = one->of_caller;
		double difference = s[AFTER].share / scale - s[BEFORE].share;

		if (!one->caller || one->caller->number != first->caller->number)
			continue;
		one->compared = true;
		one->alike = difference_p(s, scale, scale_error, &variance, &freedom) > NOT_ALIKE;
		one->added = !one->alike && fmin(s[BEFORE].share, s[AFTER].share) <
						    HARDLY * fmax(s[BEFORE].share, s[AFTER].share);
		/* Of fewer, the part of one falls where another one is slower. */
		if (count >= SCALE_FUNCTIONS &&
		    (s[AFTER].last / scale - s[BEFORE].share) / difference >= 0.5)
			one->moved = difference * one->caller_share * 100;
	}
	return 0;
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
		.lasting = s[AFTER].last / scale - s[BEFORE].share,
		.row = {
			.function = f->function,
			.image = f->image,
			.total = total,
			.percent = { s[BEFORE].share * 100, scaled * 100 },
			.difference = difference * 100,
			.error = sqrt(variance) * chance_t_95(freedom) * 100,
			.p = p,
		},
	};
	if (!change->stacks_differ)
		set_part_of_caller(j, candidate, sides);
	return 0;
}

/*
 * Compares for how long threads were blocked in a function, for a reason: for each second of the
 * service's CPU time, as the measures of waiting. It needs no scale: more of one wait makes others
 * no shorter. Only of blocks in which waits were recorded.
 */
static int compare_waits(struct judge *j, const struct change *change,
			 const struct changes_function *f, const struct side *sides)
{
	const struct changes_block *blocks = j->c->data->blocks;
	struct share s[CHANGE_SIDES];
	double variance, freedom, p;

	for (int k = 0; k < CHANGE_SIDES; k++) {
		double of[MOST_PARTS + 1] = { 0 }, all[MOST_PARTS + 1];
		size_t count = 0;

		for (size_t i = 0; i < f->cells.count; i++) {
			const struct changes_block *b = &blocks[f->cells.cells[i].block];

			if (b->waits_ns == b->recorded_ns)
				of[sides[k].parts[f->cells.cells[i].block]] +=
					(double)f->cells.cells[i].total;
		}
		for (size_t i = 1; i <= sides[k].count; i++)
			if (sides[k].with_waits[i] > 0) {
				of[count] = of[i];
				all[count++] = sides[k].with_waits[i];
			}
		if (count < LEAST_PARTS)
			return 0;
		s[k] = ratio_of(of, all, count);
		/* What was waited is known exactly; CPU time by ticks is not. */
		s[k].variance = fmax(s[k].variance, s[k].share * s[k].share / sides[k].ticks);
	}
	share_variances(s, sides);
	p = difference_p(s, 1, 0, &variance, &freedom);
	if (!(variance > 0))
		return 0;
	return array_add(j->candidates, j->count, j->room,
			 (struct candidate){
				 .change = change - j->c->changes,
				 .function = f,
				 .lasting = s[AFTER].last - s[BEFORE].share,
				 .row = {
					 .function = f->function,
					 .image = f->image,
					 .reason = f->reason,
					 .percent = { s[BEFORE].share * 100, s[AFTER].share * 100 },
					 .difference = (s[AFTER].share - s[BEFORE].share) * 100,
					 .error = sqrt(variance) * chance_t_95(freedom) * 100,
					 .p = p,
				 },
			 });
}

/* --- Spans, and what may be compared in them --- */

/*
 * What is in the stacks of so much of the service's time is all of it.
 * Bound: size.
 */
#define MOST_OF_IT 0.5

static bool has_image(const struct change *change, const char *name)
{
	for (size_t i = 0; i < change->image_count; i++)
		if (strcmp(change->images[i].name, name) == 0)
			return true;
	return false;
}

/* Whether what is compared for a change ends at another one: if that touches the same, or all. */
static bool ends_span(const struct change *change, const struct change *other)
{
	if (other->restarted || !other->image_count)
		return true;
	for (size_t i = 0; i < other->image_count; i++)
		if (other->images[i].part > MOST_OF_IT || has_image(change, other->images[i].name))
			return true;
	return false;
}

/* The spans that may be compared: between the changes before and after of what it touches. */
static void set_spans(struct changes *c, size_t number)
{
	struct change *change = &c->changes[number];
	uint64_t since_ns = 0, until_ns = UINT64_MAX;

	for (size_t i = number; i-- > 0 && c->changes[i].number == change->number;)
		if (ends_span(change, &c->changes[i])) {
			since_ns = c->changes[i].end_ns;
			break;
		}
	for (size_t i = number + 1; i < c->count && c->changes[i].number == change->number; i++)
		if (ends_span(change, &c->changes[i])) {
			until_ns = c->changes[i].begin_ns;
			break;
		}
	if (change->begin_ns > SIDE_NS && since_ns < change->begin_ns - SIDE_NS)
		since_ns = change->begin_ns - SIDE_NS;
	until_ns = MIN(until_ns, change->end_ns + SIDE_NS);
	change->spans[BEFORE] =
		(struct change_span){ .since_ns = since_ns, .until_ns = change->begin_ns };
	change->spans[AFTER] =
		(struct change_span){ .since_ns = change->end_ns, .until_ns = until_ns };
}

/* Whether another deploy within the spans replaced an image, but not this one. */
static bool is_replaced(const struct changes *c, size_t number, const char *image)
{
	const struct change *change = &c->changes[number];

	for (size_t i = 0; i < 2; i++)
		for (size_t k = i ? number + 1 : number - 1;
		     k < c->count && c->changes[k].number == change->number &&
		     c->changes[k].end_ns >= change->spans[BEFORE].since_ns &&
		     c->changes[k].begin_ns <= change->spans[AFTER].until_ns;
		     k += i ? 1 : -1)
			if (has_image(&c->changes[k], image))
				return true;
	return false;
}

/*
 * Chooses the functions of a change that may be compared: not those of an image that another deploy
 * replaced meanwhile, nor of one whose functions have names on one side alone.
 */
static void exclude(struct judge *j, size_t number, const struct side *sides)
{
	struct change *change = &j->c->changes[number];
	const struct changes_data *d = j->c->data;
	const struct changes_service *s = &d->services[change->number];
	double least = j->o->least_percent / 100;
	size_t end;

	for (size_t first = 0; first < s->count; first = end) {
		const char *image = d->functions[d->order[s->first + first]].image;
		double all[CHANGE_SIDES] = { 0 }, nameless[CHANGE_SIDES] = { 0 };
		bool names_differ, replaced;

		for (end = first; end < s->count; end++) {
			const struct changes_function *f = &d->functions[d->order[s->first + end]];

			if (strcmp(f->image, image) != 0)
				break;
			for (int k = 0; k < CHANGE_SIDES; k++) {
				double sum = 0;

				for (size_t i = 0; i < f->cells.count; i++)
					if (sides[k].parts[f->cells.cells[i].block])
						sum += (double)f->cells.cells[i].self;
				sum /= sides[k].sum;
				all[k] += sum;
				nameless[k] += f->function ? 0 : sum;
			}
		}
		/* As parts of the image: that it took more or less time is another matter. */
		names_differ = all[BEFORE] > 0 && all[AFTER] > 0 &&
			       fabs(nameless[AFTER] / all[AFTER] - nameless[BEFORE] / all[BEFORE]) *
					       fmax(all[BEFORE], all[AFTER]) >=
				       least;
		replaced = !change->asked && !has_image(change, image) &&
			   is_replaced(j->c, number, image);
		change->names_differ |= names_differ;
		change->others_replaced |= replaced;
		memset(j->excluded + first, names_differ || replaced || change->all_names_differ,
		       end - first);
	}
}

/* Notes in how far what is known of both sides is as complete: else, what depends on it is not
 * compared. */
static void note_completeness(const struct judge *j, struct change *change,
			      const struct side *sides)
{
	double cut[CHANGE_SIDES], nameless[CHANGE_SIDES], lost[CHANGE_SIDES];
	double least = j->o->least_percent / 100;

	for (int k = 0; k < CHANGE_SIDES; k++) {
		cut[k] = sides[k].cut / sides[k].ticks;
		nameless[k] = sides[k].nameless / sides[k].ticks;
		lost[k] = sides[k].due > 0 ? sides[k].lost / sides[k].due : 0;
		change->spans[k].complete_percent = 100 - cut[k] * 100;
		change->spans[k].named_percent = 100 - nameless[k] * 100;
		change->spans[k].lost_percent = lost[k] * 100;
	}
	change->stacks_differ = !j->c->by && fabs(cut[AFTER] - cut[BEFORE]) >= least;
	change->all_names_differ = !j->c->by && fabs(nameless[AFTER] - nameless[BEFORE]) >= least;
	change->lost_differ = fabs(lost[AFTER] - lost[BEFORE]) >= least;
}

/* --- Measures of the service as a whole --- */

/* The parts of a side for a measure: numerators and denominators, of those that have one. */
struct measure_parts {
	double of[MOST_PARTS], all[MOST_PARTS];
	size_t count;
};

/* How many requests there were in a block; -1: the metric does not cover it. */
static double requests_of(const struct changes_metric *m, const struct changes_block *b)
{
	/* Of what overlaps the block, none began earlier. */
	uint64_t first_ns = b->start_ns > INCREASE_NS ? b->start_ns - INCREASE_NS : 0;
	uint64_t covered_ns = 0, end_ns = b->start_ns;
	double count = 0;
	size_t low;

	FIND_FIRST(low, 0, m->count, m->list[low].since_ns < first_ns);
	for (; low < m->count && m->list[low].since_ns < b->limit_ns; low++) {
		const struct changes_increase *i = &m->list[low];
		uint64_t since_ns = MAX(i->since_ns, b->start_ns);
		uint64_t until_ns = MIN(i->until_ns, b->limit_ns);

		if (until_ns <= since_ns)
			continue;
		count += i->count * (double)(until_ns - since_ns) /
			 (double)(i->until_ns - i->since_ns);
		if (until_ns > end_ns) {
			covered_ns += until_ns - MAX(since_ns, end_ns);
			end_ns = until_ns;
		}
	}
	if ((double)covered_ns < LEAST_COVERED * (double)(b->limit_ns - b->start_ns))
		return -1;
	/* Those that came while something was recorded. */
	return count / (double)covered_ns *
	       fmin((double)b->recorded_ns, (double)(b->limit_ns - b->start_ns));
}

/* Adds up a block of a service for a measure. account: NULL if the block has none. */
static void add_measure(const struct change *change, enum change_measure_number number,
			const struct changes_service_cell *cell, const struct changes_block *block,
			const struct changes_account *account, double *of, double *all)
{
	double requests = 0;

	if (number == MEASURE_PER_REQUEST || number == MEASURE_REQUESTS) {
		requests = requests_of(change->metric, block);
		if (requests < 0)
			return;
	} else if (number != MEASURE_CPU && !account) {
		return;
	}
	switch (number) {
	case MEASURE_PER_REQUEST:
		*of += (double)cell->cpu_ns;
		*all += requests;
		break;
	case MEASURE_REQUESTS:
		*of += requests;
		*all += (double)block->recorded_ns / NS_PER_S;
		break;
	case MEASURE_CPU:
		*of += (double)cell->cpu_ns;
		*all += (double)block->recorded_ns;
		break;
	case MEASURE_WAITED:
		*of += (double)account->waits.waited_ns;
		*all += (double)account->waits.on_cpu_ns;
		break;
	case MEASURE_DELAY:
		*of += (double)account->waits.delay_ns;
		*all += (double)account->waits.delay_cpu_ns;
		break;
	case MEASURE_BLOCKED:
		*of += (double)account->blocked_ns;
		*all += (double)account->recorded_ns;
		break;
	case CHANGE_MEASURES:
		break;
	}
}

static void measure_side(const struct judge *j, const struct change *change,
			 enum change_measure_number number, const struct side *side,
			 struct measure_parts *m)
{
	const struct changes_service *s = &j->c->data->services[change->number];
	double of[MOST_PARTS + 1] = { 0 }, all[MOST_PARTS + 1] = { 0 };
	size_t k = 0;

	for (size_t i = 0; i < s->cell_count; i++) {
		uint32_t block = s->cells[i].block, part = side->parts[block];

		while (k < s->account_count && s->accounts[k].block < block)
			k++;
		if (part)
			add_measure(change, number, &s->cells[i], &j->c->data->blocks[block],
				    k < s->account_count && s->accounts[k].block == block
					    ? &s->accounts[k]
					    : NULL,
				    &of[part], &all[part]);
	}
	m->count = 0;
	for (size_t i = 1; i <= side->count; i++)
		if (all[i] > 0) {
			m->of[m->count] = of[i];
			m->all[m->count++] = all[i];
		}
}

/* How long the rest of the system waited, and made wait, meanwhile: as of the measures. */
static void measure_elsewhere(const struct judge *j, struct change *change, enum change_side number,
			      const struct side *side)
{
	const struct changes_service *s = &j->c->data->services[change->number];
	double waited = 0, ran = 0, delay = 0, delay_cpu = 0;

	for (size_t i = 0; i < s->account_count; i++) {
		const struct changes_waits *all = &j->c->data->blocks[s->accounts[i].block].waits;
		/* The system has those of its own services. */
		const struct changes_waits own =
			change->of_system ? s->accounts[i].waits : (struct changes_waits){ 0 };

		if (!side->parts[s->accounts[i].block])
			continue;
		waited += (double)(all->waited_ns - own.waited_ns);
		ran += (double)(all->on_cpu_ns - own.on_cpu_ns);
		delay += (double)all->delay_ns - (double)own.delay_ns;
		delay_cpu += (double)all->delay_cpu_ns - (double)own.delay_cpu_ns;
	}
	change->measures[MEASURE_WAITED].elsewhere[number] = ran > 0 ? waited / ran : 0;
	change->measures[MEASURE_DELAY].elsewhere[number] = delay_cpu > 0 ? delay / delay_cpu : 0;
}

/*
 * The largest part of the service's CPU time before that does not depend on the number of requests,
 * as far as blocks with more and with fewer tell: the end of the 95 % confidence interval of the
 * intercept of CPU time over requests. 1 if they do not tell.
 */
static double fixed_part(const struct judge *j, const struct change *change,
			 const struct side *side)
{
	const struct changes_service *s = &j->c->data->services[change->number];
	double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0, slope, rest, error;

	for (size_t i = 0; i < s->cell_count; i++) {
		const struct changes_block *b = &j->c->data->blocks[s->cells[i].block];
		double requests, cpus;

		if (!side->parts[s->cells[i].block])
			continue;
		requests = requests_of(change->metric, b);
		if (requests < 0 || !b->recorded_ns)
			continue;
		requests /= (double)b->recorded_ns;
		cpus = (double)s->cells[i].cpu_ns / (double)b->recorded_ns;
		n++;
		x += requests;
		y += cpus;
		xx += requests * requests;
		xy += requests * cpus;
		yy += cpus * cpus;
	}
	x /= n;
	y /= n;
	xx = xx / n - x * x;
	xy = xy / n - x * y;
	yy = yy / n - y * y;
	if (n < LEAST_FIT || !(xx > 0) || !(y > 0))
		return 1;
	slope = xy / xx;
	rest = fmax(yy - slope * xy, 0) * n / (n - 2);
	error = sqrt(rest / n * (1 + x * x / xx)) * chance_t_95(n - 2);
	return fmin(fmax((y - slope * x + error) / y, 0), 1);
}

/*
 * Compares the service as a whole, in so far as that was recorded on both sides. What costs the
 * same for any number of requests is divided by as many as there are: so, how much this explains is
 * kept, too.
 */
static void measure_change(struct judge *j, struct change *change, const struct side *sides)
{
	struct measured *measured =
		&j->measured[(change - j->c->changes - j->first_change) * CHANGE_MEASURES];
	const struct change_measure *requests = &change->measures[MEASURE_REQUESTS];
	double variance, freedom, fixed;

	for (int i = 0; i < CHANGE_MEASURES; i++) {
		struct change_measure *m = &change->measures[i];
		struct share s[CHANGE_SIDES];
		bool known = change->metric || (i != MEASURE_PER_REQUEST && i != MEASURE_REQUESTS);

		/* CPU time by ticks. */
		if (change->lost_differ && (i == MEASURE_PER_REQUEST || i == MEASURE_CPU))
			continue;

		for (int k = 0; k < CHANGE_SIDES && known; k++) {
			struct measure_parts parts;

			measure_side(j, change, i, &sides[k], &parts);
			known = parts.count >= LEAST_PARTS;
			if (!known)
				break;
			s[k] = ratio_of(parts.of, parts.all, parts.count);
			if (i == MEASURE_PER_REQUEST) {
				double of[REQUEST_PARTS] = { 0 }, all[REQUEST_PARTS] = { 0 };
				double last = s[k].last;

				/* Parts that follow each other are joined. */
				for (size_t n = 0; n < parts.count; n++) {
					of[n * REQUEST_PARTS / parts.count] += parts.of[n];
					all[n * REQUEST_PARTS / parts.count] += parts.all[n];
				}
				s[k] = ratio_of(of, all, REQUEST_PARTS);
				s[k].last = last;
			}
			/* What was waited is known exactly; CPU time by ticks is not. */
			if (i == MEASURE_PER_REQUEST || i == MEASURE_CPU || i == MEASURE_DELAY)
				s[k].variance = fmax(s[k].variance,
						     s[k].share * s[k].share / sides[k].ticks);
		}
		if (!known)
			continue;
		if (i == MEASURE_PER_REQUEST)
			pool_variances(s, sides);
		else
			share_variances(s, sides);
		m->p = difference_p(s, 1, 0, &variance, &freedom);
		m->known = true;
		m->value[BEFORE] = s[BEFORE].share;
		m->value[AFTER] = s[AFTER].share;
		m->difference = s[AFTER].share - s[BEFORE].share;
		m->error = variance > 0 ? sqrt(variance) * chance_t_95(freedom) : 0;
		measured[i].lasting = s[AFTER].last - s[BEFORE].share;
	}
	for (int k = 0; k < CHANGE_SIDES; k++)
		measure_elsewhere(j, change, k, &sides[k]);
	if (!change->measures[MEASURE_PER_REQUEST].known || !requests->known ||
	    !(requests->value[BEFORE] > 0) || !(requests->value[AFTER] > 0))
		return;
	fixed = fixed_part(j, change, &sides[BEFORE]) *
		change->measures[MEASURE_PER_REQUEST].value[BEFORE] *
		(requests->value[BEFORE] / requests->value[AFTER] - 1);
	measured[MEASURE_PER_REQUEST].explained[0] = fmin(fixed, 0);
	measured[MEASURE_PER_REQUEST].explained[1] = fmax(fixed, 0);
}

static int compare_change(struct judge *j, size_t number)
{
	struct change *change = &j->c->changes[number];
	const struct changes_data *d = j->c->data;
	const struct changes_service *service = &d->services[change->number];
	struct side sides[CHANGE_SIDES];
	size_t first = j->count;
	double scale, *error = &j->scale_errors[number - j->first_change];
	int err;

	set_spans(j->c, number);
	for (int k = 0; k < CHANGE_SIDES; k++)
		divide(j, change, k, &sides[k]);
	if (!sides[BEFORE].count || !sides[AFTER].count)
		return 0;
	change->outcome = CHANGE_NONE;
	note_completeness(j, change, sides);
	memset(j->excluded, 0, service->count * sizeof(*j->excluded));
	if (!j->c->by)
		exclude(j, number, sides);
	measure_change(j, change, sides);
	err = find_scale(j, change, sides, &scale, error);
	for (size_t i = 0; i < service->count && !err; i++) {
		const struct changes_function *f = &d->functions[d->order[service->first + i]];

		if (j->excluded[i])
			continue;
		err = compare(j, change, f, false, sides, scale, *error);
		/* Else both are the same. */
		if (!err && !change->stacks_differ && calls(f))
			err = compare(j, change, f, true, sides, scale, *error);
	}
	for (size_t i = 0; i < service->wait_count && !err; i++)
		err = compare_waits(j, change,
				    &d->functions[d->order[service->first + service->count + i]],
				    sides);
	for (size_t i = first; i < j->count && !err; i++)
		if (j->candidates[i].caller && !j->candidates[i].compared)
			err = compare_siblings(j, change, &j->candidates[i]);
	return err;
}

/* --- All of them --- */

/* The candidates of a change are those from this one to j->ends[]. */
static size_t first_candidate(const struct judge *j, size_t number)
{
	return number > j->first_change ? j->ends[number - 1 - j->first_change] : 0;
}

/* Corrects what is compared of the changes from number first to end, whose services have one owner.
 */
static void correct_owner(struct judge *j, size_t first, size_t end, double **order)
{
	size_t count = 0;

	for (size_t i = first_candidate(j, first); i < j->ends[end - 1 - j->first_change]; i++)
		order[count++] = &j->candidates[i].row.p;
	for (size_t i = first; i < end; i++)
		for (int k = 0; k < CHANGE_MEASURES; k++)
			if (j->c->changes[i].measures[k].known && k != MEASURE_PER_REQUEST)
				order[count++] = &j->c->changes[i].measures[k].p;
	chance_correct(order, count);
	count = 0;
	for (size_t i = first; i < end; i++)
		if (j->c->changes[i].measures[MEASURE_PER_REQUEST].known)
			order[count++] = &j->c->changes[i].measures[MEASURE_PER_REQUEST].p;
	chance_correct(order, count);
}

/*
 * Corrects what is compared for being many: but what a request costs, which was asked for by
 * itself, for the deploys alone. Each owner by itself; the system, of all hosts together.
 */
static int correct_all(struct judge *j)
{
	const struct changes *c = j->c;
	double **order = calloc(j->count + c->count * CHANGE_MEASURES + 1, sizeof(*order));
	size_t end;

	if (!order)
		return -ENOMEM;
	for (size_t i = j->first_change; i < c->count; i = end) {
		for (end = i + 1; end < c->count; end++)
			if (c->data->services[c->changes[end].number].owner !=
				    c->data->services[c->changes[i].number].owner &&
			    !c->changes[i].of_system)
				break;
		correct_owner(j, i, end, order);
	}
	free(order);
	return 0;
}

ORDER(compare_rows, struct change_row,
      MOST(difference) ?: LEAST(total) ?: strcmp(a->function ?: "", b->function ?: "")
                       ?: strcmp(a->image, b->image)
                       ?: strcmp(a->reason ?: "", b->reason ?: ""))

/* What functions cost more, and what they cost less. */
struct balance {
	double more, less;
	double after; /* what those cost then that differ in the service's time */
};

/*
 * What some cost more and others less may be the same: the error of the scale is in each
 * difference, and theirs add up.
 */
static enum change_outcome outcome(const struct balance *b, double least, double scale_error)
{
	double limit = least;

	if (fmin(b->more, b->less) >= least)
		limit = fmax(least, SCALE_ERRORS * scale_error * b->after);
	if (b->more - b->less >= limit)
		return CHANGE_WORSE;
	if (b->less - b->more >= limit)
		return CHANGE_BETTER;
	return b->more >= least ? CHANGE_MOVED : CHANGE_NONE;
}

static void count_candidate(struct candidate *candidate, double difference, struct balance *balance)
{
	candidate->counted = true;
	*(difference > 0 ? &balance->more : &balance->less) += fabs(difference);
}

/* Whether a deploy has added it to what its caller does, or removed it. */
static bool is_addition(const struct candidate *candidate)
{
	return candidate->differs && candidate->row.total && candidate->added;
}

/*
 * Whether a function is known to be called by no such addition, through others or not: it nearly
 * always had the same caller, which had the same, up to where the stacks begin.
 */
static bool is_in_no_addition(const struct judge *j, const struct changes_function *f,
			      uint32_t number)
{
	const struct changes_caller *caller = main_caller(f);

	/* Functions may call each other in turn. */
	for (size_t depth = 0; caller && depth < MOST_DEPTH; depth++) {
		f = &j->c->data->functions[caller->number];
		for (size_t i = first_candidate(j, number); i < j->ends[number - j->first_change];
		     i++)
			if (j->candidates[i].function == f && is_addition(&j->candidates[i]))
				return false;
		caller = main_caller(f);
	}
	return !f->caller_count;
}

/*
 * What a deploy has added, and what it has removed, with all that this calls: each function of it
 * may be too small to differ by itself, as when something is logged that was not. More of what was
 * done before may be another mixture.
 */
static struct balance added_balance(const struct judge *j, uint32_t number)
{
	struct balance balance = { 0 };

	for (size_t i = first_candidate(j, number); i < j->ends[number - j->first_change]; i++) {
		const struct candidate *candidate = &j->candidates[i];

		if (is_addition(candidate) && is_in_no_addition(j, candidate->function, number))
			*(candidate->row.difference > 0 ? &balance.more : &balance.less) +=
				fabs(candidate->row.difference);
	}
	return balance;
}

/*
 * Chooses the measures that differ: by more than chance, by as much as was asked for, and still in
 * the second half of the time after.
 */
static void conclude_measures(struct judge *j, uint32_t number)
{
	struct change *change = &j->c->changes[number];

	for (int i = 0; i < CHANGE_MEASURES; i++) {
		struct change_measure *m = &change->measures[i];
		const struct measured *of =
			&j->measured[(number - j->first_change) * CHANGE_MEASURES + i];
		/* Of CPU time, as all is. */
		double whole = i == MEASURE_WAITED || i == MEASURE_DELAY ? 1 : m->value[BEFORE];
		double beyond = m->difference - of->explained[m->difference > 0];

		m->differs = m->known && m->p <= CHANCE_LEVEL &&
			     of->lasting / m->difference >= 0.5 &&
			     fabs(m->difference) >= j->o->least_percent / 100 * whole;
		/* What another number of requests explains is none. */
		if (i == MEASURE_PER_REQUEST && of->explained[m->difference > 0] != 0 &&
		    (beyond * m->difference <= 0 || fabs(beyond) < m->error))
			m->differs = false;
	}
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
	size_t rows = 0, waits = 0, first = first_candidate(j, number);
	size_t end = j->ends[number - j->first_change];
	double scale_error = j->scale_errors[number - j->first_change];

	for (size_t i = first; i < end; i++) {
		struct candidate *candidate = &j->candidates[i];
		const struct change_row *row = &candidate->row;
		double amount = fabs(row->difference);

		*(row->reason ? &change->waits_compared : &change->compared) += 1;
		if (row->p > CHANCE_LEVEL || candidate->lasting * 100 / row->difference < 0.5)
			continue;
		candidate->differs =
			amount >= j->o->least_percent && (row->total || !candidate->alike);
		if (row->reason) {
			waits += candidate->differs;
			continue;
		}
		rows += candidate->differs;
		/* Callers have what they call in their totals, so these do not add up. */
		if (!row->total && !candidate->alike) {
			count_candidate(candidate, row->difference, &balance);
			balance.after += row->percent[AFTER];
		}
	}
	/*
	 * Count what the other functions of the same caller cost less, or more: where that is
	 * called more often, or less, they may have given time to this one, or got it from this,
	 * and not differ in the service's time by more than chance.
	 */
	for (size_t i = first; i < end; i++) {
		const struct changes_caller *caller = j->candidates[i].caller;

		if (!j->candidates[i].differs || j->candidates[i].row.total || !caller)
			continue;
		for (size_t k = first; k < end; k++) {
			struct candidate *one = &j->candidates[k];

			if (!one->row.total && one->caller &&
			    one->caller->number == caller->number && !one->alike && !one->counted)
				count_candidate(one, one->moved, &balance);
		}
	}
	if (rows) {
		change->outcome = outcome(&balance, j->o->least_percent, scale_error);
		/* Then all that differs is in totals, or alike. */
		if (change->outcome == CHANGE_NONE && !change->asked) {
			balance = added_balance(j, number);
			change->outcome = outcome(&balance, j->o->least_percent, scale_error);
		}
		change->cost = balance.more - balance.less;
		/* More of a label's time may be more requests: how many there were is unknown. */
		if (change->outcome == CHANGE_NONE || j->c->by) {
			change->outcome = CHANGE_MIXTURE;
			change->cost = j->c->by ? 0 : change->cost;
		}
	}
	/* Requests of another mixture cost more or less, too. */
	if (change->measures[MEASURE_PER_REQUEST].differs && change->outcome != CHANGE_MIXTURE) {
		const struct change_measure *m = &change->measures[MEASURE_PER_REQUEST];

		change->by_request = true;
		change->cost = m->difference / m->value[BEFORE] * 100;
		change->outcome = m->difference > 0 ? CHANGE_WORSE : CHANGE_BETTER;
	}
	/* Blocked is also who has nothing to do, so this follows the load. */
	if (change->outcome == CHANGE_NONE && (waits || change->measures[MEASURE_WAITED].differs ||
					       change->measures[MEASURE_DELAY].differs))
		change->outcome = CHANGE_WAITS;
	change->rows = calloc(rows + 1, sizeof(*change->rows));
	change->waits = calloc(waits + 1, sizeof(*change->waits));
	if (!change->rows || !change->waits)
		return -ENOMEM;
	for (size_t i = first; i < end; i++) {
		const struct change_row *row = &j->candidates[i].row;

		if (j->candidates[i].differs && row->reason)
			change->waits[change->wait_count++] = *row;
		else if (j->candidates[i].differs)
			change->rows[change->row_count++] = *row;
	}
	qsort(change->rows, change->row_count, sizeof(*change->rows), compare_rows);
	qsort(change->waits, change->wait_count, sizeof(*change->waits), compare_rows);
	return 0;
}

int changes_judge(struct changes *c, const struct changes_options *o, size_t first)
{
	struct judge j = { .c = c, .o = o, .first_change = first };
	size_t count = c->count - first, most = 0;
	int err = 0;

	for (size_t i = 0; i < c->data->service_count; i++)
		most = MAX(most, c->data->services[i].count);
	j.parts = calloc(CHANGE_SIDES * c->data->block_count + 1, sizeof(*j.parts));
	j.measured = calloc(count * CHANGE_MEASURES + 1, sizeof(*j.measured));
	j.scale_errors = calloc(count + 1, sizeof(*j.scale_errors));
	j.ends = calloc(count + 1, sizeof(*j.ends));
	j.excluded = calloc(most + 1, sizeof(*j.excluded));
	if (!j.parts || !j.measured || !j.scale_errors || !j.ends || !j.excluded)
		err = -ENOMEM;
	for (size_t i = 0; i < count && !err; i++) {
		err = compare_change(&j, first + i);
		j.ends[i] = j.count;
	}
	err = err ?: correct_all(&j);
	for (size_t i = first; i < c->count && !err; i++) {
		conclude_measures(&j, i);
		err = conclude(&j, i);
	}
	free(j.parts);
	free(j.measured);
	free(j.scale_errors);
	free(j.ends);
	free(j.excluded);
	free(j.ratios);
	free(j.candidates);
	return err;
}
