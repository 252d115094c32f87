/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_REPORT_H
#define PROFIL_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "profile/profile.h"

/*
 * Views of a profile, printed to `out` and nowhere else. All return 0 or -ENOMEM, and may then
 * have printed a part. Whether printing itself went well is for the caller to ask: ferror(out).
 *
 * Names, paths and comments come from files and processes that nobody vouches for: in text, what
 * would disturb a terminal is shown as \xNN, in JSON, what is no UTF-8 as U+FFFD.
 */

struct report_table_options {
	size_t limit;	    /* rows at most; 0: all */
	unsigned int width; /* columns of the terminal; 0: do not shorten, the output is a pipe */
	bool color;
};

/*
 * The table of functions, busiest first: one header line, one line per row. Without stacks
 *
 *     samples  %  cum%  function  image
 *
 * and with stacks, which a profile has when any sample is deeper than 1
 *
 *     self  self%  total  total%  function  image
 *
 * Columns are at least two blanks apart. Function names contain blanks (C++) and may be of any
 * length: to a script the image, a basename, is the last column and the function all between it
 * and the numbers. When rows are left out, a last line tells how many and how much:
 * `... 12 more functions, 3.45 %`.
 */
int report_table(const struct profile *p, const struct report_table_options *options, FILE *out);

/*
 * The summary and the table as one JSON object (DESIGN.md, 3). A key whose value the profile does
 * not know is left out.
 */
int report_json(const struct profile *p, FILE *out);

/*
 * What happened, in up to three lines for a person, each begun by `prefix`; lines about what the
 * profile does not know are left out. target: who was profiled, or NULL.
 */
int report_summary(const struct profile *p, const char *prefix, const char *target, FILE *out);

/*
 * One line for each image whose samples got no name though names were looked for, and the reason;
 * most samples first, each line begun by `prefix`. A sample belongs to the image of its leaf.
 */
int report_unnamed(const struct profile *p, const char *prefix, FILE *out);

/*
 * Everything the profile holds, in its own order, without interpretation. Header lines `key value`
 * (what is not known is left out), then
 *
 *     mappings:
 *     START-LIMIT OFFSET PATH [build-id=HEX]
 *     stacks:
 *     COUNT PC... [PID/TID COMM kernel] # NAME;NAME...
 *
 * with the leaf's pc first and callers as the file holds them. The labels are there when known
 * (and then in brackets), the names when any is known: one for each pc, `?` when it has none, and
 * the functions inlined there before it, marked `(inlined)`.
 */
int report_dump(const struct profile *p, FILE *out);

/* Stacks, mappings and header as one JSON object (DESIGN.md, 3). */
int report_dump_json(const struct profile *p, FILE *out);

#endif
