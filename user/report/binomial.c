// SPDX-License-Identifier: GPL-2.0-only
#include "report/binomial.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* From this variance on, the normal distribution replaces the exact sum. */
#define NORMAL_VARIANCE 1e6

/* A sum ends at a term below this part of it. */
#define NEGLIGIBLE 1e-17

/*
 * One outcome of the test. Hypergeometric distribution: [a b; c d] with fixed sums of rows and
 * columns. Binomial distribution: a and c with a fixed sum, and the odds of a.
 */
struct table {
	double a, b, c, d;
	double odds; /* 0: hypergeometric */
};

/* log(n!) less Stirling's formula sqrt(2 pi n) (n / e)^n, for n > 0. */
static double stirling_rest(double n)
{
	double square = n * n;
	int sign;

	if (n < 16)
		return lgamma_r(n + 1, &sign) - (n + 0.5) * log(n) + n - 0.5 * log(2 * M_PI);
	return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - 1.0 / 1680 / square) / square) / square) / n;
}

/*
 * x log(x / mean) + mean - x, without cancellation where x is near the mean:
 * with v = (x - mean) / (x + mean), log(x / mean) is 2 (v + v^3/3 + v^5/5 + ...).
 */
static double deviance(double x, double mean)
{
	double distance = x - mean, v = distance / (x + mean), sum, power;

	if (fabs(v) > 0.1)
		return x * log(x / mean) - distance;
	sum = distance * v;
	power = 2 * x * v;
	for (int i = 3; i < 40; i += 2) {
		power *= v * v;
		sum += power / i;
	}
	return sum;
}

/*
 * The log of the binomial probability of x and y with the probabilities p and q, by Loader's saddle
 * point form, which is exact at any size, because no large terms cancel.
 */
static double log_binomial(double x, double y, double p, double q)
{
	double n = x + y;

	if (x == 0 || y == 0)
		return x + y == 0 ? 0 : n * (x == 0 ? log1p(-p) : log1p(-q));
	return stirling_rest(n) - stirling_rest(x) - stirling_rest(y) - deviance(x, n * p) -
	       deviance(y, n * q) + 0.5 * log(n / (2 * M_PI * x * y));
}

/* The probability of this outcome among all outcomes with the same sums. */
static double probability(const struct table *t)
{
	double k = t->a + t->c, rest = t->b + t->d, n = k + rest;

	if (t->odds != 0)
		return exp(log_binomial(t->a, t->c, t->odds / (1 + t->odds), 1 / (1 + t->odds)));
	return exp(log_binomial(t->a, t->b, k / n, rest / n) +
		   log_binomial(t->c, t->d, k / n, rest / n) -
		   log_binomial(k, rest, k / n, rest / n));
}

static void move_outcome(struct table *t, double by)
{
	t->a += by;
	t->b -= by;
	t->c -= by;
	t->d += by;
}

/* The probability of a or further from the expected. Terms decrease with the distance. */
static double tail(struct table t, double expected)
{
	bool is_lower = t.a < expected, binomial = t.odds != 0;
	double sum = 1, term = 1, first = probability(&t);

	while (term > sum * NEGLIGIBLE) {
		/* The factor of the probability when a becomes a - 1, or a + 1. */
		if (is_lower && binomial)
			term *= t.a / ((t.c + 1) * t.odds);
		else if (is_lower)
			term *= t.a * t.d / ((t.b + 1) * (t.c + 1));
		else if (binomial)
			term *= t.c * t.odds / (t.a + 1);
		else
			term *= t.b * t.c / ((t.a + 1) * (t.d + 1));
		sum += term;
		move_outcome(&t, is_lower ? -1 : 1);
	}
	return first * sum;
}

static double both_sides(double one_side)
{
	return fmin(1, 2 * one_side);
}

static double two_sided_p(const struct table *t, double expected, double variance)
{
	double distance = fabs(t->a - expected);

	if (variance < NORMAL_VARIANCE)
		return both_sides(tail(*t, expected));
	return erfc(fmax(0, distance - 0.5) / sqrt(2 * variance));
}

/* The p of the less probable of the extreme outcomes. */
static double least_p(const struct table *t)
{
	bool binomial = t->odds != 0;
	struct table low = *t, high = *t;

	move_outcome(&low, binomial ? -t->a : -fmin(t->a, t->d));
	move_outcome(&high, binomial ? t->c : fmin(t->b, t->c));
	return both_sides(fmin(probability(&low), probability(&high)));
}

struct significance shares_differ(uint64_t count1, uint64_t all1, uint64_t count2, uint64_t all2)
{
	struct table t = { count1, all1 - count1, count2, all2 - count2, 0 };
	double n1 = t.a + t.b, n2 = t.c + t.d, k = t.a + t.c, rest = t.b + t.d, n = n1 + n2;
	double part1 = n1 / n;
	double variance = part1 * (n2 / n) * k * (rest / n);

	if (n1 == 0 || n2 == 0 || k == 0 || rest == 0)
		return (struct significance){ 1, 1 };
	return (struct significance){ two_sided_p(&t, k * part1, variance), least_p(&t) };
}

struct significance counts_differ(uint64_t count1, uint64_t count2, double part1)
{
	struct table t = { .a = count1, .c = count2, .odds = part1 / (1 - part1) };
	double k = t.a + t.c;

	if (k == 0)
		return (struct significance){ 1, 1 };
	return (struct significance){ two_sided_p(&t, k * part1, k * part1 * (1 - part1)),
				      least_p(&t) };
}

static int compare_p(const void *one, const void *other)
{
	const double *const *a = one, *const *b = other;

	return (**a > **b) - (**a < **b);
}

int significance_correct(double *p, size_t count)
{
	double **sorted = reallocarray(NULL, count + 1, sizeof(*sorted));
	double largest = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sorted[i] = &p[i];
	if (count)
		qsort(sorted, count, sizeof(*sorted), compare_p);
	for (size_t i = 0; i < count; i++) {
		largest = fmax(largest, fmin(1, *sorted[i] * (double)(count - i)));
		*sorted[i] = largest;
	}
	free(sorted);
	return 0;
}
