/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_REPORT_H
#define PROFIL_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "profile/profile.h"
#include "report/rows.h"

/*
 * Shared by the views of a profile. Each view has a directory and does not include another. Views
 * print to `out` only. They return 0, or -ENOMEM, perhaps after a part of the output. Errors of
 * printing are left to ferror(out).
 *
 * Names, paths and comments come from untrusted files and processes: text replaces bytes that would
 * disturb a terminal by \xNN, JSON replaces invalid UTF-8 by U+FFFD.
 */

/*
 * Wall time of which nothing is known is printed from here on: rounded, it is 0.001 s.
 * Bound: pace.
 */
#define REPORT_UNKNOWN_NS 500000

struct report_table_options {
	struct rows_options rows;
	size_t limit;	    /* rows at most; 0: all */
	bool fits;	    /* the limit is the terminal's: say how to see all */
	double percent;	    /* omit rows with less of all samples */
	bool cpu_time;	    /* columns of CPU time also where rows are code */
	unsigned int width; /* columns of the terminal; 0: do not shorten, the output is a pipe */
	bool color;
};

/* How many of so many rows are printed. */
static inline size_t report_rows(const struct report_table_options *o, size_t count)
{
	return o->limit && o->limit < count ? o->limit : count;
}

/*
 * Prints a few lines about the recording and the shown value, each begun by `prefix`; omits
 * unknown parts. value: as in profile_value(). target: the profiled program, or NULL. Returns 0 or
 * -ENOMEM.
 */
int report_summary(const struct profile *p, const char *value, const char *prefix,
		   const char *target, FILE *out);

/*
 * After names were looked up: prints a line for each image with samples (by leaf) that got no name
 * and the reason, most samples first, and after ten of them one line for all others; then a line
 * for each interpreter whose C functions have a large share of the samples, because the functions
 * that it runs have no names either; with `packages` a line that names the packages of missing
 * symbols, where this machine knows them. Each line is begun by `prefix`.
 */
int report_unnamed(const struct profile *p, const char *value, bool packages, const char *prefix,
		   FILE *out);

/*
 * Prints in one line which images have most of the samples, and whether few of their functions do;
 * nothing if there are no samples. rows: the value and filters.
 */
int report_where(const struct profile *p, const struct rows_options *rows, const char *prefix,
		 FILE *out);

/*
 * Instead of both, for a person at a terminal. out: for how long the threads were on a CPU,
 * runnable and asleep; below: how many samples there are, what was lost, and the two most important
 * causes of missing names, stacks or time, in a line each. The other two have all. rows: the value
 * and filters of the table. above: the table of these rows is printed between the two; else
 * report_where() follows the first.
 */
int report_brief(const struct profile *p, const struct rows_options *rows, const char *target,
		 bool above, FILE *out, FILE *below);

#endif
