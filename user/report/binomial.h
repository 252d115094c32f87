/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_BINOMIAL_H
#define PROFIL_REPORT_BINOMIAL_H

#include <stddef.h>
#include <stdint.h>

/*
 * Tests whether two counts of samples differ by more than chance, if samples are independent of
 * each other. All probabilities are two-sided: twice that of the smaller tail, at most 1.
 */
#define SIGNIFICANT 0.05 /* the p up to which a difference is reported */

struct significance {
	double p; /* of counts at least this far apart, if there were no difference */
	/*
	 * The least p possible with the same sums: where it is large, there are too few samples to
	 * find a difference.
	 */
	double least;
};

/*
 * Compares the shares count1 / all1 and count2 / all2, where a count is at most its `all`: Fisher's
 * exact test; where counts are so large that it makes no difference, the z test of two proportions
 * with pooled variance.
 */
struct significance shares_differ(uint64_t count1, uint64_t all1, uint64_t count2, uint64_t all2);

/*
 * Compares two counts. part1: count1's share of their sum, between 0 and 1, if there were no
 * difference. The binomial test, or the normal distribution as above.
 */
struct significance counts_differ(uint64_t count1, uint64_t count2, double part1);

/*
 * Applies Holm's correction to `count` probabilities in place: of many rows, some differ by chance.
 * Corrected, and if nothing differs, the probability that any of them is below a limit is at most
 * that limit. Returns 0 or -ENOMEM.
 */
int significance_correct(double *p, size_t count);

#endif
