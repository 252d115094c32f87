/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_CHANCE_H
#define PROFIL_REPORT_CHANCE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * The one rule of chance, of all views: a difference is more than chance if its p, corrected for
 * the number of rows, is at most CHANCE_LEVEL. user/doc/chance.md says why this rule.
 *
 * p is the probability of a difference at least so large if there were none. It is two-sided: twice
 * that of the smaller tail, at most 1. Two recordings are two counts of samples, which are taken as
 * independent of each other; several windows before and after are compared by their scatter.
 */
#define CHANCE_LEVEL 0.05

#define CHANCE_NOTHING "nothing differs by more than chance"

struct chance {
	double p;
	/*
	 * The least p possible with the same sums: where it is above the limit, there are too few
	 * samples to find a difference, and chance_correct() need not count the row.
	 */
	double least;
};

/*
 * Compares the shares count1 / all1 and count2 / all2, where a count is at most its `all`: Fisher's
 * exact test; where counts are so large that it makes no difference, the z test of two proportions
 * with pooled variance.
 */
struct chance chance_of_shares(uint64_t count1, uint64_t all1, uint64_t count2, uint64_t all2);

/*
 * Compares two counts. part1: count1's share of their sum, between 0 and 1, if there were no
 * difference. The same test of shares of something without bounds, which makes it the binomial
 * test.
 */
struct chance chance_of_counts(uint64_t count1, uint64_t count2, double part1);

/* Times that add up, as of waits, in one of two recordings. */
struct chance_times {
	double sum;	 /* of the times */
	double squares;	 /* the sum of their squares */
	uint64_t count;	 /* how many they are */
	double exposure; /* how long was recorded */
};

/*
 * Compares two sums of times by how much their parts scatter: they come independently of each
 * other, as ticks do, and are as long on both sides. One long wait is no difference: `least`
 * depends on the number of waits.
 */
struct chance chance_of_times(const struct chance_times sides[2]);

/* The p of Student's t. */
double chance_of_t(double t, double freedom);

/* The t whose p is 0.05. */
double chance_t_95(double freedom);

/*
 * Corrects these p in place for being many, by Benjamini and Hochberg's rule: of the rows whose
 * corrected p is at most a limit, at most so large a part differs by chance, on average. If nothing
 * differs at all, so large a part of comparisons has such a row. Sorts `p`.
 */
void chance_correct(double **p, size_t count);

/* A corrected p for a table: "<0.001", "0.012"; "~0.345": may be chance; "~": too few samples. */
const char *chance_text(const struct chance *c, char *buffer, size_t size);

/* Prints "3 of 6 functions differ by more than chance", and what that means. */
void chance_print(size_t differ, size_t tested, const char *noun, FILE *out);

#endif
