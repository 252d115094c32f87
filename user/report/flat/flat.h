/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_FLAT_H
#define PROFIL_REPORT_FLAT_H

#include "report/report.h"

/*
 * The table of functions, or of the view in options->rows, busiest first: one header line, then
 * one line per row. Without stacks
 *
 *     samples  %  cum%  function  image
 *
 * and with stacks, which a profile has when any sample is deeper than 1
 *
 *     self  self%  total  total%  function  image
 *
 * A profile of several events has two more columns for each, its count and %, before the function;
 * a narrow terminal shows as many of them as fit. options->rows.delay adds `delay s  delay%`.
 *
 * Columns are at least two blanks apart. Function names contain blanks (C++) and may be of any
 * length: a script finds the image, a base name, in the last column, and the function between it
 * and the numbers. When rows are omitted, a last line gives their number and share:
 * `... 12 more functions, 3.45 %`.
 */
int report_table(const struct profile *p, const struct report_table_options *o, FILE *out);

/*
 * The summary and the rows as one JSON object (profiltool-json(5)): functions as "functions", other
 * rows as "rows" with the view's name as "by". A key whose value is unknown is omitted.
 */
int report_json(const struct profile *p, const struct report_table_options *o, FILE *out);

#endif
