/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_DIFF_H
#define PROFIL_REPORT_DIFF_H

#include "report/diff/comparison.h"
#include "report/report.h"

/*
 * Prints two profiles side by side, the largest difference first: samples in each; their share of
 * all and its difference in percentage points, or their time in seconds and its difference, or
 * that in a second of the recording, in milliseconds;
 * the normalised range, |old - new| / (|old| + |new|) of these shares or times; and the
 * significance. Samples are those of each row's self, or of its total. options->rows has no effect.
 *
 *     old  old%  new  new%  diff  range%  p  function  image
 *     old  old s  new  new s  diff s  range%  p  function  image
 *     old  old ms/s  new  new ms/s  diff ms/s  range%  p  function  image
 *
 * p begins with `~` if it is above 0.05, and is `~` alone if there are too few samples for a test.
 * The column is omitted if a profile counts no samples. Narrow terminals omit range%.
 */
int report_diff(const struct comparison *c, const struct report_table_options *options, FILE *out);
int report_diff_json(const struct comparison *c, const struct report_table_options *options,
		     FILE *out);

/*
 * Prints up to five lines, begun by `prefix`: the profiles, what is compared, and how many rows
 * really differ.
 */
void report_diff_summary(const struct comparison *c, const char *const *names, const char *prefix,
			 FILE *out);

#endif
