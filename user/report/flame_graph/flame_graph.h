/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_FLAME_GRAPH_H
#define PROFIL_REPORT_FLAME_GRAPH_H

#include <stdbool.h>
#include <stdio.h>

#include "report/call_tree.h"

/*
 * A flame graph: a file that a browser shows and needs nothing else for. A frame for each call
 * path, as wide as its part of the samples.
 */

struct flame_graph_options {
	bool html;   /* else SVG, which has a picture besides, for where no scripts run */
	bool icicle; /* the root is on top */
	const char *title;
	struct call_tree_options tree;
};

/*
 * Writes the graph of p; with `earlier`, which may be NULL, coloured by how the parts of the
 * samples have changed since then. Percentages are of all samples of a profile, those that a filter
 * took away included. Returns 0 or -ENOMEM; whether printing went well is for the caller to ask:
 * ferror(out).
 */
int flame_graph_print(const struct profile *p, const struct profile *earlier,
		      const struct flame_graph_options *o, FILE *out);

#endif
