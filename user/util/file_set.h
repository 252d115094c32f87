/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_FILE_SET_H
#define PROFIL_UTIL_FILE_SET_H

#include <stddef.h>
#include <stdio.h>

#include "util/error.h"

/*
 * Writes `count` files below the directory `path`, all or none. names[i] is a path relative to it;
 * missing directories are created. write() gets a file's number and fills a stream with its
 * content; it returns 0, or -errno and sets e. The contents go to temporary files, which take their
 * names, and replace existing files, when all are complete. Meanwhile the first file's directory is
 * locked, so that write() may read the file that it replaces. Mode 0600, directories 0700.
 * Returns 0, or -errno and sets e.
 */
int directory_write(const char *path, char *const *names, size_t count,
		    int (*write)(FILE *out, size_t number, void *context, struct error *e),
		    void *context, struct error *e);

/*
 * Makes a file name from any text: replaces slashes, control characters and a leading dot by '_'.
 * An empty text stays empty.
 */
void directory_clean_name(char *name);

#endif
