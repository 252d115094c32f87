/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_BYTES_H
#define PROFIL_LIB_BYTES_H

#include <stddef.h>

/* A growing array of bytes; zero-initialised it is empty. Its owner releases `data` by free(). */
struct bytes {
	char *data;
	size_t size, room;
};

/* These return 0 or a negative errno with profil__error() set. */

int profil__bytes_add(struct bytes *bytes, const void *data, size_t size);
/* Adds the contents of a file to the end of which it reads, as those in /proc have no size. */
int profil__bytes_read(struct bytes *bytes, const char *path);

#endif
