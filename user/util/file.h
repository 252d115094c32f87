/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_FILE_H
#define PROFIL_UTIL_FILE_H

#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

#include "util/error.h"

/* The first line of a small file, without its newline. Returns 0 or -errno. */
int file_read_line(const char *path, char *line, size_t size);

/*
 * Opens a regular file for reading, and nothing else: a device or a FIFO, which may react to a mere
 * open(2), is not touched. root: the descriptor of a folder that the path and all links on it do
 * not leave, as after chroot(2); -1: a path as usual. Returns the descriptor or a negative errno
 * (-EINVAL: not a regular file). status may be NULL.
 */
int file_open_regular(int root, const char *path, struct stat *status);

/* The same for a file opened with O_PATH; takes that descriptor over, also when it fails. */
int file_reopen_regular(int place, struct stat *status);

/* Opens a path inside such a root. Returns the descriptor or a negative errno. */
int file_open_in(int root, const char *path, int flags);

/*
 * Whether a file of this name could be written now: its folder is there and writable. To be
 * asked before work begins whose result shall go there.
 */
int file_check_writable(const char *path, struct error *e);

/*
 * Writes a whole file or nothing: `write` fills a stream that goes to a temporary name beside
 * the file, which takes its place when all went well and is removed when not. Mode 0600.
 * What is not a regular file (a pipe, /dev/stdout) is written in place. write returns 0 or a
 * negative errno with e set; the stream's own errors are checked here.
 */
int file_write(const char *path, int (*write)(FILE *out, void *context, struct error *e),
	       void *context, struct error *e);

#endif
