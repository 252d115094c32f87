// SPDX-License-Identifier: GPL-2.0-only
#include "format/input_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/gzip.h"
#include "util/file.h"
#include "util/array.h"
#include "util/clock.h"

/*
 * Larger than any profile needs; bounds the memory for /dev/zero.
 * Bound: files: bytes of a file in memory at once; then: the file is refused.
 */
#define WINDOW_MAX ((size_t)2 << 30)

#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* U+FEFF */

/* Bytes per read(). Bound: size. */
#define PART ((size_t)262144)

/* Bound on inflated data: INFLATED_MIN bytes, or INFLATED_TIMES the compressed size if more. */
#define INFLATED_MIN   ((uint64_t)64 << 20)
#define INFLATED_TIMES 128

/*
 * So many times its size gzip data may say that it inflates to, to get the memory at once.
 * Bound: size.
 */
#define EXPECTED_TIMES 16

struct input_source {
	int fd;
	uint64_t file_size; /* on disk; 0: it is no file */
	bool owned;	    /* input_close() closes fd */
	bool ended;
	bool gzip;
	struct gzip_reader inflater;
	uint8_t *deflated;		       /* PART bytes, for gzip */
	uint64_t deflated_size, inflated_size; /* so far */

	/* The window is a part of this buffer. */
	uint8_t *buffer;
	size_t room;
};

