/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_DIFF_H
#define PROFIL_REPORT_DIFF_H

#include "report/diff/comparison.h"
#include "report/report.h"

/*
 * Two profiles side by side, the largest difference first: samples in each; their part of all there
 * and the difference of the parts in percentage points, or their time in seconds and its
 * difference; dcpidiff(1)'s normalised range, |old - new| / (old + new) of these parts or times;
 * and the significance. options->rows has no effect.
 *
 *     old  old%  new  new%  diff  range%  p  function  image
 *     old  old s  new  new s  diff s  range%  p  function  image
 *
 * p has `~` in front where it is above 0.05, and nothing else where there are too few samples to
 * tell; the column is missing when a profile counts no samples. On a narrow terminal range% is.
 */
int report_diff(const struct comparison *c, const struct report_table_options *options, FILE *out);
int report_diff_json(const struct comparison *c, const struct report_table_options *options,
		     FILE *out);

/* Up to three lines, begun by `prefix`: what is compared, and how many rows really differ. */
void report_diff_summary(const struct comparison *c, const char *const *names, const char *prefix,
			 FILE *out);

#endif
