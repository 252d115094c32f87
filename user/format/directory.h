/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_DIRECTORY_H
#define PROFIL_FORMAT_DIRECTORY_H

#include <stddef.h>
#include <stdio.h>

#include "format/input.h"
#include "profile/profile.h"
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

/*
 * Reads all profiles in a directory and below, in the order of their paths, and merges them.
 * A file that is no profile is left out, with a warning, and so is a profile that is corrupt: the
 * sum then counts as salvaged. Profiles of several hosts are added up, with a warning. Symbolic
 * links are not followed. No profile at all is an error.
 */
int directory_read(const char *path, const struct input_options *options, struct profile **p,
		   struct error *e);

#endif
