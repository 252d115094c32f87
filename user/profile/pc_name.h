/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_PC_NAME_H
#define PROFIL_PROFILE_PC_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"

/* The last component of an image's path; names like [vdso] are whole. */
const char *profile_basename(const char *path);

/*
 * What a pc without a name is called: IMAGE+0xADDRESS, by the last component of the image's path;
 * 0xADDRESS when that is "". address: location.image_address. The caller's to free(), or NULL.
 */
char *profile_pc_name(const char *path, uint64_t address);

/*
 * The same of all locations: NULL for those that have lines. Returns NULL when out of memory. The
 * caller frees it: array_free_texts(names, p->location_count).
 */
char **profile_pc_names(const struct profile *p);

/*
 * True if profile_pc_name() makes this name for some address in this image. Files also keep such
 * names for functions of which only the start is known.
 */
bool profile_is_pc_name(const char *name, const char *path);

/*
 * What follows a symbol's name where only exported functions have symbols, and this one has no
 * size: the address may be in a function behind it that is not exported.
 */
#define PROFILE_PERHAPS "+?"

/* True if a location has a name that is neither just its address nor doubtful. */
bool profile_is_named(const struct profile *p, uint32_t location);

#endif
