/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_REPORT_H
#define PROFIL_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "profile/profile.h"
#include "report/rows.h"

/*
 * What views of a profile share; each has a directory, and does not know the others. They are
 * printed to `out` and nowhere else. All return 0 or -ENOMEM, and may then have printed a part.
 * Whether printing itself went well is for the caller to ask: ferror(out).
 *
 * Names, paths and comments come from untrusted files and processes: in text, what would disturb a
 * terminal is shown as \xNN, in JSON, what is no UTF-8 as U+FFFD.
 */

struct report_table_options {
	struct rows_options rows;
	size_t limit;	    /* rows at most; 0: all */
	double percent;	    /* of all samples: rows with less are left out */
	unsigned int width; /* columns of the terminal; 0: do not shorten, the output is a pipe */
	bool color;
};

/*
 * What happened, and what is shown, in some lines for a person, each begun by `prefix`; lines about
 * what the profile does not know are left out. target: who was profiled, or NULL.
 */
int report_summary(const struct profile *p, const char *prefix, const char *target, FILE *out);

/*
 * One line for each image whose samples got no name though names were looked for, and the reason;
 * most samples first, each line begun by `prefix`. A sample belongs to the image of its leaf.
 * Then one line for each interpreter whose C functions have much of the time, as what they run has
 * no name either.
 */
int report_unnamed(const struct profile *p, const char *prefix, FILE *out);

#endif
