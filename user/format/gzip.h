/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_GZIP_H
#define PROFIL_FORMAT_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

#include "util/error.h"

/* Whether the bytes begin with gzip's magic number. */
bool gzip_detect(const uint8_t *bytes, size_t size);

/*
 * Inflates all members of a gzip file, a part at a time: gzip_feed(), gzip_inflate() until
 * z.avail_in is 0, gzip_feed() again. Functions return NULL, or the error as a constant text.
 */
struct gzip_reader {
	z_stream z;
	bool between; /* the last member is complete: another may follow, or the end */
	unsigned int members;
};

const char *gzip_begin(struct gzip_reader *r);

/* Sets the input, which must stay valid until z.avail_in is 0. size <= UINT_MAX. */
void gzip_feed(struct gzip_reader *r, const uint8_t *bytes, size_t size);

/* Inflates up to `room` bytes to out. Sets *size; 0: the input is used up. */
const char *gzip_inflate(struct gzip_reader *r, uint8_t *out, size_t room, size_t *size);

/* Frees the inflater. A file that ends while `between` is false is truncated. */
void gzip_end(struct gzip_reader *r);

/* Deflates to a stream, which the caller closes. Functions return 0 or -errno with e set. */
struct gzip_writer {
	z_stream z;
	FILE *out;
	uint8_t buffer[65536];
};

int gzip_open(struct gzip_writer *w, FILE *out, struct error *e);
int gzip_write(struct gzip_writer *w, const void *bytes, size_t size, struct error *e);

/*
 * A stream that deflates what is written to it; the caller closes it before gzip_close(). Returns
 * NULL when out of memory.
 */
FILE *gzip_stream(struct gzip_writer *w);

/*
 * Frees the deflater, and before that writes the end of the data, unless an earlier call failed:
 * `earlier` is that call's result. Returns `earlier`, or the result of writing.
 */
int gzip_close(struct gzip_writer *w, int earlier, struct error *e);

#endif
