// SPDX-License-Identifier: GPL-2.0-only
/*
 * What differs by more than chance: exact values, large counts, and how often the rule is wrong,
 * beside two that it has replaced. With an argument, the table of user/doc/chance.md of so many
 * pairs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/chance.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void assert_near(double value, double expected, double relative)
{
	if (fabs(value - expected) <= relative * expected)
		return;
	print_error("%.17g is not %.17g\n", value, expected);
	fail();
}

/*
 * Sums of fractions.Fraction in Python, twice the smaller tail: of comb(n1, a) * comb(n2, k - a)
 * over comb(n1 + n2, k).
 */
static void test_shares(void **state)
{
	static const struct {
		uint64_t count1, all1, count2, all2;
		double p;
	} cases[] = {
		{ 1, 9, 11, 12, 0.000741673187493621 },
		{ 3, 10, 3, 10, 1.0 },
		{ 0, 20, 8, 25, 0.010035341856101923 },
		{ 50, 100, 50, 200, 3.2179068537578375e-05 },
		{ 10, 100, 0, 100, 0.0015420521254357006 },
		{ 1, 1000, 9, 1000, 0.02117752939684126 },
		{ 120, 400, 160, 400, 0.0038039122282809775 },
		{ 700, 1000, 600, 1000, 3.3716997073999386e-06 },
		{ 3, 5000, 15, 7000, 0.047463218486936 },
		{ 2990, 3000, 2960, 3000, 2.2147623130530316e-05 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct chance s = chance_of_shares(cases[i].count1, cases[i].all1, cases[i].count2,
						   cases[i].all2);
		struct chance swapped = chance_of_shares(cases[i].count2, cases[i].all2,
							 cases[i].count1, cases[i].all1);

		assert_near(s.p, cases[i].p, 1e-11);
		assert_near(swapped.p, cases[i].p, 1e-11);
		assert_true(s.least <= s.p * (1 + 1e-11));
	}
}

/* The same way, of comb(k, a) * p^a * (1 - p)^(k - a). */
static void test_counts(void **state)
{
	static const struct {
		uint64_t count1, count2;
		double part1, p;
	} cases[] = {
		{ 0, 6, 0.5, 0.03125 },
		{ 3, 12, 0.5, 0.03515625 },
		{ 10, 10, 0.5, 1.0 },
		{ 100, 140, 0.5, 0.011664092317677663 },
		{ 5, 40, 0.25, 0.03588692414930341 },
		{ 900, 2100, 0.25, 6.390766978525754e-10 },
		{ 0, 3, 0.75, 0.03125 },
		{ 1500, 1600, 0.5, 0.07537169707532781 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct chance s =
			chance_of_counts(cases[i].count1, cases[i].count2, cases[i].part1);

		assert_near(s.p, cases[i].p, 1e-11);
		assert_true(s.least <= s.p * (1 + 1e-11));
	}
}

/* Too few samples to decide, and just enough. */
static void test_ends(void **state)
{
	(void)state;
	assert_true(chance_of_shares(0, 0, 5, 10).p == 1);
	assert_true(chance_of_shares(0, 10, 0, 10).p == 1);
	assert_true(chance_of_shares(10, 10, 20, 20).p == 1);
	assert_true(chance_of_shares(0, 0, 0, 0).least == 1);
	assert_true(chance_of_counts(0, 0, 0.5).p == 1);
	assert_near(chance_of_counts(2, 2, 0.5).least, 0.125, 1e-12);
	assert_near(chance_of_counts(1, 0, 0.25).least, 0.5, 1e-12);
	/* 2 * comb(17, 3) / comb(20, 3) is above 1, 2 / comb(20, 3) is not */
	assert_near(chance_of_shares(1, 3, 2, 17).least, 2.0 / 1140, 1e-12);
}

/* Counts from files can be any number. */
static void test_large(void **state)
{
	const uint64_t large = INT64_MAX, most = UINT64_MAX;
	struct chance s;

	(void)state;
	/* Sums of ratios in Python; then the normal distribution takes over. */
	assert_near(chance_of_shares(1999000, 8000000, 2001000, 8000000).p, 0.24844966607, 1e-9);
	assert_near(chance_of_shares(3498200, 14000000, 3501800, 14000000).p, 0.11624482232, 1e-4);
	assert_true(chance_of_shares(large / 2, large, large / 2, large).p == 1);
	assert_true(chance_of_shares(large / 2, large, large / 3, large).p == 0);
	assert_true(chance_of_shares(most, most, most, most).p == 1);
	assert_true(chance_of_shares(0, most, most, most).p == 0);
	assert_true(chance_of_counts(most, most, 0.5).p == 1);
	assert_true(chance_of_counts(most, 0, 0.5).p == 0);
	assert_true(chance_of_counts(most, 1, 1e-300).p == 0);
	/* A few of very many: the same as the binomial test of the few. */
	s = chance_of_shares(3, large, 12, large);
	assert_near(s.p, chance_of_counts(3, 12, 0.5).p, 1e-9);
	s = chance_of_shares(large - 3, large, large - 12, large);
	assert_near(s.p, chance_of_counts(3, 12, 0.5).p, 1e-9);
}

static uint64_t random_u64(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t draw(uint64_t *state, uint64_t n, double p)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < n; i++)
		count += (double)(random_u64(state) >> 11) < p * 0x1p53;
	return count;
}

/* Two profiles of the same program differ by p <= 0.05 in nearly 5 % of all draws, never more. */
static void test_false_positives(void **state)
{
	const int draws = 4000;
	uint64_t seed = 20261120;
	int shares = 0, counts = 0, small = 0, detected = 0;

	(void)state;
	for (int i = 0; i < draws; i++) {
		uint64_t a = draw(&seed, 1000, 0.3), b = draw(&seed, 1500, 0.3);

		shares += chance_of_shares(a, 1000, b, 1500).p <= 0.05;
		counts +=
			chance_of_counts(draw(&seed, 4000, 0.02), draw(&seed, 8000, 0.02), 1.0 / 3)
				.p <= 0.05;
		small += chance_of_shares(draw(&seed, 200, 0.01), 200, draw(&seed, 200, 0.01), 200)
				 .p <= 0.05;
		detected += chance_of_shares(a, 1000, draw(&seed, 1000, 0.4), 1000).p <= 0.05;
	}
	print_message("false: shares %.2f %%, counts %.2f %%, small counts %.2f %%; true %.2f %%\n",
		      shares * 100.0 / draws, counts * 100.0 / draws, small * 100.0 / draws,
		      detected * 100.0 / draws);
	assert_in_range(shares, draws * 3 / 100, draws * 55 / 1000);
	assert_in_range(counts, draws * 3 / 100, draws * 55 / 1000);
	assert_in_range(small, 0, draws * 5 / 100);
	assert_true(detected > draws * 99 / 100);
}

static void test_correction(void **state)
{
	double p[] = { 0.04, 0.01, 1, 0.02, 0.03 }, one = 0.3;
	double *order[COUNT(p)], *alone[] = { &one };

	(void)state;
	for (size_t i = 0; i < COUNT(p); i++)
		order[i] = &p[i];
	chance_correct(order, 0);
	chance_correct(alone, 1);
	assert_near(one, 0.3, 1e-15);
	chance_correct(order, COUNT(p));
	assert_near(p[1], 0.05, 1e-12);
	assert_near(p[3], 0.05, 1e-12); /* 5 / 2 * 0.02 */
	assert_near(p[4], 0.05, 1e-12); /* 5 / 3 * 0.03 */
	assert_near(p[0], 0.05, 1e-12); /* 5 / 4 * 0.04 */
	assert_near(p[2], 1, 1e-12);
}

/* --- Recordings of many rows --- */

#define ROWS_MAX 1000
#define TICKS	 100000

enum rule {
	RULE,	     /* that of chance.h */
	HOLM,	     /* the same test, with Holm's correction */
	THREE_SIGMA, /* the z test, without one */
	RULES
};

static int pairs = 100;

struct found {
	int pairs_with_false; /* of `pairs` */
	double false_part;    /* of what is reported, in percent: the mean of all pairs */
	double true_part;     /* of what differs, in percent */
};

static unsigned int poisson(uint64_t *state, double mean)
{
	/* In steps, so that exp() does not underflow. */
	unsigned int count = 0;

	for (double left = mean; left > 0; left -= 500) {
		double product = 1, limit = exp(-fmin(left, 500));

		while ((product *= (double)(random_u64(state) >> 11) * 0x1p-53) > limit)
			count++;
	}
	return count;
}

static int compare_p(const void *one, const void *other)
{
	const double *const *a = one, *const *b = other;

	return (**a > **b) - (**a < **b);
}

static void correct_by_holm(double **p, size_t count)
{
	double largest = 0;

	qsort(p, count, sizeof(*p), compare_p);
	for (size_t i = 0; i < count; i++)
		*p[i] = largest = fmax(largest, *p[i] * (double)(count - i));
}

/* Of these rows, a tenth take `effect` more, and as many as much less. */
static void simulate(size_t rows, double effect, struct found *found)
{
	static double p[RULES][ROWS_MAX], *order[ROWS_MAX];
	uint64_t seed = 20261129;

	memset(found, 0, RULES * sizeof(*found));
	for (int pair = 0; pair < pairs; pair++) {
		uint64_t counts[2][ROWS_MAX], all[2] = { 0 };

		for (size_t i = 0; i < rows; i++) {
			double changed = i % 10 == 1 ? effect : i % 10 == 2 ? -effect : 0;

			counts[0][i] = poisson(&seed, (double)TICKS / rows);
			counts[1][i] = poisson(&seed, (double)TICKS / rows * (1 + changed));
			all[0] += counts[0][i];
			all[1] += counts[1][i];
		}
		for (size_t i = 0; i < rows; i++) {
			uint64_t a = counts[0][i], b = counts[1][i];
			double pooled = (double)(a + b) / (double)(all[0] + all[1]);
			double error = sqrt(pooled * (1 - pooled) * (1. / all[0] + 1. / all[1]));

			p[RULE][i] = p[HOLM][i] = chance_of_shares(a, all[0], b, all[1]).p;
			p[THREE_SIGMA][i] =
				fabs((double)a / all[0] - (double)b / all[1]) < 3 * error;
		}
		for (int rule = 0; rule < RULES; rule++) {
			int right = 0, wrong = 0;

			for (size_t i = 0; i < rows; i++)
				order[i] = &p[rule][i];
			if (rule == RULE)
				chance_correct(order, rows);
			else if (rule == HOLM)
				correct_by_holm(order, rows);
			for (size_t i = 0; i < rows; i++)
				if (p[rule][i] <= CHANCE_LEVEL)
					*(effect > 0 && i % 10 > 0 && i % 10 < 3 ? &right
										 : &wrong) += 1;
			found[rule].pairs_with_false += wrong > 0;
			if (wrong)
				found[rule].false_part += wrong * 100. / (right + wrong) / pairs;
			found[rule].true_part += right * 100. / (rows / 5.) / pairs;
		}
	}
}

static void test_many_rows(void **state)
{
	static const double effects[] = { 0, 0.1, 0.2, 0.5 };
	struct found found[RULES];

	(void)state;
	for (size_t rows = 100; rows <= ROWS_MAX; rows *= 10)
		for (size_t i = 0; i < COUNT(effects); i++) {
			simulate(rows, effects[i], found);
			for (int rule = 0; rule < RULES; rule++)
				print_message("%4zu rows, changed by %2.0f %%, %s: pairs with a "
					      "false one "
					      "%.1f %%, false of reported %.1f %%, found %.1f %%\n",
					      rows, effects[i] * 100,
					      (const char *const[]){ "the rule", "Holm",
								     "3 sigma" }[rule],
					      found[rule].pairs_with_false * 100. / pairs,
					      found[rule].false_part, found[rule].true_part);
			/* 5 %, and three standard errors of 100 pairs. */
			assert_true(found[RULE].false_part <= 11.5);
			assert_true(found[RULE].true_part >= found[HOLM].true_part);
			if (rows == 100 && effects[i] == 0.5)
				assert_true(found[RULE].true_part > 99);
		}
}

static struct chance of_waits(uint64_t count1, double length1, double exposure1, uint64_t count2,
			      double length2, double exposure2)
{
	const struct chance_times sides[] = {
		{ (double)count1 * length1, (double)count1 * length1 * length1, count1, exposure1 },
		{ (double)count2 * length2, (double)count2 * length2 * length2, count2, exposure2 },
	};

	return chance_of_times(sides);
}

/* Waits: more of them, longer ones, one that is as long as all others; and what is too little. */
static void test_times(void **state)
{
	struct chance c = of_waits(0, 1, 1, 16, 3, 1);

	(void)state;
	/* t is the root of their number. Twice the integral of its density from 4 on, of 15 */
	assert_near(c.p, 0.0011593168497611, 1e-9);
	assert_near(c.least, c.p, 1e-12);
	c = of_waits(16, 3e9, 5e9, 0, 1, 5e9);
	assert_near(c.p, 0.0011593168497611, 1e-9);
	/* As many, ten times as long. */
	assert_true(of_waits(30, 1, 1, 30, 10, 1).p < 0.001);
	assert_true(of_waits(30, 1, 1, 30, 1, 1).p == 1);
	/* Twice as long recorded, twice as many. */
	assert_true(of_waits(30, 1, 1, 60, 1, 2).p > 0.999);
	/* One wait cannot be judged, nor can six; seven can. */
	assert_true(of_waits(0, 1, 1, 1, 1e9, 1).least == 1);
	assert_true(of_waits(1, 1, 1, 5, 1e9, 1).least > CHANCE_LEVEL);
	assert_true(of_waits(0, 1, 1, 7, 1, 1).least <= CHANCE_LEVEL);
	/* Nothing at all */
	assert_true(of_waits(0, 0, 1, 0, 0, 1).p == 1);
}

static uint64_t seed = 1;

static double uniform(void)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (double)((seed >> 11) + 1) / 9007199254740993.;
}

