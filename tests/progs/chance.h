/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a number of ticks can be chance: tests/chance.py, for C programs. The distribution is the
 * one that `profiltool diff` computes, which tests/unit/test_binomial.c compares with exact sums.
 */
#ifndef TESTS_CHANCE_H
#define TESTS_CHANCE_H

#include <stdbool.h>

#include "report/diff/binomial.h"

/* The least probability, by the binomial distribution, of what a row takes for chance. */
#define CHANCE 1e-9

/* Trials of which so few succeed that it makes no difference how many there are. */
#define MANY_TRIALS 1e12

/* Two-sided: of k among n, each of which has this probability. */
static inline double share_p(double k, double n, double probability)
{
	return counts_differ(k, n - k, probability).p;
}

/* The same for k ticks when so many are due. */
static inline double rate_p(double k, double due)
{
	return share_p(k, MANY_TRIALS, due / MANY_TRIALS);
}

/* Whether there can be k ticks when between `low` and `high` are due. */
static inline bool is_rate(double k, double low, double high)
{
	if (k < low)
		return rate_p(k, low) >= CHANCE;
	return k <= high || (high > 0 && rate_p(k, high) >= CHANCE);
}

#endif
