// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/section.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <zlib.h>

#include "symbol/elf_file.h"
#include "symbol/zstd.h"
#include "util/array.h"

/* --- Decompression --- */

/*
 * Decompresses a section from front to back: zlib, or zstd, whose library is loaded when a section
 * needs it. These are the compressed bytes.
 */
struct dwarf_packed {
	struct elf_source source;
	uint64_t at, stored; /* offset in the file, and size */
	uint64_t size;	     /* decompressed */
	bool zstd;
};

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
	size_t want = MIN(left, sizeof(f->input));
	size_t n = elf_source_read(&f->packed.source, f->input, want, f->packed.at + f->in);

	f->in += n;
	return n;
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

/*
 * seeks: the reader will seek backwards. Then zlib's state is saved at marks, to continue from
 * there; zstd always restarts at the beginning. Sets *f. Returns 0, -ENOTSUP (no zstd library) or
 * -ENOMEM.
 */
static int dwarf_inflater_new(struct dwarf_inflater **out, const struct dwarf_packed *packed,
			      bool seeks)
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

/* NULL is fine */
static void dwarf_inflater_free(struct dwarf_inflater *f)
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

/* Decompresses the next `size` bytes. Returns their number, less at the end or if corrupt. */
static size_t dwarf_inflate(struct dwarf_inflater *f, uint8_t *to, size_t size)
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

/* Seeks to the nearest possible offset at or before this one. Returns 0 or a negative errno. */
static int dwarf_inflate_seek(struct dwarf_inflater *f, uint64_t offset)
{
	size_t i = f->mark_count;

	while (i && f->marks[i - 1].out > offset)
		i--;
	if (f->out <= offset && (!i || f->marks[i - 1].out <= f->out))
		return 0;
	if (f->packed.zstd ? !zstd_restart(&f->zstd) : !i && inflateReset(&f->stream) != Z_OK)
		return -EINVAL;
	if (i) {
		inflateEnd(&f->stream);
		if (inflateCopy(&f->stream, &f->marks[i - 1].state) != Z_OK) {
			f->stream = (z_stream){ 0 };
			return -ENOMEM;
		}
	}
	f->in = i ? f->marks[i - 1].in : 0;
	f->out = i ? f->marks[i - 1].out : 0;
	f->stream.avail_in = 0;
	f->zstd_in = (struct zstd_in){ 0 };
	return 0;
}

#ifndef ELFCOMPRESS_ZSTD /* glibc 2.36 and older */
#define ELFCOMPRESS_ZSTD 2
#endif

#define WINDOW	      ((size_t)64 * 1024)
#define WINDOW_PACKED ((size_t)1024 * 1024)
#define WINDOW_WIDE   ((size_t)32 * 1024 * 1024)
/* Bound: files: bytes of a string; then: it is cut, or missing; seen: not seen. */
#define STRING_MAX ((size_t)64 * 1024)

/*
 * zlib compresses debug information to a third or fifth, tables of zeros to a thirtieth.
 * Bound: files: how much a section may be larger than it is packed, and its size; then: it is
 * refused.
 */
#define RATIO_MAX	 200
#define SECTION_SIZE_MAX ((uint64_t)16 * 1024 * 1024 * 1024)

/*
 * A section's budget: so often its size, plus a minimum. Readers pass it once or twice.
 * Bound: files: how often its size is read of a section; then: nothing more is read of it.
 */
#define BUDGET_FACTOR 8
#define BUDGET_MIN    ((uint64_t)16 * 1024 * 1024)

/* Sets a section's offset and size in the file, up to the file's end: the budget counts by them. */
static void place(struct dwarf_section *s, uint64_t offset, uint64_t size)
{
	if (offset >= s->source.size)
		return;
	s->at = offset;
	s->stored = s->source.size - s->at;
	s->stored = MIN(s->stored, size);
}

/* Reads the header of a compressed section. Returns the header's size or -EINVAL. */
static ssize_t read_header(struct dwarf_section *s, Elf *elf, bool *zstd)
{
	bool wide = gelf_getclass(elf) == ELFCLASS64;
	size_t size = wide ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
	uint8_t bytes[sizeof(Elf64_Chdr)];
	struct dwarf_cursor c = { bytes, bytes + size, s->big_endian, false };
	uint32_t type;

	if (s->stored < size || elf_source_read(&s->source, bytes, size, s->at) != size)
		return -EINVAL;
	type = dwarf_number(&c, 4);
	if (wide)
		dwarf_skip(&c, 4);
	s->size = dwarf_number(&c, wide ? 8 : 4);
	*zstd = type == ELFCOMPRESS_ZSTD;
	return *zstd || type == ELFCOMPRESS_ZLIB ? (ssize_t)size : -EINVAL;
}

/*
 * Seeking backwards in a compressed section is slow: if there is room, it is kept whole, else read
 * by windows. zstd must be kept whole, for it can only restart at the beginning.
 */
