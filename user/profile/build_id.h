/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_BUILD_ID_H
#define PROFIL_PROFILE_BUILD_ID_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* With its NUL. */
#define BUILD_ID_TEXT_SIZE (2 * PROFILE_BUILD_ID_MAX + 1)

/*
 * Two hexadecimal digits for each byte, and nothing else, in a text of this size. Returns how many
 * bytes they are; 0 when they are none, or more than fit: the bytes are then undefined.
 */
size_t build_id_parse(const char *text, size_t size, uint8_t bytes[static PROFILE_BUILD_ID_MAX]);

/* In lower case; "" of no bytes. At most PROFILE_BUILD_ID_MAX of them. */
void build_id_format(const uint8_t *bytes, size_t size, char text[static BUILD_ID_TEXT_SIZE]);

#endif
