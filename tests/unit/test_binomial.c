// SPDX-License-Identifier: GPL-2.0-only
/*
 * The significance of differences: exact values, large counts, and the rate of false positives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "report/binomial.h"

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
		struct significance s = shares_differ(cases[i].count1, cases[i].all1,
						      cases[i].count2, cases[i].all2);
		struct significance swapped = shares_differ(cases[i].count2, cases[i].all2,
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
		struct significance s =
			counts_differ(cases[i].count1, cases[i].count2, cases[i].part1);

		assert_near(s.p, cases[i].p, 1e-11);
		assert_true(s.least <= s.p * (1 + 1e-11));
	}
}

/* Too few samples to decide, and just enough. */
static void test_ends(void **state)
{
	(void)state;
	assert_true(shares_differ(0, 0, 5, 10).p == 1);
	assert_true(shares_differ(0, 10, 0, 10).p == 1);
	assert_true(shares_differ(10, 10, 20, 20).p == 1);
	assert_true(shares_differ(0, 0, 0, 0).least == 1);
	assert_true(counts_differ(0, 0, 0.5).p == 1);
	assert_near(counts_differ(2, 2, 0.5).least, 0.125, 1e-12);
	assert_near(counts_differ(1, 0, 0.25).least, 0.5, 1e-12);
	/* 2 * comb(17, 3) / comb(20, 3) is above 1, 2 / comb(20, 3) is not */
	assert_near(shares_differ(1, 3, 2, 17).least, 2.0 / 1140, 1e-12);
}

/* Counts from files can be any number. */
static void test_large(void **state)
{
	const uint64_t large = INT64_MAX, most = UINT64_MAX;
	struct significance s;

	(void)state;
	/* Sums of ratios in Python; then the normal distribution takes over. */
	assert_near(shares_differ(1999000, 8000000, 2001000, 8000000).p, 0.24844966607, 1e-9);
	assert_near(shares_differ(3498200, 14000000, 3501800, 14000000).p, 0.11624482232, 1e-4);
	assert_true(shares_differ(large / 2, large, large / 2, large).p == 1);
	assert_true(shares_differ(large / 2, large, large / 3, large).p == 0);
	assert_true(shares_differ(most, most, most, most).p == 1);
	assert_true(shares_differ(0, most, most, most).p == 0);
	assert_true(counts_differ(most, most, 0.5).p == 1);
	assert_true(counts_differ(most, 0, 0.5).p == 0);
	assert_true(counts_differ(most, 1, 1e-300).p == 0);
	/* A few of very many: the same as the binomial test of the few. */
	s = shares_differ(3, large, 12, large);
	assert_near(s.p, counts_differ(3, 12, 0.5).p, 1e-9);
	s = shares_differ(large - 3, large, large - 12, large);
	assert_near(s.p, counts_differ(3, 12, 0.5).p, 1e-9);
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

		shares += shares_differ(a, 1000, b, 1500).p <= 0.05;
		counts += counts_differ(draw(&seed, 4000, 0.02), draw(&seed, 8000, 0.02), 1.0 / 3)
				  .p <= 0.05;
		small +=
			shares_differ(draw(&seed, 200, 0.01), 200, draw(&seed, 200, 0.01), 200).p <=
			0.05;
		detected += shares_differ(a, 1000, draw(&seed, 1000, 0.4), 1000).p <= 0.05;
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

	(void)state;
	assert_int_equal(significance_correct(p, 0), 0);
	assert_int_equal(significance_correct(&one, 1), 0);
	assert_near(one, 0.3, 1e-15);
	assert_int_equal(significance_correct(p, COUNT(p)), 0);
	assert_near(p[1], 0.05, 1e-12);
	assert_near(p[3], 0.08, 1e-12);
	assert_near(p[4], 0.09, 1e-12);
	assert_near(p[0], 0.09, 1e-12); /* not less than one before it: 2 * 0.04 */
	assert_near(p[2], 1, 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),	   cmocka_unit_test(test_counts),
		cmocka_unit_test(test_ends),	   cmocka_unit_test(test_large),
		cmocka_unit_test(test_correction), cmocka_unit_test(test_false_positives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
