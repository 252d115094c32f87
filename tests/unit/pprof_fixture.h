/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TESTS_PPROF_FIXTURE_H
#define PROFIL_TESTS_PPROF_FIXTURE_H

/* pprof files made by hand, for the tests of the reader and the writer. */

#include "format_fixture.h"

#include "format/gzip.h"
#include "format/pprof/pprof.h"

static const struct format *const pprof = &format_pprof;

/* A message under construction. */
static inline void add_varint(struct bytes *b, uint64_t value)
{
	uint8_t byte;

	for (; value > 0x7f; value >>= 7) {
		byte = value | 0x80;
		bytes_add(b, &byte, 1);
	}
	byte = value;
	bytes_add(b, &byte, 1);
}

static inline void add_number(struct bytes *b, unsigned int field, uint64_t value)
{
	add_varint(b, field << 3);
	add_varint(b, value);
}

static inline void add_text(struct bytes *b, unsigned int field, const char *text)
{
	add_varint(b, field << 3 | 2);
	add_varint(b, strlen(text));
	bytes_add_text(b, text);
}

/* Adds a message of numbers: pairs of field and value. */
static inline void add_message(struct bytes *b, unsigned int field, const uint64_t *pairs,
			       size_t count)
{
	struct bytes message = { 0 };

	for (size_t i = 0; i < count; i += 2)
		add_number(&message, pairs[i], pairs[i + 1]);
	add_varint(b, field << 3 | 2);
	add_varint(b, message.size);
	bytes_add(b, message.start, message.size);
	bytes_free(&message);
}

#define MESSAGE(b, field, ...)                                   \
	add_message(b, field, (const uint64_t[]){ __VA_ARGS__ }, \
		    sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

enum {
	TYPE = 1,
	SAMPLE,
	MAPPING,
	LOCATION,
	FUNCTION,
	STRING
};

/* The strings 0 to 7 of these files. */
static inline void add_strings(struct bytes *b)
{
	static const char *const strings[] = { "",	 "samples", "count", "cpu", "nanoseconds",
					       "/bin/a", "main",    "00ff" };

	for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++)
		add_text(b, STRING, strings[i]);
}

/* One sample of one location; each message comes before those that it refers to. */
static inline struct bytes small_file(void)
{
	struct bytes b = { 0 };

	MESSAGE(&b, TYPE, 1, 1, 2, 2);
	MESSAGE(&b, TYPE, 1, 3, 2, 4);
	MESSAGE(&b, SAMPLE, 1, 40, 1, 40, 2, 7, 2, 70);
	MESSAGE(&b, LOCATION, 1, 40, 2, 30, 3, 0x401000);
	MESSAGE(&b, MAPPING, 1, 30, 2, 0x400000, 3, 0x500000, 4, 0x1000, 5, 5, 6, 7);
	MESSAGE(&b, PPROF_PERIOD_TYPE, 1, 3, 2, 4);
	add_number(&b, PPROF_PERIOD, 10);
	return b;
}

static inline struct bytes inflated(const struct bytes *b)
{
	struct bytes raw = { .start = malloc(1 << 20) };
	struct gzip_reader r;

	assert_non_null(raw.start);
	assert_null(gzip_begin(&r));
	gzip_feed(&r, b->start, b->size);
	assert_null(gzip_inflate(&r, raw.start, 1 << 20, &raw.size));
	assert_true(r.between);
	gzip_end(&r);
	return raw;
}

static inline int read_salvage(const struct bytes *b, size_t size, struct profile *p)
{
	uint8_t *copy = malloc(size + 1);
	struct input in = { .path = "input", .bytes = copy, .size = size };
	struct error e = { 0 };
	int err;

	assert_non_null(copy);
	memcpy(copy, b->start, size);
	in.options.salvage = true;
	err = pprof->read(&in, p, &e);
	free(copy);
	return err;
}

#endif
