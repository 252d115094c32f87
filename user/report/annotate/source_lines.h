/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_SOURCE_LINES_H
#define PROFIL_REPORT_SOURCE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* The source lines of a function's locations. */

struct source_line {
	const char *file; /* of the function itself, also for what is inlined; "": not known */
	uint32_t number;  /* 0: not known */
	/* Not NULL: the part of that line that is in a function which is inlined there */
	const char *inlined;
	const char *inlined_file;
	uint32_t inlined_number;
};

struct source_lines {
	/* By file, the function's own first, then number; parts behind the line they are of. */
	struct source_line *lines;
	size_t count;
	uint32_t *own;	   /* the line of each location; PROFILE_NONE: it is not meant */
	uint32_t *inlined; /* and its part of that line; or PROFILE_NONE */
};

/*
 * locations: location_count of them: those that are meant. Returns 0 or -ENOMEM;
 * source_lines_free() is due in any case.
 */
int source_lines_make(struct source_lines *s, const struct profile *p, const bool *locations);
void source_lines_free(struct source_lines *s);

/* The line at which a location is in its function itself, not in what is inlined there. */
struct source_line source_line_of(const struct profile *p, uint32_t location);

/* The innermost function, line and file at a location. */
struct source_line source_line_inlined(const struct profile *p, uint32_t location);

#endif
