/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_INPUT_FILE_H
#define PROFIL_FORMAT_INPUT_FILE_H

#include "util/input.h"

/* in->path for standard input */
#define INPUT_STDIN "standard input"

/*
 * Bytes in the window that input_open() fills, from the first line on that is neither blank nor a
 * comment (#, == of Valgrind, % of pprof); less only if the file is smaller. Comments of any length
 * before it are in the window, too.
 */
#define INPUT_WINDOW ((size_t)65536)

/*
 * Longest line that input_line() returns.
 * Bound: files: bytes of a line; then: the file is refused.
 */
#define INPUT_LINE_MAX ((size_t)16 << 20)

/*
 * Opens the file or pipe at `path`, or standard input for "-", and fills the window; a byte order
 * mark (U+FEFF, as programs on Windows write it) is skipped. options may be NULL. `path` must
 * outlive the input. An empty file is an error. Returns 0, and the caller closes the input with
 * input_close(); or -errno with e set.
 */
int input_open(const char *path, const struct input_options *options, struct input *in,
	       struct error *e);
void input_close(struct input *in);

/* The size of the file, compressed or not; 0: it is none, but a pipe. */
uint64_t input_file_size(const struct input *in);

/* How much was read so far of what may be compressed. */
uint64_t input_bytes_read(const struct input *in);

/*
 * Extends the window to at least `size` bytes; it stays smaller only when the file ends before.
 * in->bytes may change. Returns 0 or -errno with e set.
 */
int input_need(struct input *in, size_t size, struct error *e);

/* Extends the window to the rest of the file: for formats that need more than one pass. */
int input_need_all(struct input *in, struct error *e);

/*
 * Sets *line and *size to the next line, without its \n or \r\n; the last line of a file may lack
 * them. The line is valid until the next call; at the end of the file it is NULL. Returns 0, or
 * -errno with e set.
 */
int input_line(struct input *in, const char **line, size_t *size, struct error *e);

#endif
