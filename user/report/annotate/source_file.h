/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_SOURCE_FILE_H
#define PROFIL_REPORT_SOURCE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "util/index.h"

/*
 * The texts of source files. What debug information calls one may be anything: only regular files
 * are opened, and read up to a limit for all together.
 */

#define SOURCE_FILES_MAX (64 << 20) /* bytes */

struct source_file {
	const char *name; /* as debug information has it; the caller's */
	char *text;	  /* NULL: it is not here, or cannot be read */
	const char **lines;
	size_t line_count;
	bool too_large; /* it is here, and all together would be more than SOURCE_FILES_MAX */
	time_t changed;
};

struct source_files {
	const char *folder; /* where else they may be; or NULL */
	struct source_file **files;
	size_t count, room;
	size_t bytes; /* of all texts */
	struct index index;
};

/*
 * The file of this name, which is read when it is asked for the first time: by its name, or below
 * folder, by as many of the name's last components as are there. Returns 0 or -ENOMEM; one that
 * cannot be read is no error.
 */
int source_files_find(struct source_files *s, const char *name, const struct source_file **file);
void source_files_free(struct source_files *s);

/* The text of a line, counted from 1, or NULL. */
const char *source_file_line(const struct source_file *f, uint64_t number);

#endif
