/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_GZIP_H
#define PROFIL_FORMAT_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

#include "util/error.h"

bool gzip_detect(const uint8_t *bytes, size_t size);

/*
 * Inflates all members of a gzip file, a part at a time: feed, inflate until what was fed is used
 * up (z.avail_in is 0), feed again. Functions return NULL, or why it cannot be.
 */
struct gzip_reader {
	z_stream z;
	bool between; /* members: what comes next is one, or the end */
	unsigned int members;
};

const char *gzip_begin(struct gzip_reader *r);

/* `bytes` stays the caller's, and where it is until it is used up. At most UINT_MAX are taken. */
void gzip_feed(struct gzip_reader *r, const uint8_t *bytes, size_t size);

/* Fills at most `room` bytes of out, and sets how many: 0 when all that was fed is used up. */
const char *gzip_inflate(struct gzip_reader *r, uint8_t *out, size_t room, size_t *size);

/* Frees. A file that ends while `between` is false is truncated. */
void gzip_end(struct gzip_reader *r);

/* Deflates to a stream, with the memory of one buffer. Does not close the stream. */
struct gzip_writer {
	z_stream z;
	FILE *out;
	uint8_t buffer[65536];
};

int gzip_open(struct gzip_writer *w, FILE *out, struct error *e);
int gzip_write(struct gzip_writer *w, const void *bytes, size_t size, struct error *e);

/* A stream that deflates what is written to it. Close it before gzip_close(). NULL: no memory. */
FILE *gzip_stream(struct gzip_writer *w);

/* Writes what is left, unless an earlier call failed; frees always. */
int gzip_close(struct gzip_writer *w, int earlier, struct error *e);

#endif
