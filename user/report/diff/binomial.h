/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_BINOMIAL_H
#define PROFIL_REPORT_BINOMIAL_H

#include <stddef.h>
#include <stdint.h>

/*
 * Whether two counts of samples differ by more than chance. Samples are taken as independent of
 * each other. All probabilities are two-sided: twice that of the smaller tail, at most 1.
 */
struct significance {
	double p; /* of counts at least so far apart, if in truth nothing differed */
	/*
	 * The least p that counts with the same sums could have had: where this is large, there are
	 * too few samples to tell anything.
	 */
	double least;
};

/*
 * One count of all samples in either profile, as shares: Fisher's exact test, and where counts are
 * so large that it makes no difference, the z test of two proportions with pooled variance. A count
 * is at most as large as its `all`.
 */
struct significance shares_differ(uint64_t count1, uint64_t all1, uint64_t count2, uint64_t all2);

/*
 * Two counts as such, of which the first has this part, between 0 and 1, of their sum if in truth
 * nothing differed: the binomial test, or the normal distribution as above.
 */
struct significance counts_differ(uint64_t count1, uint64_t count2, double part1);

/*
 * Holm's correction, for looking at many rows for one that differs: with the corrected p, the
 * probability to find any below a limit, where nothing differs, is that limit at most. In place.
 * Returns 0 or -ENOMEM.
 */
int significance_correct(double *p, size_t count);

#endif
