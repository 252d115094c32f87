// SPDX-License-Identifier: GPL-2.0-only
#include "report/chance.h"

#include <math.h>
#include <stdlib.h>

#include "util/order.h"

/* From this variance on, the normal distribution replaces the exact sum. */
#define NORMAL_VARIANCE 1e6

/* A sum ends at a term below this part of it. */
#define NEGLIGIBLE 1e-17

/* What counts without a limit are shares of: so many times their sum. */
#define BOUNDLESS 1e30

/* --- Two counts: web/chance.mjs is the same in JavaScript, and tests/web compares both --- */

/*
 * Sums the probabilities of the outcomes [a - 1 b + 1; c + 1 d - 1], and so on, which have the same
 * sums of rows and columns, as multiples of that of [a b; c d]: of ratios, no large terms cancel.
 * *end: that of the last outcome; 0: it is negligible.
 */
static double sum_beyond(double a, double b, double c, double d, double *end)
{
	double sum = 0, term = 1;

	*end = 0;
	while (a > 0 && d > 0) {
		term *= a-- * d-- / (++b * ++c);
		sum += term;
		/* Infinite: this outcome is so far out that its p is 0. */
		if (term < sum * NEGLIGIBLE || isinf(sum))
			return sum;
	}
	*end = term;
	return sum;
}

/* Fisher's test of [a b; c d]. */
static struct chance chance_of(double a, double b, double c, double d)
{
	double n1 = a + b, n2 = c + d, k = a + c, rest = b + d, n = n1 + n2, part1 = n1 / n;
	double variance = part1 * (n2 / n) * k * (rest / n);
	double down, up, low, high, all;

	if (n1 == 0 || n2 == 0 || k == 0 || rest == 0)
		return (struct chance){ 1, 1 };
	if (variance >= NORMAL_VARIANCE)
		return (struct chance){ .p = erfc(fmax(0, fabs(a - k * part1) - 0.5) /
						  sqrt(2 * variance)) };
	down = sum_beyond(a, b, c, d, &low);
	up = sum_beyond(b, a, d, c, &high);
	all = down + 1 + up;
	return (struct chance){ fmin(1, 2 * (1 + fmin(down, up)) / all),
				fmin(1, 2 * fmin(low, high) / all) };
}

struct chance chance_of_shares(uint64_t count1, uint64_t all1, uint64_t count2, uint64_t all2)
{
	return chance_of(count1, all1 - count1, count2, all2 - count2);
}

struct chance chance_of_counts(uint64_t count1, uint64_t count2, double part1)
{
	double all = ((double)count1 + (double)count2) * BOUNDLESS;

	return chance_of(count1, all * part1, count2, all * (1 - part1));
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

struct chance chance_of_times(const struct chance_times sides[2])
{
	const double e1 = sides[0].exposure, e2 = sides[1].exposure;
	const double count = (double)sides[0].count + (double)sides[1].count;
	/* Of the difference of the rates, if both sides have the same. */
	const double variance =
		(sides[0].squares + sides[1].squares) / (e1 + e2) * (1 / e1 + 1 / e2);
	const double difference = sides[1].sum / e2 - sides[0].sum / e1;
	struct chance chance = { 1, 1 };

	if (count < 2 || !(variance > 0))
		return chance;
	chance.p = chance_of_t(difference / sqrt(variance), count - 1);
	/* If all were equally long, and of the side of which that is less likely. */
	chance.least = chance_of_t(sqrt(count * fmax(e1 / e2, e2 / e1)), count - 1);
	return chance;
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

ORDER(compare_p, double *const, COMPARE(**a, **b))

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
