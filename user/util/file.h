/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_FILE_H
#define PROFIL_UTIL_FILE_H

#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

#include "util/error.h"

/* Reads the first line of a file, without its newline, cut to `size`. Returns 0 or -errno. */
int file_read_line(const char *path, char *line, size_t size);

/*
 * Opens a regular file for reading. Does not open devices and FIFOs, which may react to open(2)
 * alone. root: the descriptor of a directory to resolve the path and its links in, as after
 * chroot(2), or -1. status may be NULL. Returns a descriptor or a negative errno (-EINVAL: not a
 * regular file).
 */
int file_open_regular(int root, const char *path, struct stat *status);

/* The same for a file opened with O_PATH, whose descriptor is closed in any case. */
int file_reopen_regular(int fd, struct stat *status);

/* Opens any file with open(2)'s flags, root as above. Returns a descriptor or a negative errno. */
int file_open_in(int root, const char *path, int flags);

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
 * not followed, and a pipe or device is an error.
 */
int file_replace(const char *path, int (*write)(FILE *out, void *context, struct error *e),
		 void *context, struct error *e);

#endif
