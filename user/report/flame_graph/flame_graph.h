/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_FLAME_GRAPH_H
#define PROFIL_REPORT_FLAME_GRAPH_H

#include <stdbool.h>
#include <stdio.h>

#include "report/call_tree.h"

/*
 * A flame graph: a file that a browser shows without any other. It has a frame for each call path,
 * as wide as its share of the samples.
 */

/*
 * Deeper stacks are cut: a picture would be higher than browsers show.
 * Bound: files: frames of a stack in a flame graph; then: the callers beyond are cut off; seen: in
 * a note of the picture.
 */
#define FLAME_GRAPH_DEPTH_MAX 2048

struct flame_graph_options {
	bool html;   /* false: SVG, which also has a picture for viewers that run no scripts */
	bool icicle; /* the root is on top */
	const char *title;
	struct call_tree_options tree;
};

/*
 * Prints the graph of p. earlier: colours show how shares have changed since this profile; or NULL.
 * Percentages are of all samples of a profile, o->tree.filtered included. Returns 0 or -ENOMEM.
 * Errors of printing are left to ferror(out).
 */
int flame_graph_print(const struct profile *p, const struct profile *earlier,
		      const struct flame_graph_options *o, FILE *out);

#endif
