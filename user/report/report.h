/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_REPORT_H
#define PROFIL_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "profile/profile.h"
#include "report/annotate/annotation.h"
#include "report/diff/comparison.h"
#include "report/rows.h"

/*
 * Views of a profile, printed to `out` and nowhere else. All return 0 or -ENOMEM, and may then
 * have printed a part. Whether printing itself went well is for the caller to ask: ferror(out).
 *
 * Names, paths and comments come from files and processes that nobody vouches for: in text, what
 * would disturb a terminal is shown as \xNN, in JSON, what is no UTF-8 as U+FFFD.
 */

struct report_table_options {
	struct rows_options rows;
	size_t limit;	    /* rows at most; 0: all */
	double percent;	    /* of all samples: rows with less are left out */
	unsigned int width; /* columns of the terminal; 0: do not shorten, the output is a pipe */
	bool color;
};

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
 * and the numbers. When rows are left out, a last line tells how many and how much:
 * `... 12 more functions, 3.45 %`.
 */
int report_table(const struct profile *p, const struct report_table_options *options, FILE *out);

/*
 * The summary and the rows as one JSON object (profiltool(5)): functions as "functions", all else
 * as "rows", with "by" telling what they are. A key whose value the profile does not know is left
 * out.
 */
int report_json(const struct profile *p, const struct report_table_options *o, FILE *out);

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
 * FILE:LINE TEXT in the last column. `...` tells how many instructions are left out which have no
 * sample and are not near one that has.
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

/*
 * Everything the profile holds, in its own order, without interpretation. Header lines `key value`
 * (what is not known is left out), then
 *
 *     mappings:
 *     START-LIMIT OFFSET PATH [build-id=HEX] [text_start=HEX text_size=HEX] [linked]
 *     stacks:
 *     COUNT PC... [PID/TID COMM kernel KEY=VALUE...] # NAME;NAME...
 *     calls:
 *     COUNT COST CALLER CALLEE [labels] # NAME;NAME
 *     jumps:
 *     COUNT[/EXECUTED] FROM TO [labels] # NAME;NAME
 *     extras:
 *     FORMAT [PATH]: TEXT
 *
 * with the leaf's pc first and callers as the file holds them. The labels are there when known
 * (and then in brackets), the names when any is known: one for each pc, `?` when it has none, with
 * its source line in parentheses when that is known, and the functions inlined there before it,
 * marked `(inlined)`. The last three sections are there when they have a line.
 *
 * When the profile counts something else than samples and their time, the header has a line
 * `value TYPE UNIT` for each of its values, and COUNT (COST) is all of them, with commas between.
 */
int report_dump(const struct profile *p, FILE *out);

/* The same as one JSON object; see profiltool(5) for its keys. */
int report_dump_json(const struct profile *p, FILE *out);

#endif
