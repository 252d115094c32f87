/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_ROW_VIEW_H
#define PROFIL_REPORT_ROW_VIEW_H

#include <stdbool.h>

#include "profile/callgraph.h"

/* What a row of a table stands for. */

/* In the order in which they are shown. */
enum row_field {
	ROW_ADDRESS = CALLGRAPH_ADDRESS,
	ROW_SOURCE = CALLGRAPH_SOURCE,
	ROW_LINE = CALLGRAPH_LINE,
	ROW_FUNCTION = CALLGRAPH_FUNCTION, /* a pc without a name is a row of its own */
	ROW_IMAGE = CALLGRAPH_IMAGE,
	/* Who ran, not where: not together with those above */
	ROW_PROCESS = 1 << 16,
	ROW_THREAD = 1 << 17,
	ROW_COMM = 1 << 18, /* in all views of them */
};

/* The fields that identify a row: what --by takes. */
struct row_view {
	const char *name; /* also what one row is */
	const char *plural;
	unsigned int fields;
};

extern const struct row_view row_views[]; /* functions are the first; ends with a NULL name */

/* The view of this name, or NULL. */
const struct row_view *row_view_by_name(const char *name);

/* The same for several runs: processes and threads by their names alone. */
const struct row_view *row_view_of_any_run(const struct row_view *view);

extern const char row_unknown[]; /* "[unknown]" */

/* Whether --image means this path: it is it, or its base name; NULL means all. */
bool row_image_is(const char *path, const char *image);

/* What an image is called in every run: its base name, without the process in "[jit 612]". */
const char *row_image_of_any_run(const char *path);

/* Whether a function that was asked for means this one: "work" is "work(int, char)", too. */
bool row_function_is(const char *name, const char *function);

/*
 * Of each of the profile's labels which ones name its process: those of the main thread, else of
 * its first; without a pid itself. Returns 0 or -ENOMEM.
 */
int row_process_labels(const struct profile *p, uint32_t *names);

#endif