static int start_inflater(struct dwarf_section *s, size_t header, bool zstd, uint64_t *room)
{
	struct dwarf_packed packed = { s->source, s->at + header, s->stored - header, s->size,
				       zstd };
	int err;

	if (s->size > SECTION_SIZE_MAX || s->size / RATIO_MAX > packed.stored)
		return -EINVAL;
	s->whole = room && s->size <= *room;
	if (zstd && !s->whole)
		return -EFBIG;
	err = dwarf_inflater_new(&s->inflater, &packed, !s->whole);
	if (err || !s->whole)
		return err;
	s->room_left = room;
	*room -= s->size;
	return 0;
}

/* GNU's older compression: ".zdebug_info", with a header of 12 bytes. */
static int open_old(struct dwarf_section *s, Elf *elf, const char *name, uint64_t *room)
{
	uint8_t head[12];
	struct dwarf_cursor c = { head + 4, head + sizeof(head), true, false };
	GElf_Shdr section;
	char old[64] = ".z";

	if (strlen(name) >= sizeof(old) - 1)
		return 0;
	strcpy(old + 2, name + 1);
	if (!elf_find_section(elf, old, &section))
		return 0;
	place(s, section.sh_offset, section.sh_size);
	if (s->stored < sizeof(head) ||
	    elf_source_read(&s->source, head, sizeof(head), s->at) != sizeof(head) ||
	    memcmp(head, "ZLIB", 4) != 0)
		return -EINVAL;
	s->size = dwarf_number(&c, 8);
	return start_inflater(s, sizeof(head), false, room);
}

static struct dwarf_section section_of(const struct elf_file *file)
{
	size_t unused;
	const char *ident = elf_getident(file->elf, &unused);

	return (struct dwarf_section){
		.source = file->source,
		.big_endian = ident && ident[EI_DATA] == ELFDATA2MSB,
	};
}

int dwarf_section_open(struct dwarf_section *s, const struct elf_file *file, const char *name,
		       uint64_t *room)
{
	GElf_Shdr section;
	ssize_t header;
	bool zstd;
	int err;

	*s = section_of(file);
	if (!elf_find_section(file->elf, name, &section)) {
		err = open_old(s, file->elf, name, room);
	} else {
		place(s, section.sh_offset, section.sh_size);
		s->size = s->stored;
		if (section.sh_flags & SHF_COMPRESSED) {
			header = read_header(s, file->elf, &zstd);
			err = header < 0 ? (int)header : start_inflater(s, header, zstd, room);
		} else {
			err = s->size > SECTION_SIZE_MAX ? -EINVAL : 0;
		}
	}
	if (err)
		s->size = 0;
	return err;
}

void dwarf_section_open_at(struct dwarf_section *s, const struct elf_file *file, uint64_t offset,
			   uint64_t size)
{
	*s = section_of(file);
	place(s, offset, size);
	s->size = s->stored;
}

void dwarf_section_close(struct dwarf_section *s)
{
	if (s->room_left)
		*s->room_left += s->size;
	dwarf_inflater_free(s->inflater);
	free(s->bytes);
	*s = (struct dwarf_section){ .source.fd = -1 };
}

bool dwarf_section_use(struct dwarf_section *s, uint64_t bytes)
{
	s->used += bytes;
	return s->used / BUDGET_FACTOR <= s->size + BUDGET_MIN;
}

/* Fills the window up to `size` bytes, after the `held` ones. */
static void fill_window(struct dwarf_section *s, size_t size)
{
	uint64_t offset = s->from + s->held, left;
	size_t want = size - s->held;
	uint8_t scratch[16 * 1024];

	if (s->failed)
		return;
	s->filled += want;
	if (s->filled / BUDGET_FACTOR > s->size + BUDGET_MIN)
		return;
	if (!s->inflater) {
		s->held += elf_source_read(&s->source, s->bytes + s->held, want, s->at + offset);
		return;
	}
	s->failed = dwarf_inflate_seek(s->inflater, offset) != 0;
	while (!s->failed && (left = offset - s->inflater->out)) {
		size_t skipped = MIN(left, sizeof(scratch));

		s->filled += skipped;
		s->failed = dwarf_inflate(s->inflater, scratch, skipped) < skipped;
	}
	if (!s->failed)
		s->held += dwarf_inflate(s->inflater, s->bytes + s->held, want);
	s->failed = s->held < size;
}

/*
 * Returns the size of the window for the next read, and sets *from to its start. A section that is
 * kept whole grows as far as it is read. A section that has been read twice is read at random: then
 * a wide window, around the offset, saves more than it costs.
 */
