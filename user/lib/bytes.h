/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_BYTES_H
#define PROFIL_LIB_BYTES_H

#include <stddef.h>

/* Bytes that grow at their end. Zero-initialised is none. `data` is the owner's, to free(). */
struct bytes {
	char *data;
	size_t size, room;
};

/* Return 0 or a negative errno with profil__error() set. */
int profil__bytes_add(struct bytes *bytes, const void *data, size_t size);
/* Adds all of a file, whose size need not be known. */
int profil__bytes_read(struct bytes *bytes, const char *path);
/* Makes them a file of mode 0600, which appears when it is complete; a device is written to. */
int profil__bytes_write(const struct bytes *bytes, const char *path);

#endif
