// SPDX-License-Identifier: GPL-2.0-only
#include "report/chance.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* From this variance on, the normal distribution replaces the exact sum. */
#define NORMAL_VARIANCE 1e6

/* A sum ends at a term below this part of it. */
#define NEGLIGIBLE 1e-17

/* What counts without a limit are shares of: so many times their sum. */
#define BOUNDLESS 1e30

/* --- Two counts: web/chance.mjs is the same in JavaScript, and tests/web compares both --- */

/* One outcome: [a b; c d], with fixed sums of rows and columns. */
struct table {
	double a, b, c, d;
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
	bool is_lower = t.a < expected;
	double sum = 1, term = 1, first = probability(&t);

	while (term > sum * NEGLIGIBLE) {
		/* The factor of the probability when a becomes a - 1, or a + 1. */
		if (is_lower)
			term *= t.a * t.d / ((t.b + 1) * (t.c + 1));
		else
			term *= t.b * t.c / ((t.a + 1) * (t.d + 1));
		sum += term;
		move_outcome(&t, is_lower ? -1 : 1);
	}
	return first * sum;
}

static struct chance chance_of(const struct table *t)
{
	double n1 = t->a + t->b, n2 = t->c + t->d, k = t->a + t->c, rest = t->b + t->d;
	double n = n1 + n2, part1 = n1 / n, expected = k * part1;
	double variance = part1 * (n2 / n) * k * (rest / n), p;
	struct table low = *t, high = *t;

	if (n1 == 0 || n2 == 0 || k == 0 || rest == 0)
		return (struct chance){ 1, 1 };
	if (variance < NORMAL_VARIANCE)
		p = 2 * tail(*t, expected);
	else
		p = erfc(fmax(0, fabs(t->a - expected) - 0.5) / sqrt(2 * variance));
	/* Of the extreme outcomes, the less probable one has the least p. */
	move_outcome(&low, -fmin(t->a, t->d));
	move_outcome(&high, fmin(t->b, t->c));
	return (struct chance){ fmin(1, p),
				fmin(1, 2 * fmin(probability(&low), probability(&high))) };
}

struct chance chance_of_shares(uint64_t count1, uint64_t all1, uint64_t count2, uint64_t all2)
{
	return chance_of(&(struct table){ count1, all1 - count1, count2, all2 - count2 });
}

struct chance chance_of_counts(uint64_t count1, uint64_t count2, double part1)
{
	double all = ((double)count1 + (double)count2) * BOUNDLESS;

	return chance_of(&(struct table){ count1, all * part1, count2, all * (1 - part1) });
}

/* --- Several counts of each side: Student's t --- */

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

double chance_of_t(double t, double freedom)
{
	return beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double chance_t_95(double freedom)
{
	double low = 1.9, high = 1000;

	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2;

		if (chance_of_t(middle, freedom) > 0.05)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* --- Many rows --- */

static int compare_p(const void *one, const void *other)
{
	const double *const *a = one, *const *b = other;

	return (**a > **b) - (**a < **b);
}

void chance_correct(double **p, size_t count)
{
	double least = 1;

	if (count)
		qsort(p, count, sizeof(*p), compare_p);
	for (size_t i = count; i-- > 0;) {
		least = fmin(least, *p[i] * (double)count / (double)(i + 1));
		*p[i] = least;
	}
}

/* --- Words --- */

const char *chance_text(const struct chance *c, char *buffer, size_t size)
{
	unsigned int thousandths = (unsigned int)(c->p * 1000 + 0.5);

	if (c->least > CHANCE_LEVEL)
		return "~";
	if (c->p < 0.001)
		return "<0.001";
	snprintf(buffer, size, "%s%u.%03u", c->p > CHANCE_LEVEL ? "~" : "", thousandths / 1000,
		 thousandths % 1000);
	return buffer;
}

void chance_print(size_t differ, size_t tested, const char *noun, FILE *out)
{
	fprintf(out,
		"%zu of %zu %s differ%s by more than chance "
		"(p <= 0.05: at most 1 in 20 such rows is false)\n",
		differ, tested, noun, differ == 1 ? "s" : "");
}