/* Reads up to `room` bytes of the file as it is on disk. Sets *size; 0: end of file. */
static int read_part(struct input *in, uint8_t *out, size_t room, size_t *size, struct error *e)
{
	ssize_t n;

	do {
		n = read(in->source->fd, out, room);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_set(e, errno, "cannot read %s", in->path);
	*size = n;
	return 0;
}

/* Gives the next compressed part to the inflater, or sets s->ended. */
static int feed_inflater(struct input *in, struct error *e)
{
	struct input_source *s = in->source;
	size_t size;
	int err = read_part(in, s->deflated, PART, &size, e);

	if (err)
		return err;
	s->deflated_size += size;
	gzip_feed(&s->inflater, s->deflated, size);
	if (size)
		return 0;
	s->ended = s->inflater.between; /* else the next call meets the error again */
	if (s->ended)
		return 0;
	error_set(e, 0, "%s: the gzip data is truncated", in->path);
	if (!in->options.salvage)
		error_hint(e, "--salvage reads what is there");
	return -EINVAL;
}

static int inflate_part(struct input *in, uint8_t *out, size_t room, size_t *size, struct error *e)
{
	struct input_source *s = in->source;
	const char *reason;

	for (*size = 0; !*size && !s->ended;) {
		int err = s->inflater.z.avail_in ? 0 : feed_inflater(in, e);

		if (err)
			return err;
		reason = gzip_inflate(&s->inflater, out, room, size);
		if (reason)
			return error_set(e, 0, "%s: %s", in->path, reason);
	}
	s->inflated_size += *size;
	if (s->inflated_size > INFLATED_MIN && s->inflated_size / INFLATED_TIMES > s->deflated_size)
		return error_set(e, 0, "%s: inflates to more than any profile of its size would",
				 in->path);
	return 0;
}

/* Reads another part to the end of the window. */
static int fill_buffer(struct input *in, struct error *e)
{
	struct input_source *s = in->source;
	uint8_t *end = s->buffer + (in->bytes - s->buffer) + in->size;
	size_t room = s->buffer + s->room - end, size;
	int err;

	if (s->gzip) {
		err = inflate_part(in, end, room, &size, e);
	} else {
		err = read_part(in, end, room, &size, e);
		s->ended = !err && size == 0;
	}
	if (!err)
		in->size += size;
	return err;
}

/* Makes room for a window of `size` bytes and a part after it. */
static int reserve_buffer(struct input *in, size_t size, struct error *e)
{
	struct input_source *s = in->source;
	size_t before = in->bytes ? (size_t)(in->bytes - s->buffer) : 0;

	if (size > WINDOW_MAX)
		return error_set(e, EFBIG, "%s: more than 2 GiB", in->path);
	if (before + size + PART <= s->room)
		return 0;
	if (before)
		memmove(s->buffer, in->bytes, in->size);
	in->bytes = s->buffer;
	if (array_reserve(&s->buffer, &s->room, size + PART, 1))
		return error_no_memory(e);
	in->bytes = s->buffer;
	return 0;
}

int input_need(struct input *in, size_t size, struct error *e)
{
	int err = 0;

	/* Grow with what is read, not to `size` at once: a corrupt file may ask for any size. */
	while (!err && in->source && in->size < size && !in->source->ended) {
		err = reserve_buffer(in, in->size + 1, e);
		err = err ?: fill_buffer(in, e);
	}
	return err;
}

/* The size of all that is to be read, as the file says; 0: unknown, or not to be believed. */
static uint64_t expected_size(const struct input_source *s)
{
	uint8_t end[4];
	uint64_t size;

	if (!s->gzip || s->file_size < sizeof(end))
		return s->file_size;
	/* gzip data ends with what it inflates to (RFC 1952, ISIZE). */
	if (pread(s->fd, end, sizeof(end), s->file_size - sizeof(end)) != sizeof(end))
		return 0;
	size = end[0] | end[1] << 8 | end[2] << 16 | (uint64_t)end[3] << 24;
	return size / EXPECTED_TIMES > s->file_size ? 0 : size;
}

int input_need_all(struct input *in, struct error *e)
{
	struct input_source *s = in->source;
	uint64_t expected = s ? expected_size(s) : 0;
	int err = 0;

	/* Growing part by part would copy a large file several times. */
	if (expected > in->offset + in->size && expected <= WINDOW_MAX) {
		size_t room = expected - in->offset + PART;
		uint8_t *buffer = malloc(room);

		if (!buffer)
			return error_no_memory(e);
		memcpy(buffer, in->bytes, in->size);
		free(s->buffer);
		s->buffer = buffer;
		s->room = room;
		in->bytes = buffer;
	}
	while (!err && s && !s->ended)
		err = input_need(in, in->size + 1, e);
	return err;
}

int input_line(struct input *in, const char **line, size_t *size, struct error *e)
{
	size_t seen = 0, whole;
	int err;

	/* The first `seen` bytes have no newline. */
	for (;;) {
		const uint8_t *newline =
			in->size ? memchr(in->bytes + seen, '\n', in->size - seen) : NULL;

		whole = newline ? (size_t)(newline + 1 - in->bytes) : in->size;
		if (newline)
			break;
		seen = in->size;
		if (seen > INPUT_LINE_MAX) {
			in->line++;
			return input_line_error(in, e, "the line is longer than %zu MiB",
						INPUT_LINE_MAX >> 20);
		}
		err = input_need(in, seen + 1, e);
		if (err)
			return err;
		if (in->size == seen)
			break;
	}
	*line = NULL;
	if (!whole)
		return 0;
	in->line++;
	*line = (const char *)in->bytes;
	*size = whole;
	input_skip(in, whole);
	*size -= (*line)[*size - 1] == '\n';
	*size -= *size && (*line)[*size - 1] == '\r';
	return 0;
}

static int open_path(const char *path, struct input *in, struct error *e)
{
	struct input_source *s = in->source;
	struct stat st;

	if (!*path) {
		error_set_kind(e, ERROR_USAGE, 0, "a file's name is \"\"");
		return error_hint(e, "a variable of the shell may be empty");
	}
	s->owned = strcmp(path, "-") != 0;
	if (!s->owned)
		s->fd = STDIN_FILENO;
	else if (in->options.foreign)
		s->fd = file_open_regular_by_rules(-1, path, FILE_NO_FOREIGN_LINKS, NULL);
	else
		s->fd = file_open_in(-1, path, O_RDONLY);
	if (s->fd < 0)
		return error_set(e, -s->fd, "cannot open %s", in->path);
	if (fstat(s->fd, &st))
		return error_set(e, errno, "cannot read %s", in->path);
	in->written_ns = S_ISREG(st.st_mode) ? st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec
					     : clock_ns(CLOCK_REALTIME);
	s->file_size = S_ISREG(st.st_mode) ? st.st_size : 0;
	if (S_ISDIR(st.st_mode)) {
		error_set(e, EISDIR, "cannot read %s", in->path);
		error_hint(e, "name one of the files in it");
		return -EISDIR;
	}
	return 0;
}

/* The window is gzip data: replaces it by what it inflates to, and inflates the rest, too. */
static int begin_gzip(struct input *in, struct error *e)
{
	struct input_source *s = in->source;
	size_t size = in->size;

	s->deflated = malloc(MAX(size, PART));
	if (!s->deflated || gzip_begin(&s->inflater))
		return error_no_memory(e);
	s->gzip = in->inflated = true;
	s->ended = false;
	memcpy(s->deflated, in->bytes, size);
	s->deflated_size = size;
	gzip_feed(&s->inflater, s->deflated, size);
	in->size = 0;
	return input_need(in, strlen(BYTE_ORDER_MARK), e);
}

/* Fills the window, as INPUT_WINDOW says: formats are judged by what follows the comments. */
static int fill_window(struct input *in, struct error *e)
{
	bool in_comment = false;
	size_t at = 0; /* what is before it is comments and blanks */
	int err;

	do {
		err = input_need(in, at + INPUT_WINDOW, e);
		while (at < in->size) {
			const uint8_t *byte = in->bytes + at, *newline = byte;
			size_t left = in->size - at;

			in_comment |= *byte == '#' || *byte == '%' ||
				      (left > 1 && memcmp(byte, "==", 2) == 0);
			if (!in_comment && !isspace(*byte))
				break;
			if (in_comment)
				newline = memchr(byte, '\n', left);
			in_comment &= !newline;
			at = newline ? (size_t)(newline + 1 - in->bytes) : in->size;
		}
	} while (!err && !in->source->ended && in->size < at + INPUT_WINDOW);
	return err;
}

int input_open(const char *path, const struct input_options *options, struct input *in,
	       struct error *e)
{
	int err;

	*in = (struct input){ .path = strcmp(path, "-") == 0 ? INPUT_STDIN : path };
	if (options)
		in->options = *options;
	in->source = calloc(1, sizeof(*in->source));
	if (!in->source)
		return error_no_memory(e);
	in->source->fd = -1;
	err = open_path(path, in, e);
	err = err ?: input_need(in, INPUT_WINDOW, e);
	if (!err && gzip_detect(in->bytes, in->size))
		err = begin_gzip(in, e);
	if (!err && in->size >= strlen(BYTE_ORDER_MARK) &&
	    memcmp(in->bytes, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
		input_skip(in, strlen(BYTE_ORDER_MARK));
	err = err ?: fill_window(in, e);
	/* Salvage what is there; the reader meets the error again when it needs more. */
	if (in->size && (!err || in->options.salvage))
		return 0;
	if (!err) {
		err = error_set(e, 0, "%s is empty", in->path);
		error_hint(e,
			   "record again: the program that wrote it was killed before it finished");
	}
	input_close(in);
	return err;
}

uint64_t input_file_size(const struct input *in)
{
	return in->source ? in->source->file_size : 0;
}

uint64_t input_bytes_read(const struct input *in)
{
	const struct input_source *s = in->source;

	return s && s->gzip ? s->deflated_size : in->offset + in->size;
}

void input_close(struct input *in)
{
	struct input_source *s = in->source;

	if (s && s->owned && s->fd >= 0)
		close(s->fd);
	if (s && s->gzip)
		gzip_end(&s->inflater);
	if (s) {
		free(s->deflated);
		free(s->buffer);
		free(s);
	}
	*in = (struct input){ 0 };
}
