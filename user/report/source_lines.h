/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_SOURCE_LINES_H
#define PROFIL_REPORT_SOURCE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* The source lines of a function's locations. */

struct source_line {
	const char *file; /* of the function itself, not of what is inlined; "": unknown */
	uint32_t number;  /* 0: unknown */
	/* Not NULL: only the part of the line that is in this function, which is inlined there */
	const char *inlined;
	const char *inlined_file;
	uint32_t inlined_number;
};

struct source_lines {
	/* By file, the function's own first, then by number; parts after their line. */
	struct source_line *lines;
	size_t count;
	uint32_t *own;	   /* of each location its line; PROFILE_NONE: not a location of these */
	uint32_t *inlined; /* of each location its part of that line; or PROFILE_NONE */
};

/*
 * Collects the lines of the locations for which locations[] is true. Returns 0 or -ENOMEM; call
 * source_lines_free() in any case.
 */
int source_lines_make(struct source_lines *s, const struct profile *p, const bool *locations);
void source_lines_free(struct source_lines *s);

/* The line of a location in the function itself: where that calls what is inlined there, if any. */
struct source_line source_line_of(const struct profile *p, uint32_t location);

/* The same with the innermost function that is inlined there, if any. */
struct source_line source_line_inlined(const struct profile *p, uint32_t location);

#endif
