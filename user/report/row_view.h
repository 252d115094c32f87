/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_ROW_VIEW_H
#define PROFIL_REPORT_ROW_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/callgraph.h"
#include "profile/tags.h"

/* The fields by which samples are grouped in rows of a table. */

enum row_field {
	ROW_ADDRESS = CALLGRAPH_ADDRESS,
	ROW_SOURCE = CALLGRAPH_SOURCE,
	ROW_LINE = CALLGRAPH_LINE,
	ROW_FUNCTION = CALLGRAPH_FUNCTION, /* a pc without a name is a row of its own */
	ROW_IMAGE = CALLGRAPH_IMAGE,
	ROW_STATE = CALLGRAPH_STATE, /* of a thread, and for what it waited */
	ROW_CODE = ROW_ADDRESS | ROW_SOURCE | ROW_LINE | ROW_FUNCTION | ROW_IMAGE | ROW_STATE,

	ROW_PROCESS = 1 << 8,
	ROW_THREAD = 1 << 9,
	ROW_COMM = 1 << 10, /* in every view of processes or threads */
};

/* A tag of samples, in a view of its own: behind those above. */
#define ROW_OF_TAG(number) (1ULL << (11 + (number)))

/* A tag that profil does not know: the view's name. */
#define ROW_LABEL ROW_OF_TAG(TAG_COUNT)
#define ROW_TAGS  (ROW_OF_TAG(TAG_COUNT + 1) - ROW_OF_TAG(0))

/* What a variable of the process had, or a label that profil does not know. */
#define ROW_CONTEXT                                                                       \
	(ROW_OF_TAG(TAG_APPLICATION) | ROW_OF_TAG(TAG_DATABASE) | ROW_OF_TAG(TAG_QUERY) | \
	 ROW_OF_TAG(TAG_ROLE) | ROW_OF_TAG(TAG_ROUTE) | ROW_LABEL)

/* Rows of them have no times of threads: they are of code, or of what threads did meanwhile. */
#define ROW_WITHOUT_WALL                                                         \
	(ROW_CODE | ROW_CONTEXT | ROW_OF_TAG(TAG_WAKER) | ROW_OF_TAG(TAG_PEER) | \
	 ROW_OF_TAG(TAG_CPU))

/* The fields that identify a row: what --by takes, or --sort as perf's keys. */
struct row_view {
	const char *name; /* also the noun for one row, unless the plural is "rows" */
	const char *plural;
	uint64_t fields;
};

/* Views of code, then of processes and threads; the first is functions. Ends with a NULL name. */
extern const struct row_view row_views[];

/* The view of this name, among them, by what threads did, or by a tag with this key; or NULL. */
const struct row_view *row_view_by_name(const char *name);

/*
 * The same; of another name the view by the label that is called so, also as label:NAME, for which
 * it takes *label. NULL: a label has no such name.
 */
const struct row_view *row_view_find(const char *name, struct row_view *label);

/*
 * Writes the names of views, "function, image, ..."; tags: also those of views by what threads did
 * and by a tag.
 */
void row_view_list(bool tags, char *text, size_t size);

/* The tag of a view; NULL: it is by something else. */
const struct tag_kind *row_view_tag(const struct row_view *view);

/* True if any sample has the tag of a view, or its states, or the view is by something else. */
bool row_view_has_tag(const struct row_view *view, const struct profile *p);

/* The view with these fields, which can also combine those of code with others; or NULL. */
const struct row_view *row_view_by_fields(uint64_t fields);

/* The same view of several runs, where only names identify processes and threads. */
const struct row_view *row_view_of_any_run(const struct row_view *view);

/* What `count` rows are called: "function", "functions". */
const char *row_view_noun(const struct row_view *view, size_t count);

extern const char row_unknown[]; /* "[unknown]" */

/* The path of a location's image, or row_unknown. location: can be PROFILE_NONE. */
const char *row_image_path(const struct profile *p, uint32_t location);

/* True if `image`, the value of --image, is this path or its base name; NULL: any path. */
bool row_image_is(const char *path, const char *image);

/* The name of an image that is the same in every run: its base name; "[jit]" for "[jit 612]". */
const char *row_image_of_any_run(const char *path);

/*
 * True if a name that a user gave is this function's: "work" is also "work(int, char)", and
 * "work[abi:cxx11]()".
 */
bool row_function_is(const struct profile_function *f, const char *name);

/*
 * Stores in names[], for each of the profile's labels, the name of its process: the one under which
 * it has most samples or, of equals, most wall time. Where it is unknown (foreign files do not
 * tell that of threads), the main thread's, else that of the first labels with this pid; without a
 * pid, their own comm. Returns 0 or -ENOMEM.
 */
int row_process_names(const struct profile *p, const char **names);

#endif
