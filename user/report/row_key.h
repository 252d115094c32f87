/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_ROW_KEY_H
#define PROFIL_REPORT_ROW_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* What tells the rows of a table apart. */

/* In the order in which they are shown. */
enum row_field {
	ROW_ADDRESS = 1,
	ROW_SOURCE = 2,
	ROW_LINE = 4,
	ROW_FUNCTION = 8, /* a pc without a name is a row of its own */
	ROW_IMAGE = 16,
	ROW_PROCESS = 32,
	ROW_THREAD = 64,
	ROW_COMM = 128, /* with the two above: who ran, not where */
};

/* The fields that rows are told apart by: what --by takes. */
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

/* What a row stands for. Fields that its view does not tell apart are NULL or 0. */
struct row_key {
	const char *function; /* NULL: it has no name; "[no pc]" of samples without a pc */
	const char *image;    /* the path, or row_unknown */
	const char *source;   /* the file, or row_unknown */
	uint32_t line;	      /* 0: not known */
	uint64_t address;     /* in the image's own numbering */
	uint32_t pid, tid;
	const char *comm; /* of a thread; of a process only when it has no pid */
};

extern const char row_unknown[]; /* "[unknown]" */

/* Whether --image means this path: it is it, or its base name; NULL means all. */
bool row_image_is(const char *path, const char *image);

/* What an image is called in every run: its base name, without the process in "[jit 612]". */
const char *row_image_of_any_run(const char *path);

/* Whether a function that was asked for means this one: "work" is "work(int, char)", too. */
bool row_function_is(const char *name, const char *function);

/* Where, and in what, a frame of a stack is. */
struct row_place {
	uint32_t location; /* PROFILE_NONE: a sample without a pc */
	uint32_t line;	   /* of the location's lines: 0 is the innermost */
	uint32_t labels;
};

/* All that is known of a place. Texts are the profile's. */
struct row_key row_key_of(const struct profile *p, const struct row_place *place);

/* Leaves of a key what the view tells apart. */
void row_key_reduce(const struct row_view *view, struct row_key *key);

uint64_t row_key_hash(const struct row_key *key);

/* By texts, so that keys of several profiles compare. */
int row_key_compare(const struct row_key *a, const struct row_key *b);

#endif
