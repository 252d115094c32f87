/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_FILE_H
#define PROFIL_UTIL_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "util/error.h"
#include "util/file_open.h"

/* Reads the first line of a file, without its newline, cut to `size`. Returns 0 or -errno. */
int file_read_line(const char *path, char *line, size_t size);

/*
 * Checks before long work that file_write() could write this file now: the directory exists and is
 * writable. Returns 0, or a negative errno and sets e.
 */
int file_check_writable(const char *path, struct error *e);

/*
 * Writes a complete file or nothing. write() fills a stream on a temporary file in the same
 * directory, which then replaces the file, or is removed after an error. Mode 0600. Pipes and
 * devices (/dev/stdout) are written in place. write() returns 0, or a negative errno and sets e;
 * file_write() checks the stream for errors. Returns 0, or a negative errno and sets e.
 */
int file_write(const char *path, int (*write)(FILE *out, void *context, struct error *e),
	       void *context, struct error *e);

/*
 * The same for a file in a directory that may be another user's: a symbolic link there is replaced,
 * not followed, other users' links to the directory are an error, and so is a pipe or device.
 */
int file_replace(const char *path, int (*write)(FILE *out, void *context, struct error *e),
		 void *context, struct error *e);

#endif