static size_t choose_window(const struct dwarf_section *s, uint64_t offset, size_t want,
			    uint64_t *from)
{
	size_t size = s->inflater ? WINDOW_PACKED : WINDOW;

	*from = offset;
	if (s->whole) {
		*from = 0;
		size += offset;
	} else if (s->filled / 2 > s->size + WINDOW_PACKED) {
		size = WINDOW_WIDE;
		*from -= *from < size / 2 ? *from : size / 2;
	}
	size = MAX(size, offset - *from + want);
	return size < s->size - *from ? size : s->size - *from;
}

const uint8_t *dwarf_section_read(struct dwarf_section *s, uint64_t offset, size_t want,
				  size_t *got)
{
	uint64_t from;
	size_t size;

	if (offset >= s->size)
		return NULL;
	want = MIN(want, s->size - offset);
	if (offset < s->from || offset - s->from > s->held || offset - s->from + want > s->held) {
		size = choose_window(s, offset, want, &from);
		/* Keeps the bytes that the window has of what it will have. */
		if (from >= s->from && from - s->from < s->held) {
			s->held -= from - s->from;
			memmove(s->bytes, s->bytes + (from - s->from), s->held);
		} else {
			s->held = 0;
		}
		s->from = from;
		/* What is not read of a section that is kept whole takes no memory. */
		if (s->whole && !s->bytes)
			s->bytes = malloc(s->size);
		if (s->whole ? !s->bytes : array_reserve(&s->bytes, &s->room, size, 1))
			return NULL;
		fill_window(s, size);
	}
	if (offset - s->from >= s->held)
		return NULL;
	size = s->held - (offset - s->from);
	*got = MIN(size, want);
	return s->bytes + (offset - s->from);
}

const char *dwarf_section_string(struct dwarf_section *s, uint64_t offset)
{
	for (size_t want = 1024; want <= STRING_MAX; want *= STRING_MAX / 1024) {
		size_t got;
		const uint8_t *text = dwarf_section_read(s, offset, want, &got), *end;

		if (!text)
			return NULL;
		end = memchr(text, '\0', got);
		if (end) /* strings may overlap: each takes from the budget */
			return dwarf_section_use(s, end - text) ? (const char *)text : NULL;
	}
	return NULL;
}

bool dwarf_section_number(struct dwarf_section *s, uint64_t offset, size_t size, uint64_t *number)
{
	struct dwarf_cursor c = dwarf_section_cursor(s, offset, size);

	*number = dwarf_number(&c, size);
	return !c.bad;
}

bool dwarf_section_element(struct dwarf_section *s, uint64_t base, uint64_t index, size_t size,
			   uint64_t *number)
{
	uint64_t at;

	return !__builtin_mul_overflow(index, size, &at) &&
	       !__builtin_add_overflow(at, base, &at) && dwarf_section_number(s, at, size, number);
}

struct dwarf_cursor dwarf_section_cursor(struct dwarf_section *s, uint64_t offset, size_t want)
{
	struct dwarf_cursor c = { .big_endian = s->big_endian };
	size_t got;

	c.at = dwarf_section_read(s, offset, want, &got);
	c.end = c.at ? c.at + got : NULL;
	c.bad = !c.at;
	return c;
}

uint64_t dwarf_number(struct dwarf_cursor *c, size_t size)
{
	uint64_t value = 0;

	if ((size_t)(c->end - c->at) < size) {
		c->at = c->end;
		c->bad = true;
		return 0;
	}
	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)c->at[i] << 8 * (c->big_endian ? size - 1 - i : i);
	c->at += size;
	return value;
}

uint64_t dwarf_uleb(struct dwarf_cursor *c)
{
	uint64_t value = 0;
	uint8_t byte;
	unsigned int shift = 0;

	do {
		if (c->at == c->end) {
			c->bad = true;
			return 0;
		}
		byte = *c->at++;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return value;
}

int64_t dwarf_sleb(struct dwarf_cursor *c)
{
	const uint8_t *start = c->at;
	uint64_t value = dwarf_uleb(c);
	size_t bits = (c->at - start) * 7;

	if (!c->bad && bits < 64 && (c->at[-1] & 0x40))
		value |= UINT64_MAX << bits;
	return value;
}

void dwarf_skip(struct dwarf_cursor *c, uint64_t bytes)
{
	if ((uint64_t)(c->end - c->at) < bytes) {
		c->at = c->end;
		c->bad = true;
		return;
	}
	c->at += bytes;
}

void dwarf_skip_string(struct dwarf_cursor *c)
{
	const uint8_t *end = memchr(c->at, '\0', c->end - c->at);

	c->bad |= !end;
	c->at = end ? end + 1 : c->end;
}

uint64_t dwarf_length(struct dwarf_cursor *c, unsigned int *offset_size)
{
	uint64_t length = dwarf_number(c, 4);

	*offset_size = length == UINT32_MAX ? 8 : 4;
	return *offset_size == 8 ? dwarf_number(c, 8) : length;
}
