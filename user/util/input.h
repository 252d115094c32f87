/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_INPUT_H
#define PROFIL_UTIL_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

/* How a file is to be read. */
struct input_options {
	bool salvage;		  /* what can be read of a corrupt file is enough */
	unsigned int dcpi_stride; /* bytes of code for each count of a DCPI file; 0: 1 */
};

/*
 * A file that is read: inflated when it is gzip, in one pass, so that it may be a pipe. A window
 * of it is in memory; a reader asks for more, and skips what it is done with. The same with all
 * of `bytes` set by the caller, and nothing else, is a file that is in memory already.
 */
struct input {
	const char *path;     /* for messages */
	const uint8_t *bytes; /* the window: the next `size` bytes */
	size_t size;
	uint64_t offset; /* of bytes[0] in the content */
	uint64_t line;	 /* number of the line that input_line() gave last */
	bool inflated;	 /* it was gzip: offsets are not those of the file on disk */
	struct input_options options;

	struct input_source
		*source; /* private to format/input_file.c; NULL: all is in the window */
};

/* Moves the window on. size <= in->size */
void input_skip(struct input *in, size_t size);

/*
 * Sets "PATH: at byte OFFSET: " and the reason, which the format gives. Returns -EINVAL. For
 * readers of binary formats. offset: in the content.
 */
int input_error(const struct input *in, uint64_t offset, struct error *e, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The same with "PATH:LINE: " for the line that was read last. */
int input_line_error(const struct input *in, struct error *e, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
