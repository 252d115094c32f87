/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_PACKAGE_H
#define PROFIL_SYMBOL_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/profile.h"

/*
 * Images that are looked at in one call.
 * Bound: caller: images in one question to dpkg or rpm; then: the others are asked next, or left
 * out of a hint; seen: not seen.
 */
#define PACKAGE_IMAGES_MAX 64

#define PACKAGE_COMMAND_SIZE 256

/* Includes the NUL. What is longer counts as unknown. */
#define PACKAGE_WORD_SIZE 128

struct package {
	char name[PACKAGE_WORD_SIZE];	 /* "": no package is known to own the file */
	char version[PACKAGE_WORD_SIZE]; /* "": unknown */
};

/*
 * Stores for each of `count` images, at most PACKAGE_IMAGES_MAX, which package owns its file, by
 * this machine's dpkg or rpm, and of which version that is installed. Only a file with the image's
 * build ID counts: the profile may be another machine's, or of a container. Waits 20 seconds at
 * most. Returns false if there is no dpkg or rpm to ask, or it did not answer.
 */
bool package_versions(const struct profile_image *const *images, size_t count,
		      struct package *packages);

/*
 * Stores the command that installs the debug symbols of images' files: "apt install a-dbgsym
 * b-dbgsym"; "" where there is none. The images are as above, and its callers order them, the most
 * important first. Waits two seconds at most.
 */
void package_command(const struct profile_image *const *images, size_t count,
		     char command[PACKAGE_COMMAND_SIZE]);

#endif
