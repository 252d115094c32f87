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
 * Inflates all members of a gzip file. *out is the caller's to free(). More than `max` bytes is
 * -EFBIG, corrupt or truncated -EINVAL, both with the reason.
 */
int gzip_inflate(const uint8_t *bytes, size_t size, size_t max, uint8_t **out, size_t *out_size,
		 char *reason, size_t reason_size);

/* Deflates to a stream, with the memory of one buffer. Does not close the stream. */
struct gzip_writer {
	z_stream z;
	FILE *out;
	uint8_t buffer[65536];
};

int gzip_open(struct gzip_writer *w, FILE *out, struct error *e);
int gzip_write(struct gzip_writer *w, const void *bytes, size_t size, struct error *e);

/* Writes what is left, unless an earlier call failed; frees always. */
int gzip_close(struct gzip_writer *w, int earlier, struct error *e);

#endif
