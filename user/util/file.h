/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_FILE_H
#define PROFIL_UTIL_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "util/error.h"
#include "util/file_open.h"

/*
 * Reads the beginning of a file, up to size - 1 bytes, and ends it with a NUL; directory: of the
 * path, or AT_FDCWD. Returns how many bytes, or -errno. What cannot be opened leaves text as it is.
 */
ssize_t file_read_text(int directory, const char *path, char *text, size_t size);

/* Reads the first line, without its newline, cut to `size`. Returns 0 or -errno: likewise. */
int file_read_line(const char *path, char *line, size_t size);

/* Finds the number behind the first occurrence of a text near a file's beginning. False: none. */
bool file_find_number(const char *path, const char *text, uint64_t *number);

/* A stream on a descriptor, which is closed with it, or if there is no memory; NULL: also if it is
 * negative. */
FILE *file_stream(int fd);
DIR *file_directory_stream(int fd);

/* NULL is fine. */
static inline void file_close_stream(FILE *stream)
{
	if (stream)
		fclose(stream);
}

/*
 * Opens the kernel's symbols for reading. A service for which systemd hides them
 * (ProtectKernelTunables=) finds them where init does, if it may see that. Returns a descriptor or
 * -errno.
 */
int file_open_kallsyms(void);

/*
 * Checks before long work that file_write() could write this file now: the directory exists and is
 * writable. Returns 0, or a negative errno and sets e.
 */
int file_check_writable(const char *path, struct error *e);

enum file_write_flag {
	FILE_FOLLOW_LINK = 1, /* replaces the file that a symbolic link leads to, not the link */
	FILE_IN_PLACE = 2,    /* writes to a pipe or device (/dev/stdout); else -EEXIST */
	FILE_LIKE_SHELL = FILE_FOLLOW_LINK | FILE_IN_PLACE,
	FILE_SAFE_DIRECTORY = 4, /* follows no other user's links to the directory: -ELOOP */
};

/*
 * Writes a complete file or nothing. write() fills a stream on a temporary file in the same
 * directory, which then replaces the file, or is removed after an error. Mode 0600. write() returns
 * 0, or a negative errno and sets e; file_write() checks the stream for errors. Returns 0, or a
 * negative errno and sets e (-ENXIO: a pipe that no process reads from; -EPERM: another user's).
 */
int file_write(const char *path, unsigned int flags,
	       int (*write)(FILE *out, void *context, struct error *e), void *context,
	       struct error *e);

#endif
