/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_CALL_VIEW_H
#define PROFIL_REPORT_CALL_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "profile/profile.h"
#include "report/call_tree.h"
#include "util/error.h"

/* The calls of a profile as a tree: all of them, or the callers or callees of a function. */

struct call_view_options {
	enum call_tree_roots roots;
	const char *function; /* whose callers or callees are shown; NULL: all calls */
	const char *image;    /* that holds it: its path or base name; NULL: any */
	bool callers;	      /* of the function, instead of callees */
	const char *value;    /* what is counted: profile_value() */
	double percent;	      /* omit nodes with less of all samples */
	size_t limit;	      /* nodes at most, those with most samples; 0: all */
	const struct profile_filtered *filtered; /* NULL: nothing */
};

/* The children of a node that are not shown. */
struct call_rest {
	uint64_t count;
	int64_t total;	 /* their sum */
	uint64_t weight; /* as in callgraph_cost */
};

struct call_view {
	struct call_view_options options;
	struct call_tree tree;
	char *title;  /* what is counted: "samples", "cycles" */
	bool *hidden; /* of each node: it or an ancestor exceeds the limit; NULL: none does */
	struct call_rest *rests; /* of each node */
	size_t omitted;		 /* number of folded and hidden nodes */
};

/*
 * Makes the view from stacks. Callers and callees of a profile without stacks are made from its
 * recorded calls, one level deep. Returns 0, or a negative errno with e set: without stacks and
 * such calls, or when the function is not found. Call call_view_free() in any case.
 */
int call_view_make(struct call_view *v, const struct profile *p, const struct call_view_options *o,
		   struct error *e);
void call_view_free(struct call_view *v);

struct call_view_style {
	unsigned int width; /* columns of the terminal; 0: do not shorten, the output is a pipe */
	bool color;
	bool utf8; /* draw lines with box characters */
};

/*
 * Prints a line for each node, below its parent: a caller, or of callers the callee. An only child
 * is at the indentation of its parent; several are indented and marked. An only child's number is
 * blank if it equals the parent's.
 *
 *     total%  self%  function  image               all calls
 *     samples  total%  root%  self%  function  image    of a function; callers without self%
 *     calls  samples  total%  root%  function  image    from recorded calls
 *
 * An image is printed where it differs from the parent's. root% is the share of the function's
 * total.
 */
int call_view_print(const struct call_view *v, const struct call_view_style *style, FILE *out);

/* The same as one JSON object; see profiltool-json(5). Both return 0 or -ENOMEM, as in report.h. */
int call_view_json(const struct call_view *v, const struct profile *p, FILE *out);

#endif
