/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_PACKAGE_H
#define PROFIL_SYMBOL_PACKAGE_H

#include <stddef.h>

#include "profile/profile.h"

/* Images that package_command() looks at; its callers order them, the most important first. */
#define PACKAGE_IMAGES_MAX 16

#define PACKAGE_COMMAND_SIZE 256

/*
 * Stores the command that installs the debug symbols of images' files: "apt install a-dbgsym
 * b-dbgsym". It names the packages that own the files by this machine's dpkg or rpm; "" where there
 * is none. Only a file with the image's build ID counts: the profile may be another machine's, or
 * of a container. Waits for dpkg or rpm for two seconds at most.
 */
void package_command(const struct profile_image *const *images, size_t count,
		     char command[PACKAGE_COMMAND_SIZE]);

#endif
