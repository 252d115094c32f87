/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_FILE_SET_H
#define PROFIL_UTIL_FILE_SET_H

#include <stddef.h>
#include <stdio.h>

#include "util/error.h"

/*
 * Writes `count` files below the directory `path`, all or none. names[i] is the file's path below
 * it, of parts that are clean; directories on the way are made. Each is first filled under a
 * temporary name, by write(), which gets the file's number and returns 0 or -errno with e set; only
 * when all are complete do they take their names. A file that is there is replaced. Meanwhile the
 * first file's directory is locked, so that write() may read what it is about to replace.
 * Mode 0600, directories 0700.
 */
int directory_write(const char *path, char *const *names, size_t count,
		    int (*write)(FILE *out, size_t number, void *context, struct error *e),
		    void *context, struct error *e);

/*
 * Makes one part of a path of any text: without slashes, control characters or a dot in front.
 * Empty stays empty.
 */
void directory_clean_name(char *name);

#endif
