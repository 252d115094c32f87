/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PUSH_CURSOR_H
#define PROFIL_PUSH_CURSOR_H

#include <stdint.h>

#include "util/error.h"

/* Up to where windows were sent to a URL: DIRECTORY/HOST/.pushed, a line each for URL and time. */

/*
 * Sets *until_ns to the start of the last window that was sent to this URL, or dropped. Returns 0,
 * or -errno with e set: -ENOENT: nothing was sent to this URL yet; -EINVAL: the file is corrupt.
 */
int cursor_read(const char *directory, const char *host, const char *url, uint64_t *until_ns,
		struct error *e);

/* Writes the file, durably and whole or not at all. Returns 0 or -errno with e set. */
int cursor_write(const char *directory, const char *host, const char *url, uint64_t until_ns,
		 struct error *e);

#endif
