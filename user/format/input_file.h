/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_INPUT_FILE_H
#define PROFIL_FORMAT_INPUT_FILE_H

#include "util/input.h"

/* The path of standard input */
#define INPUT_STDIN "standard input"

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

/*
 * The next line, without what ends it (\n or \r\n); the last one may lack it. It holds until the
 * next call. Returns 1, 0 at the end, or -errno.
 */
int input_line(struct input *in, const char **line, size_t *size, struct error *e);

#endif
