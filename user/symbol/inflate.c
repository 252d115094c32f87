// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/inflate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "symbol/zstd.h"

#define MARKS	   128
#define MARK_LEAST ((uint64_t)512 * 1024)

/* A state from which inflating can continue. A mark takes 40 kB. */
struct mark {
	uint64_t in, out;
	z_stream state;
};

struct dwarf_inflater {
	struct dwarf_packed packed;
	uint64_t in, out; /* bytes read into `input`, and decompressed */
	uint8_t input[16 * 1024];
	z_stream stream;
	struct zstd zstd;
	struct zstd_in zstd_in;
	uint64_t mark_distance; /* 0: no marks */
	size_t mark_count;
	struct mark marks[]; /* by `out` */
};

/* Reads the next bytes of the file. Returns their number. */
static size_t fill_input(struct dwarf_inflater *f)
{
	uint64_t left = f->packed.stored - f->in;
	size_t want = left < sizeof(f->input) ? left : sizeof(f->input);
	size_t n = elf_source_read(&f->packed.source, f->input, want, f->packed.at + f->in);

	f->in += n;
	return n;
}

/* Goes to the last mark at or before an offset, else to the beginning. */
static int seek_zlib(struct dwarf_inflater *f, uint64_t offset)
{
	size_t i = f->mark_count;

	while (i && f->marks[i - 1].out > offset)
		i--;
	if (f->out <= offset && (!i || f->marks[i - 1].out <= f->out))
		return 0;
	if (i) {
		inflateEnd(&f->stream);
		if (inflateCopy(&f->stream, &f->marks[i - 1].state) != Z_OK) {
			f->stream = (z_stream){ 0 };
			return -ENOMEM;
		}
	} else if (inflateReset(&f->stream) != Z_OK) {
		return -EINVAL;
	}
	f->in = i ? f->marks[i - 1].in : 0;
	f->out = i ? f->marks[i - 1].out : 0;
	f->stream.avail_in = 0;
	return 0;
}

static size_t inflate_zlib(struct dwarf_inflater *f, uint8_t *to, size_t size)
{
	z_stream *z = &f->stream;

	z->next_out = to;
	z->avail_out = size;
	while (z->avail_out) {
		if (!z->avail_in) {
			z->next_in = f->input;
			z->avail_in = fill_input(f);
			if (!z->avail_in)
				break;
		}
		if (inflate(z, Z_NO_FLUSH) != Z_OK)
			break;
	}
	return size - z->avail_out;
}

static size_t inflate_zstd(struct dwarf_inflater *f, uint8_t *to, size_t size)
{
	struct zstd_out out = { to, size, 0 };
	struct zstd_in *in = &f->zstd_in;

	while (out.used < size) {
		size_t before = out.used;

		if (!zstd_decompress(&f->zstd, &out, in))
			break;
		if (out.used > before || in->used < in->size)
			continue;
		*in = (struct zstd_in){ f->input, fill_input(f), 0 };
		if (!in->size)
			break;
	}
	return out.used;
}

int dwarf_inflater_new(struct dwarf_inflater **out, const struct dwarf_packed *packed, bool seeks)
{
	bool marks = seeks && !packed->zstd;
	struct dwarf_inflater *f = calloc(1, sizeof(*f) + (marks ? MARKS * sizeof(*f->marks) : 0));
	int err = 0;

	if (!f)
		return -ENOMEM;
	f->packed = *packed;
	if (marks)
		f->mark_distance = packed->size / MARKS + MARK_LEAST;
	if (packed->zstd)
		err = zstd_begin(&f->zstd);
	else if (inflateInit(&f->stream) != Z_OK)
		err = -ENOMEM;
	if (err) {
		free(f);
		return err;
	}
	if (!packed->zstd)
		inflateValidate(&f->stream, 0); /* a checksum would fail when parts are read */
	*out = f;
	return 0;
}

void dwarf_inflater_free(struct dwarf_inflater *f)
{
	if (!f)
		return;
	if (f->packed.zstd)
		zstd_end(&f->zstd);
	else
		inflateEnd(&f->stream);
	for (size_t i = 0; i < f->mark_count; i++)
		inflateEnd(&f->marks[i].state);
	free(f);
}

uint64_t dwarf_inflater_offset(const struct dwarf_inflater *f)
{
	return f->out;
}

size_t dwarf_inflate(struct dwarf_inflater *f, uint8_t *to, size_t size)
{
	struct mark *m = &f->marks[f->mark_count];

	size = f->packed.zstd ? inflate_zstd(f, to, size) : inflate_zlib(f, to, size);
	f->out += size;
	if (f->mark_distance && f->mark_count < MARKS &&
	    f->out >= (f->mark_count + 1) * f->mark_distance &&
	    inflateCopy(&m->state, &f->stream) == Z_OK) {
		m->in = f->in - f->stream.avail_in;
		m->out = f->out;
		f->mark_count++;
	}
	return size;
}

int dwarf_inflate_seek(struct dwarf_inflater *f, uint64_t offset)
{
	if (!f->packed.zstd)
		return seek_zlib(f, offset);
	if (f->out <= offset)
		return 0;
	if (!zstd_restart(&f->zstd))
		return -EINVAL;
	f->zstd_in = (struct zstd_in){ 0 };
	f->in = 0;
	f->out = 0;
	return 0;
}
