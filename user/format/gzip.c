// SPDX-License-Identifier: GPL-2.0-only
#include "format/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "util/array.h"

/* zlib's windowBits for gzip, and no other, framing */
#define GZIP_WINDOW (15 + 16)

struct inflated {
	uint8_t *start;
	size_t size;
	size_t room;
	size_t max;
};

bool gzip_detect(const uint8_t *bytes, size_t size)
{
	return size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

static int fail(int code, char *reason, size_t size, const char *text)
{
	snprintf(reason, size, "%s", text);
	return -code;
}

static unsigned int at_most_uint(size_t size)
{
	return size > UINT_MAX ? UINT_MAX : size;
}

/* Inflates one member from z->next_in on. */
static int inflate_member(z_stream *z, struct inflated *b, char *reason, size_t reason_size)
{
	int status = Z_OK;

	while (status != Z_STREAM_END) {
		size_t room;

		if (array_reserve(&b->start, &b->room, b->size + 65536, 1))
			return fail(ENOMEM, reason, reason_size, "cannot inflate");
		room = b->room - b->size;
		/* One byte more than is allowed tells that there is more. */
		if (room > b->max - b->size + 1)
			room = b->max - b->size + 1;
		room = at_most_uint(room);
		z->next_out = b->start + b->size;
		z->avail_out = room;
		status = inflate(z, Z_NO_FLUSH);
		b->size += room - z->avail_out;
		if (b->size > b->max)
			return fail(EFBIG, reason, reason_size,
				    "inflates to more than any profile of its size would");
		if (status == Z_BUF_ERROR || (status == Z_OK && z->avail_in == 0 && z->avail_out))
			return fail(EINVAL, reason, reason_size, "the gzip data is truncated");
		if (status == Z_MEM_ERROR)
			return fail(ENOMEM, reason, reason_size, "cannot inflate");
		if (status != Z_OK && status != Z_STREAM_END)
			return fail(EINVAL, reason, reason_size,
				    z->msg ? z->msg : "the gzip data is corrupt");
	}
	return 0;
}

static int inflate_members(z_stream *z, const uint8_t *bytes, size_t size, struct inflated *b,
			   char *reason, size_t reason_size)
{
	const uint8_t *end = bytes + size;
	int err;

	if (size > UINT_MAX)
		return fail(EFBIG, reason, reason_size, "too large for gzip");
	z->next_in = (uint8_t *)bytes;
	z->avail_in = size;
	do {
		err = inflate_member(z, b, reason, reason_size);
		if (err)
			return err;
		/* Tapes and block devices pad with zeros. */
		while (z->next_in < end && *z->next_in == 0)
			z->next_in++;
		z->avail_in = end - z->next_in;
		if (z->avail_in && !gzip_detect(z->next_in, z->avail_in))
			return fail(EINVAL, reason, reason_size,
				    "something else follows the gzip data");
	} while (z->avail_in && inflateReset(z) == Z_OK);
	return 0;
}

int gzip_inflate(const uint8_t *bytes, size_t size, size_t max, uint8_t **out, size_t *out_size,
		 char *reason, size_t reason_size)
{
	struct inflated b = { .max = max };
	z_stream z = { 0 };
	int err;

	if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return fail(ENOMEM, reason, reason_size, "cannot inflate");
	err = inflate_members(&z, bytes, size, &b, reason, reason_size);
	inflateEnd(&z);
	if (err) {
		free(b.start);
		return err;
	}
	*out = b.start;
	*out_size = b.size;
	return 0;
}

int gzip_open(struct gzip_writer *w, FILE *out, struct error *e)
{
	w->z = (z_stream){ 0 };
	w->out = out;
	if (deflateInit2(&w->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return error_no_memory(e);
	return 0;
}

static int deflate_out(struct gzip_writer *w, int flush, struct error *e)
{
	do {
		size_t size;

		w->z.next_out = w->buffer;
		w->z.avail_out = sizeof(w->buffer);
		deflate(&w->z, flush);
		size = sizeof(w->buffer) - w->z.avail_out;
		if (fwrite(w->buffer, 1, size, w->out) != size)
			return error_set(e, errno ? errno : EIO, "cannot write");
	} while (w->z.avail_out == 0);
	return 0;
}

int gzip_write(struct gzip_writer *w, const void *bytes, size_t size, struct error *e)
{
	w->z.next_in = (void *)bytes;
	while (size) {
		unsigned int part = at_most_uint(size);
		int err;

		w->z.avail_in = part;
		err = deflate_out(w, Z_NO_FLUSH, e);
		if (err)
			return err;
		size -= part;
	}
	return 0;
}

int gzip_close(struct gzip_writer *w, int earlier, struct error *e)
{
	int err = earlier;

	w->z.avail_in = 0;
	if (!err)
		err = deflate_out(w, Z_FINISH, e);
	deflateEnd(&w->z);
	return err;
}