/* Of equal sides whose waits are of very different lengths, at most 1 in 20 differs. */
static void test_times_false_positives(void **state)
{
	int judged = 0, wrong = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct chance_times sides[2] = { { .exposure = 1 }, { .exposure = 3 } };
		double rate = exp(uniform() * 4);
		struct chance c;

		for (int side = 0; side < 2; side++)
			for (double at = -log(uniform()) / rate; at < sides[side].exposure;
			     at -= log(uniform()) / rate) {
				double length = exp(uniform() * 5);

				sides[side].sum += length;
				sides[side].squares += length * length;
				sides[side].count++;
			}
		c = chance_of_times(sides);
		judged += c.least <= CHANCE_LEVEL;
		wrong += c.least <= CHANCE_LEVEL && c.p <= CHANCE_LEVEL;
	}
	assert_true(judged > 10000);
	print_message("%d of %d equal pairs of waits differ\n", wrong, judged);
	assert_true(wrong * 20 <= judged);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest many[] = { cmocka_unit_test(test_many_rows) };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),	   cmocka_unit_test(test_counts),
		cmocka_unit_test(test_ends),	   cmocka_unit_test(test_large),
		cmocka_unit_test(test_correction), cmocka_unit_test(test_false_positives),
		cmocka_unit_test(test_times),	   cmocka_unit_test(test_times_false_positives),
		cmocka_unit_test(test_many_rows),
	};

	if (argc > 1) {
		pairs = atoi(argv[1]);
		return cmocka_run_group_tests(many, NULL, NULL);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
