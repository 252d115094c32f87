/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_ROW_VIEW_H
#define PROFIL_REPORT_ROW_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/callgraph.h"

/* The fields by which samples are grouped in rows of a table. */

enum row_field {
	ROW_ADDRESS = CALLGRAPH_ADDRESS,
	ROW_SOURCE = CALLGRAPH_SOURCE,
	ROW_LINE = CALLGRAPH_LINE,
	ROW_FUNCTION = CALLGRAPH_FUNCTION, /* a pc without a name is a row of its own */
	ROW_IMAGE = CALLGRAPH_IMAGE,
	ROW_CODE = ROW_ADDRESS | ROW_SOURCE | ROW_LINE | ROW_FUNCTION | ROW_IMAGE,

	ROW_PROCESS = 1 << 16,
	ROW_THREAD = 1 << 17,
	ROW_COMM = 1 << 18, /* in every view of processes or threads */

	/* Tags of samples, each in a view of its own */
	ROW_TIME = 1 << 19,
	ROW_UNIT = 1 << 20,
	ROW_CONTAINER = 1 << 21,
	ROW_USER = 1 << 22,
	ROW_CPU = 1 << 23,
	ROW_HOST = 1 << 24,
	ROW_TAGS = ROW_TIME | ROW_UNIT | ROW_CONTAINER | ROW_USER | ROW_CPU | ROW_HOST,
};

/* The fields that identify a row: what --by takes, or --sort as perf's keys. */
struct row_view {
	const char *name; /* also the noun for one row, unless the plural is "rows" */
	const char *plural;
	unsigned int fields;
};

extern const struct row_view row_views[]; /* the first is functions; ends with a NULL name */

/* Views by a tag of samples, whose key is the name; ends as above. */
extern const struct row_view row_tag_views[];

/* The view of this name in one of the two, or NULL. */
const struct row_view *row_view_by_name(const char *name);

/* Whether any sample has the tag of a view; true for other views. */
bool row_view_has_tag(const struct row_view *view, const struct profile *p);

/* The view with these fields, which can also combine those of code with others; or NULL. */
const struct row_view *row_view_by_fields(unsigned int fields);

/* The same view of several runs, where only names identify processes and threads. */
const struct row_view *row_view_of_any_run(const struct row_view *view);

/* What `count` rows are called: "function", "functions". */
const char *row_view_noun(const struct row_view *view, size_t count);

extern const char row_unknown[]; /* "[unknown]" */

/* The path of a location's image, or row_unknown. location: can be PROFILE_NONE. */
const char *row_image_path(const struct profile *p, uint32_t location);

/* Whether --image means this path: its value is the path or its base name; NULL: any path. */
bool row_image_is(const char *path, const char *image);

/* The name of an image that is the same in every run: its base name; "[jit]" for "[jit 612]". */
const char *row_image_of_any_run(const char *path);

/* Whether a name that was asked for means this function: "work" also means "work(int, char)". */
bool row_function_is(const struct profile_function *f, const char *name);

/*
 * Stores in `names`, for each of the profile's labels, the number of those whose comm is the name
 * of its process: the main thread's last, else the first ones with this pid; without a pid, its
 * own. Returns 0 or -ENOMEM.
 */
int row_process_labels(const struct profile *p, uint32_t *names);

#endif
