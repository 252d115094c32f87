/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_ZSTD_H
#define PROFIL_SYMBOL_ZSTD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Decompresses a zstd stream. The library is loaded when it is needed, and stays loaded. The types
 * are those of zstd.h, so that building needs no zstd: the ABI changes only with the library's
 * name.
 */
struct zstd_stream;

struct zstd_in {
	const void *bytes;
	size_t size, used;
};

struct zstd_out {
	void *bytes;
	size_t size, used;
};

struct zstd {
	struct zstd_stream *stream; /* NULL: not begun */
	struct zstd_stream *(*create)(void);
	size_t (*destroy)(struct zstd_stream *stream);
	size_t (*reset)(struct zstd_stream *stream);
	size_t (*decompress)(struct zstd_stream *stream, struct zstd_out *out, struct zstd_in *in);
	unsigned int (*is_error)(size_t result);
};

/* Returns 0, and the caller calls zstd_end(); or -ENOTSUP (no zstd library) or -ENOMEM. */
int zstd_begin(struct zstd *z);
void zstd_end(struct zstd *z); /* also of one that is zero-initialised */

/* Begins a new stream. Returns false on failure. */
bool zstd_restart(struct zstd *z);

/*
 * Decompresses from in, as far as out has room, and moves `used` in both. It may hold output of
 * earlier input. Returns false if the data is corrupt.
 */
bool zstd_decompress(struct zstd *z, struct zstd_out *out, struct zstd_in *in);

#endif
