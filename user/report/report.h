/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_REPORT_H
#define PROFIL_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "profile/profile.h"
#include "report/rows.h"

/*
 * What views of a profile share. Each view has a directory and does not include another. Views
 * print to `out` only. They return 0, or -ENOMEM, perhaps after a part of the output. Whether
 * printing itself succeeded, ferror(out) says.
 *
 * Names, paths and comments come from untrusted files and processes: text shows as \xNN what would
 * disturb a terminal, JSON shows as U+FFFD what is invalid UTF-8.
 */

struct report_table_options {
	struct rows_options rows;
	size_t limit;	    /* rows at most; 0: all */
	double percent;	    /* omit rows with less of all samples */
	unsigned int width; /* columns of the terminal; 0: do not shorten, the output is a pipe */
	bool color;
};

/*
 * Prints what was recorded and what is shown in a few lines, each begun by `prefix`; omits what the
 * profile does not hold. value: what is counted, as in profile_value(). target: who was profiled,
 * or NULL.
 */
int report_summary(const struct profile *p, const char *value, const char *prefix,
		   const char *target, FILE *out);

/*
 * After names were looked up: prints a line for each image with samples (by leaf) that got no name
 * and the reason, most samples first, and after ten of them one line for all others; then a line
 * for each interpreter whose C functions have a large share of the samples, because the functions
 * that it runs have no names either. Each line is begun by `prefix`.
 */
int report_unnamed(const struct profile *p, const char *value, const char *prefix, FILE *out);

#endif
