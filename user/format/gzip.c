// SPDX-License-Identifier: GPL-2.0-only
#include "format/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

/* zlib's windowBits for gzip framing only */
#define GZIP_WINDOW (15 + 16)

bool gzip_detect(const uint8_t *bytes, size_t size)
{
	return size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

static unsigned int at_most_uint(size_t size)
{
	return size > UINT_MAX ? UINT_MAX : size;
}

const char *gzip_begin(struct gzip_reader *r)
{
	*r = (struct gzip_reader){ 0 };
	r->between = true;
	return inflateInit2(&r->z, GZIP_WINDOW) == Z_OK ? NULL : "out of memory";
}

void gzip_feed(struct gzip_reader *r, const uint8_t *bytes, size_t size)
{
	r->z.next_in = (uint8_t *)bytes;
	r->z.avail_in = at_most_uint(size);
}

/* Begins the next member, if any. Tapes and block devices pad with zeros. */
static const char *next_member(struct gzip_reader *r)
{
	while (r->members && r->z.avail_in && *r->z.next_in == 0) {
		r->z.next_in++;
		r->z.avail_in--;
	}
	if (!r->z.avail_in)
		return NULL;
	if (*r->z.next_in != 0x1f)
		return "data of another kind follows the gzip data";
	r->between = false;
	r->members++;
	return inflateReset(&r->z) == Z_OK ? NULL : "out of memory";
}

const char *gzip_inflate(struct gzip_reader *r, uint8_t *out, size_t room, size_t *size)
{
	*size = 0;
	while (*size < room && r->z.avail_in) {
		const char *reason = r->between ? next_member(r) : NULL;
		int status;

		if (reason || !r->z.avail_in)
			return reason;
		r->z.next_out = out + *size;
		r->z.avail_out = at_most_uint(room - *size);
		status = inflate(&r->z, Z_NO_FLUSH);
		*size = r->z.next_out - out;
		if (status == Z_MEM_ERROR)
			return "out of memory";
		if (status == Z_STREAM_END)
			r->between = true;
		else if (status != Z_OK && status != Z_BUF_ERROR)
			return r->z.msg ? r->z.msg : "the gzip data is corrupt";
	}
	return NULL;
}

void gzip_end(struct gzip_reader *r)
{
	inflateEnd(&r->z);
}

int gzip_open(struct gzip_writer *w, FILE *out, struct error *e)
{
	w->z = (z_stream){ 0 };
	w->out = out;
	if (deflateInit2(&w->z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
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

static ssize_t write_cookie(void *cookie, const char *bytes, size_t size)
{
	struct error e;

	return gzip_write(cookie, bytes, size, &e) ? 0 : (ssize_t)size;
}

FILE *gzip_stream(struct gzip_writer *w)
{
	return fopencookie(w, "w", (cookie_io_functions_t){ .write = write_cookie });
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
