/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_ANNOTATE_H
#define PROFIL_REPORT_ANNOTATE_H

#include <stdbool.h>
#include <stdio.h>

#include "report/annotation.h"

struct report_listing_options {
	unsigned int width; /* columns of the terminal; 0: do not shorten, the output is a pipe */
	bool color;
	bool all;    /* instructions and lines without samples too */
	bool source; /* source lines instead of instructions */
};

/*
 * Prints a function's instructions with their samples:
 *
 *     samples  %  address  B  instruction
 *
 * and of a profile with stacks or costs of calls
 *
 *     self  total  %  address  B  instruction
 *
 * where the total of a call instruction includes what its calls cost. % is the share of the
 * function's samples, or total. Each further event has a column after it. `:` in B marks targets of
 * jumps; loops are drawn beside it. A source line precedes its instructions, as FILE:LINE TEXT in
 * the last column. `...` and a number stand for omitted instructions, which have no samples and are
 * not near one that has.
 *
 * With options->source, or without instructions, prints the source lines instead:
 *
 *     samples  %  line  source
 *
 * `>` begins functions inlined into the line above: their samples are a part of that line's.
 * Returns 0 or -ENOMEM, as does report_listing_json().
 */
int report_listing(struct annotation *a, const struct report_listing_options *options, FILE *out);
int report_listing_json(struct annotation *a, FILE *out);

/* Prints a line, begun by `prefix`: the function, its image, its samples and their share of all. */
void report_listing_title(const struct annotation *a, const char *prefix, FILE *out);

#endif
