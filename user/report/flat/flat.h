/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_FLAT_H
#define PROFIL_REPORT_FLAT_H

#include "report/report.h"

/*
 * The table of functions, or of what else options->rows says, busiest first: one header line, one
 * line per row. Without stacks
 *
 *     samples  %  cum%  function  image
 *
 * and with stacks, which a profile has when any sample is deeper than 1
 *
 *     self  self%  total  total%  function  image
 *
 * A profile of several events has two columns more for each, its count and %, before the function;
 * a narrow terminal shows as many of them as fit.
 *
 * Columns are at least two blanks apart. Function names contain blanks (C++) and may be of any
 * length: to a script the image, a basename, is the last column and the function all between it
 * and the numbers. When rows are omitted, a last line gives their number and share:
 * `... 12 more functions, 3.45 %`.
 */
int report_table(const struct profile *p, const struct report_table_options *options, FILE *out);

/*
 * The summary and the rows as one JSON object (profiltool(5)): functions as "functions", all else
 * as "rows", with "by" telling what they are. A key whose value the profile does not know is left
 * out.
 */
int report_json(const struct profile *p, const struct report_table_options *o, FILE *out);

#endif
