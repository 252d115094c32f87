/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_SOURCE_FILE_H
#define PROFIL_REPORT_SOURCE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "util/index.h"

/*
 * The texts of source files. Debug information can name anything, so only regular files are opened,
 * and the size of all together is limited.
 */

/* Bound: files: bytes of source files in one report; then: further ones are not shown. */
#define SOURCE_FILES_MAX (64 << 20) /* bytes */

struct source_file {
	const char *name; /* as in debug information; the caller's */
	char *text;	  /* NULL: it was not found, or cannot be read */
	const char **lines;
	size_t line_count;
	bool is_private; /* not all may read it, and root did not */
	bool too_large;	 /* with it, all together would be more than SOURCE_FILES_MAX */
	time_t mtime;
};

struct source_files {
	const char *directory; /* where else to look for files; or NULL */
	char *own_directory;   /* source_files_trust(); or NULL */
	int root;	       /* the names are of this root directory, if has_root; owned */
	bool has_root;
	struct source_file **files;
	size_t count, room;
	size_t bytes; /* of all texts */
	struct index index;
};

/*
 * Stores the file of this name in *file, which source_files_free() frees. It is read the first
 * time: at its name, else in the directory, at as many of the name's last components as exist
 * there. At its name alone, root reads only what all users may read by that name: a profile, or a
 * user's program, can name any file. Returns 0, also if it cannot be read, or -ENOMEM.
 */
int source_files_find(struct source_files *s, const char *name, const struct source_file **file);

/*
 * Call this if the names are from the debug information of the image at this path, read from there
 * (fd: a descriptor of what was read, or -1). If only root can change that image, then root reads
 * what lies below the same directory that others may not enter, too.
 */
void source_files_trust(struct source_files *s, const char *image, int fd);
void source_files_free(struct source_files *s);

/* The text of a line, counted from 1, or NULL. */
const char *source_file_line(const struct source_file *f, uint64_t number);

#endif
