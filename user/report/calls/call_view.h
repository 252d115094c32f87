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

/* A profile as a tree of calls: all of it, or what calls a function, or what that calls. */

struct call_view_options {
	enum call_tree_roots roots;
	const char *function; /* the one whose calls are shown; NULL: the whole tree */
	const char *image;    /* that holds it: its path or base name; NULL: any */
	bool callers;	      /* of the function, in place of what it calls */
	double percent;	      /* of all samples: what has less is left out */
	size_t limit;	      /* nodes at most, those with most samples; 0: all */
};

/* What the children of a node that are not shown have together. */
struct call_rest {
	uint64_t count; /* children */
	uint64_t total;
};

struct call_view {
	struct call_view_options options;
	struct call_tree tree;
	char *title;  /* what is counted: "samples", "cycles" */
	bool *hidden; /* nodes that the limit leaves out, and all below them; NULL: none */
	struct call_rest *rests; /* of each node */
	size_t left_out;	 /* callers or callees that are not shown, of all nodes */
};

/*
 * Made of stacks; for callers and callees in a profile that has none of calls that were counted
 * apart, one level deep. Returns 0, or a negative errno with e set: without any of these, and when
 * there is no such function. call_view_free() is due in any case.
 */
int call_view_make(struct call_view *v, const struct profile *p, const struct call_view_options *o,
		   struct error *e);
void call_view_free(struct call_view *v);

/* The first child of a node that is shown, the next one behind a node; or CALL_TREE_NONE. */
uint32_t call_view_first(const struct call_view *v, uint32_t node);
uint32_t call_view_next(const struct call_view *v, uint32_t node);

struct call_view_style {
	unsigned int width; /* columns of the terminal; 0: do not shorten, the output is a pipe */
	bool color;
	bool utf8; /* lines may be drawn */
};

/*
 * One line for each function, the outermost first, each below its caller, or in callers below what
 * it calls. What a node alone calls stands below it; where a node calls several they are indented
 * and marked. A number that is that of the line above, whose only callee it is, is left out.
 *
 *     total%  self%  function  image               the whole tree
 *     samples  total%  root%  self%  function  image    of one function; without self% of callers
 *     calls  samples  total%  root%  function  image    from calls that were counted
 *
 * Images are told where they change. root% is the part of what the function has.
 */
int call_view_print(const struct call_view *v, const struct call_view_style *style, FILE *out);

/* The same as one JSON object; see profiltool(5). Both return 0 or -ENOMEM, as all of report.h. */
int call_view_json(const struct call_view *v, const struct profile *p, FILE *out);

#endif
