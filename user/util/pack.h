/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_PACK_H
#define PROFIL_UTIL_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What two processes of this program exchange: structs as they are in memory, and texts. The writer
 * keeps the first error, and so does the reader, which trusts nothing that was written.
 */

/* Bytes being written. Zero-initialised is empty. */
struct pack {
	uint8_t *bytes; /* to be free()d */
	size_t size, room;
	bool failed; /* out of memory */
};

void pack_bytes(struct pack *p, const void *bytes, size_t size);
void pack_text(struct pack *p, const char *text);

/* Replaces the content of a file in memory (memfd_create(2)). Returns 0 or a negative errno. */
int pack_write(const struct pack *p, int fd);

/*
 * Reads such a file as a whole, whatever is done to it meanwhile. Returns 0, -ENOMEM, or -EBADMSG:
 * it has more than `most` bytes.
 */
int pack_read(struct pack *p, int fd, size_t most);

/* Bytes being read. */
struct unpack {
	const uint8_t *at, *end;
	bool failed; /* they do not contain what was asked for */
};

struct unpack unpack_begin(const struct pack *p);

/* Copies `size` bytes; sets them to 0 if there are not so many. */
void unpack_bytes(struct unpack *u, void *to, size_t size);

/* Returns `count` elements of `size` bytes, not aligned, as long as the pack is there; or NULL. */
const void *unpack_array(struct unpack *u, uint64_t count, size_t size);

/* Returns a text of at most `most` bytes, as long as the pack is there; "" if there is none. */
const char *unpack_text(struct unpack *u, size_t most);

#endif
