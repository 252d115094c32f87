/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_INPUT_H
#define PROFIL_FORMAT_INPUT_H

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

	struct input_source *source; /* private to input.c; NULL: all is in the window */
};

/* What is in the window before anything was skipped, if the file has so much. */
#define INPUT_WINDOW ((size_t)65536)

/* No line of a text is longer. */
#define INPUT_LINE_MAX ((size_t)16 << 20)

/*
 * Opens a file or pipe, or standard input for "-". Close it with input_close(). `path` must live as
 * long. A file without a byte is an error. Returns 0 or -errno.
 */
int input_open(const char *path, const struct input_options *options, struct input *in,
	       struct error *e);
void input_close(struct input *in);

/*
 * Sees to it that at least `size` bytes are in the window: fewer afterwards are all that the file
 * has. Moves the window in memory. Returns 0 or -errno.
 */
int input_need(struct input *in, size_t size, struct error *e);

/* The same for all that is left: for formats that cannot be read in one pass. */
int input_need_all(struct input *in, struct error *e);

/* Moves the window on. size <= in->size */
void input_skip(struct input *in, size_t size);

/*
 * The next line, without what ends it (\n or \r\n); the last one may lack it. It holds until the
 * next call. Returns 1, 0 at the end, or -errno.
 */
int input_line(struct input *in, const char **line, size_t *size, struct error *e);

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
