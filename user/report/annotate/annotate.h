/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_ANNOTATE_H
#define PROFIL_REPORT_ANNOTATE_H

#include <stdbool.h>
#include <stdio.h>

#include "report/annotate/annotation.h"

struct report_listing_options {
	unsigned int width; /* as above */
	bool color;
	bool all;    /* instructions and lines without a sample, too */
	bool source; /* the source alone */
};

/*
 * A function's instructions with their samples, as dcpilist(1) has them:
 *
 *     samples  %  address  B  instruction
 *
 * and of a profile with stacks, or costs of calls
 *
 *     self  total  %  address  B  instruction
 *
 * where the total of a call is what was spent in it. % is the part of the function's samples, or
 * of its total. Further events have a column each behind it. `:` in B marks what is jumped to;
 * loops are drawn beside it. The source line stands before the instructions that it became, as
 * FILE:LINE TEXT in the last column. `...` stands for instructions that are
 * omitted, with their number: they have no sample and are not near one that has.
 *
 * With options->source, or where there are no instructions, the lines of the source instead:
 *
 *     samples  %  line  source
 *
 * Below a line, `>` begins what is inlined there: a part of the line's samples.
 */
int report_listing(struct annotation *a, const struct report_listing_options *options, FILE *out);
int report_listing_json(struct annotation *a, FILE *out);

/* One line, begun by `prefix`: the function, its image, its samples and their part of all. */
int report_listing_title(const struct annotation *a, const char *prefix, FILE *out);

/* What was missing when the listing was printed: one line for each, begun by `prefix`. */
void report_listing_notes(const struct annotation *a, const char *prefix, FILE *out);

#endif
