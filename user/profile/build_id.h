/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_BUILD_ID_H
#define PROFIL_PROFILE_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* Includes the NUL. */
#define BUILD_ID_TEXT_SIZE (2 * PROFILE_BUILD_ID_MAX + 1)

/*
 * Parses a text of this size: two hexadecimal digits for each byte, and nothing else. Returns the
 * number of bytes; 0, with undefined bytes, when the text is invalid or too long.
 */
size_t build_id_parse(const char *text, size_t size, uint8_t bytes[static PROFILE_BUILD_ID_MAX]);

/* Writes at most PROFILE_BUILD_ID_MAX bytes in lower case; "" for none. */
void build_id_format(const uint8_t *bytes, size_t size, char text[static BUILD_ID_TEXT_SIZE]);

/*
 * True if two images are copies of one file: both have the same build ID, base name and provider.
 * Two programs of one build ID keep their names, and no user's file names the code of others.
 */
bool build_id_is_copy(const struct profile_image *a, const struct profile_image *b);

/* Returns a hash of the members that build_id_is_copy() compares. */
uint64_t build_id_hash(const struct profile_image *image);

/*
 * Return for each of p->image_count images the number of the first copy of its file, or of the next
 * one, in a circle; an image without copies has its own number. The caller frees it. NULL: no
 * memory.
 */
uint32_t *build_id_firsts(const struct profile *p);
uint32_t *build_id_circles(const struct profile *p);

#endif
