/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_READ_DIRECTORY_H
#define PROFIL_FORMAT_READ_DIRECTORY_H

#include "format/input_file.h"
#include "profile/profile.h"
#include "util/error.h"

/*
 * Reads all profiles in a directory and below, in the order of their paths, and merges them.
 * A file that is no profile is left out, with a warning, and so is a profile that is corrupt: the
 * sum then counts as salvaged. Profiles of several hosts are added up, with a warning. Symbolic
 * links are not followed. No profile at all is an error.
 */
int directory_read(const char *path, const struct input_options *options, struct profile **p,
		   struct error *e);

#endif
