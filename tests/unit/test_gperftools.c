// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "format_fixture.h"

#include <errno.h>

#include "format/address_space.h"
#include "format/gperftools.h"

static const struct format *const gperftools = &format_gperftools;

#define MAP "00400000-00500000 r-xp 00001000 08:01 77          /bin/prog\n"

/* Appends slots of this width and byte order. */
static void add_slots(struct bytes *b, unsigned int bits, bool big, const uint64_t *slots,
		      size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint8_t bytes[8];
		unsigned int size = bits / 8;

		for (unsigned int j = 0; j < size; j++)
			bytes[big ? size - 1 - j : j] = slots[i] >> 8 * j;
		bytes_add(b, bytes, size);
	}
}

#define SLOTS(b, ...)                                              \
	add_slots(b, 64, false, (const uint64_t[]){ __VA_ARGS__ }, \
		  sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

#define HEADER	0, 3, 0, 10000, 0
#define TRAILER 0, 1, 0

static void read_widths_and_orders(void **state)
{
	static const uint64_t slots[] = {
		HEADER, 7, 2, 0x400010, 0x400020, 1, 1, 0x400010, TRAILER
	};

	(void)state;
	for (int i = 0; i < 4; i++) {
		unsigned int bits = i & 1 ? 32 : 64;
		bool big = i & 2;
		struct bytes b = { 0 };
		struct profile *p;

		add_slots(&b, bits, big, slots, sizeof(slots) / sizeof(*slots));
		bytes_add_text(&b, MAP);
		p = read_good(gperftools, &b);
		assert_int_equal(p->bits, bits);
		assert_int_equal(p->big_endian, big);
		assert_true(p->return_addresses);
		assert_int_equal(p->period_ns, 10000000);
		assert_int_equal(p->sample_count, 2);
		assert_int_equal(p->values[0], 7);
		assert_int_equal(p->values[1], 70000000);
		assert_int_equal(p->locations[0].address, 0x400010);
		assert_int_equal(p->locations[1].address, 0x40001f);
		assert_int_equal(profile_file_pc(p, 1, 1), 0x400020);
		assert_int_equal(p->mapping_count, 1);
		assert_int_equal(p->mappings[0].offset, 0x1000);
		assert_string_equal(p->images[0].path, "/bin/prog");
		assert_int_equal(p->images[0].fd, -1);
		assert_int_equal(p->warning_count, 0);
		profile_free(p);
		bytes_free(&b);
	}
}

/* One file of slots and text, and the warning it is read with (NULL: none), or the error. */
static void check(const uint64_t *slots, size_t count, const char *text, const char *warning,
		  const char *error)
{
	struct bytes b = { 0 };
	struct profile *p;

	add_slots(&b, 64, false, slots, count);
	bytes_add_text(&b, text);
	if (error) {
		read_bad(gperftools, &b, error);
	} else {
		p = read_good(gperftools, &b);
		if (warning)
			assert_warned(p, warning);
		else
			assert_int_equal(p->warning_count, 0);
		profile_free(p);
	}
	bytes_free(&b);
}

#define CHECK(text, warning, error, ...)         \
	check((const uint64_t[]){ __VA_ARGS__ }, \
	      sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), text, warning, error)

static void overlook(void **state)
{
	(void)state;
	CHECK(MAP, NULL, NULL, HEADER, TRAILER);
	CHECK(MAP, "2 more words", NULL, 0, 5, 0, 10000, 0, 8, 9, TRAILER);
	CHECK(MAP, "padding", NULL, 0, 3, 0, 10000, 1, TRAILER);
	CHECK(MAP, "period of 0", NULL, 0, 3, 0, 0, 0, TRAILER);
	CHECK("", "no map", NULL, HEADER, TRAILER);
	CHECK("", "trailer", NULL, HEADER);
	CHECK("", "trailer", NULL, HEADER, 1, 1, 0x400010);
	CHECK(MAP, "trailer", NULL, HEADER, 1, 1, 0x400010);
	CHECK(MAP, "no pc", NULL, HEADER, 4, 0, 5, 0, TRAILER);
	CHECK(MAP, "count of 0", NULL, HEADER, 0, 1, 0x400010, TRAILER);
	CHECK(MAP, "1 pc(s) are 0", NULL, HEADER, 4, 2, 0, 0x400010, TRAILER);
	CHECK(MAP, "1 pc(s) are 0", NULL, HEADER, 4, 2, 0x400010, 0, TRAILER);
	CHECK(" " MAP, "begins with a blank", NULL, HEADER, TRAILER);
	CHECK("2000-1000 r-xp 0 0:0 0 /x\n" MAP, "ends before", NULL, HEADER, TRAILER);
}

static void reject(void **state)
{
	(void)state;
	CHECK("", NULL, "at byte 16: version 2", 0, 3, 2, 10000, 0, TRAILER);
	CHECK("", NULL, "ends in its header", 0, 3, 0);
	CHECK("", NULL, "ends in its header", 0, 65535, 0, 0, 0);
	CHECK("", NULL, "not of this format", 0, 2, 0, 10000, 0);
	CHECK("", NULL, "not of this format", 1, 3, 0, 10000, 0);
	CHECK("", NULL, "at byte 40: the file ends within", HEADER, 1);
	CHECK("xx", NULL, "at byte 64: the file ends within", HEADER, 1, 1, 5);
	CHECK("", NULL, "at byte 40: a record of 3 pcs, where only 1 fit", HEADER, 1, 3, 0x400010);
	CHECK("", NULL, "at byte 64: a record of 18446744073709551615 pcs", HEADER, 1, 1, 0x400010,
	      1, UINT64_MAX, 0x400010);
	/* Text that is no map does not make up for a missing trailer. */
	CHECK("once upon a time there was\n", NULL, "at byte 40", HEADER);
}

static void reject_symbolized(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	bytes_add_text(&b, "--- symbol\nbinary=/bin/prog\n0x400010 main\n---\n--- profile\n");
	read_bad(gperftools, &b, "symbolized");
	bytes_free(&b);
}

static void zero_pcs_stay(void **state)
{
	struct bytes b = { 0 };
	struct profile *p;

	(void)state;
	SLOTS(&b, HEADER, 4, 3, 0, 0x400010, 0, TRAILER);
	p = read_good(gperftools, &b);
	assert_int_equal(p->samples[0].depth, 3);
	assert_int_equal(profile_file_pc(p, p->frames[0], 0), 0);
	assert_int_equal(profile_file_pc(p, p->frames[1], 1), 0x400010);
	assert_int_equal(profile_file_pc(p, p->frames[2], 2), 0);
	profile_free(p);
	bytes_free(&b);
}

static void repeated_stacks_are_summed(void **state)
{
	struct bytes b = { 0 };
	struct profile *p;

	(void)state;
	SLOTS(&b, HEADER, 4, 1, 0x400010, 5, 1, 0x400010, UINT64_MAX, 1, 0x400010, TRAILER);
	p = read_good(gperftools, &b);
	assert_int_equal(p->sample_count, 1);
	assert_true(p->values[0] == INT64_MAX);
	assert_true(p->values[1] == INT64_MAX);
	profile_free(p);
	bytes_free(&b);
}

static void period_saturates(void **state)
{
	struct bytes b = { 0 };
	struct profile *p;

	(void)state;
	SLOTS(&b, 0, 3, 0, UINT64_MAX / 2, 0, 3, 1, 0x400010, TRAILER);
	p = read_good(gperftools, &b);
	assert_true(p->period_ns == UINT64_MAX);
	assert_true(p->values[1] == INT64_MAX);
	profile_free(p);
	bytes_free(&b);
}

static const struct {
	const char *line;
	uint64_t start, limit, offset;
	const char *path; /* NULL: no mapping */
} map_lines[] = {
	{ "1000-2000 r-xp 00003000 08:01 12 /a b/c", 0x1000, 0x2000, 0x3000, "/a b/c" },
	{ "1000-2000 r-xp 00003000 08:01 12 /a (deleted)", 0x1000, 0x2000, 0x3000, "/a" },
	{ "1000-2000 r-xp 0 00:00 0", 0x1000, 0x2000, 0, "" },
	{ "1000-2000 r-xp 0 00:00 0 \r", 0x1000, 0x2000, 0, "" },
	{ "ABC000-ABD000 r-xs 0 fd:0a 0 /A\r", 0xabc000, 0xabd000, 0, "/A" },
	{ "0x1000-0x2000: /cooked path", 0x1000, 0x2000, 0, "/cooked path" },
	{ "1000-2000 /brief (@30) 0a0b", 0x1000, 0x2000, 0x30, "/brief" },
	{ "1000-2000 r-xp /brief @30", 0x1000, 0x2000, 0x30, "/brief" },
	{ "1000-2000 /at@30", 0x1000, 0x2000, 0, "/at@30" },
	{ "1000-2000 r-xp", 0x1000, 0x2000, 0, "" },
	{ "I0101 12:00:00 x/y.cc:12] 1000-2000 r-xp 5 0:0 0 /log", 0x1000, 0x2000, 5, "/log" },
	{ "f000-ffff r-xp 0 0:0 0 [kernel.kallsyms]_text", 0xf000, 0xffff, 0, "[kernel.kallsyms]" },
	{ "1000-2000 r-xp 0 0:0 0 $build/x", 0x1000, 0x2000, 0, "/last/x" },
	{ "1000-2000 r-xp 0 0:0 0 $build", 0x1000, 0x2000, 0, "/last" },
	{ "1000-2000 r-xp 0 0:0 0 $buildx", 0x1000, 0x2000, 0, "$buildx" },
	{ "1000-2000 rw-p 0 0:0 0 /data", 0, 0, 0, NULL },
	{ "date=2024", 0, 0, 0, NULL },
	{ "add 12-13 more", 0, 0, 0, NULL },
	{ "12-2013 was a fine day", 0, 0, 0, NULL },
	{ "1000-11111111111111111 r-xp 0 0:0 0 /x", 0, 0, 0, NULL },
	{ "10-12: a meeting", 0, 0, 0, NULL },
	{ "1000-2000", 0, 0, 0, NULL },
};

static void read_map_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(map_lines) / sizeof(*map_lines); i++) {
		struct bytes b = { 0 };
		struct profile *p;

		SLOTS(&b, HEADER, TRAILER);
		bytes_add_text(&b, "build=/first\n");
		bytes_add_text(&b, map_lines[i].line);
		bytes_add_text(&b, "\n  build=/last\n");
		p = read_good(gperftools, &b);
		if (!map_lines[i].path) {
			assert_int_equal(p->mapping_count, 0);
		} else {
			assert_int_equal(p->mapping_count, 1);
			assert_int_equal(p->mappings[0].start, map_lines[i].start);
			assert_int_equal(p->mappings[0].limit, map_lines[i].limit);
			assert_int_equal(p->mappings[0].offset, map_lines[i].offset);
			assert_string_equal(p->images[0].path, map_lines[i].path);
		}
		profile_free(p);
		bytes_free(&b);
	}
}

static void unknown_lines_are_comments(void **state)
{
	struct bytes b = { 0 };
	struct profile *p;

	(void)state;
	SLOTS(&b, HEADER, TRAILER);
	bytes_add_text(&b, "# one\n\n" MAP "two\r\nthree");
	p = read_good(gperftools, &b);
	assert_int_equal(p->comment_count, 3);
	assert_string_equal(p->comments[0], "# one");
	assert_string_equal(p->comments[1], "two");
	assert_string_equal(p->comments[2], "three");
	profile_free(p);
	bytes_free(&b);
}

/* A small file must not be able to ask for much memory. */
static void build_does_not_explode(void **state)
{
	struct bytes b = { 0 };
	struct profile *p;
	char path[3000];

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	SLOTS(&b, HEADER, TRAILER);
	bytes_add_text(&b, "1000-2000 r-xp 0 0:0 0 $build/$build\nbuild=/");
	bytes_add_text(&b, path);
	p = read_good(gperftools, &b);
	assert_warned(p, "too long");
	profile_free(p);
	bytes_free(&b);
}

static void read_java(void **state)
{
	static const uint64_t slots[] = { 0, 3, 1, 10000, 0, 2, 3, 5, 6, 7, TRAILER };
	struct bytes b = { 0 };
	struct profile *p;

	(void)state;
	add_slots(&b, 32, false, slots, sizeof(slots) / sizeof(*slots));
	bytes_add_text(&b, " 0x00000005 VM\n 0x6 com.example.f(int) (source.java:06)\n"
			   "0x7 g (native)\n0x8 unused (x:1)\n");
	p = read_good(gperftools, &b);
	assert_false(p->return_addresses);
	assert_int_equal(p->comment_count, 0);
	assert_int_equal(p->location_count, 3);
	assert_int_equal(p->locations[1].address, 6);
	assert_int_equal(p->function_count, 3);
	assert_string_equal(p->functions[0].name, "VM");
	assert_string_equal(p->functions[1].name, "com.example.f(int)");
	assert_string_equal(p->functions[1].file, "source.java");
	assert_int_equal(p->lines[p->locations[1].first_line].line, 6);
	assert_string_equal(p->functions[2].file, "native");
	profile_free(p);
	bytes_free(&b);
}

/* main at the root, three leaves in two mappings, two threads. */
static struct profile *small_profile(void)
{
	struct profile *p = empty_profile(10000000);
	uint32_t exe = add_mapping(p, 0x400000, 0x500000, 0x1000, "/bin/prog");
	uint32_t lib = add_mapping(p, 0x7f0000, 0x800000, 0x2000, "/lib/li b.so");
	uint32_t f[] = { add_location(p, 0x400100, exe), add_location(p, 0x400200, exe),
			 add_location(p, 0x400300, exe), add_location(p, 0x7f0100, lib) };
	uint32_t a = add_labels(p, 1, 1, "a", false), b = add_labels(p, 1, 2, "b", false);

	add_sample(p, (uint32_t[]){ f[0], f[1], f[2] }, 3, a, 5);
	add_sample(p, (uint32_t[]){ f[0], f[1], f[2] }, 3, b, 6);
	add_sample(p, (uint32_t[]){ f[3], f[2] }, 2, a, 7);
	add_sample(p, (uint32_t[]){ f[3] }, 1, a, 8);
	add_sample(p, (uint32_t[]){ f[2] }, 0, a, 9);
	return p;
}

static void round_trip(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct profile *p = small_profile(), *q;
		struct bytes b;

		p->bits = i & 1 ? 32 : 64;
		p->big_endian = i & 2;
		b = write_bytes(gperftools, p);
		q = read_good(gperftools, &b);
		assert_int_equal(q->warning_count, 0);
		assert_int_equal(q->comment_count, 0);
		assert_int_equal(q->bits, p->bits);
		assert_int_equal(q->big_endian, p->big_endian);
		assert_int_equal(q->period_ns, p->period_ns);
		/* Both threads' samples in one stack, and none without a pc. */
		assert_int_equal(q->sample_count, 3);
		assert_int_equal(q->values[0], 11);
		assert_int_equal(q->values[2], 7);
		assert_int_equal(q->values[4], 8);
		assert_int_equal(q->mapping_count, 2);
		assert_memory_equal(q->mappings, p->mappings, 2 * sizeof(*q->mappings));
		assert_string_equal(q->images[1].path, "/lib/li b.so");
		assert_int_equal(q->location_count, 4);
		for (size_t j = 0; j < 4; j++) {
			assert_int_equal(q->locations[j].address, p->locations[j].address);
			assert_int_equal(q->locations[j].mapping, p->locations[j].mapping);
		}
		profile_free(q);
		profile_free(p);
		bytes_free(&b);
	}
}

/* gperftools' own validator, by its rules: what passes it is accepted everywhere. */
static void written_bytes(void **state)
{
	struct profile *p = empty_profile(400);
	struct bytes b, want = { 0 };
	uint32_t exe = add_mapping(p, 0x400000, 0x500000, 0x1000, "/bin/prog");
	uint32_t frames[] = { add_location(p, 0x400010, exe), add_location(p, 0x40001f, exe) };
	uint32_t none = add_labels(p, 0, 0, "", false);

	(void)state;
	add_sample(p, frames, 2, none, 3);
	add_sample(p, frames, 1, none, 1);
	add_sample(p, frames + 1, 1, none, 0);
	b = write_bytes(gperftools, p);
	SLOTS(&want, 0, 3, 0, 1, 0, 3, 2, 0x400010, 0x400020, 1, 1, 0x400010, TRAILER);
	bytes_add_text(&want,
		       "00400000-00500000 r-xp 00001000 00:00 0                     /bin/prog"
		       "\n");
	assert_int_equal(b.size, want.size);
	assert_memory_equal(b.start, want.start, want.size);
	bytes_free(&b);
	bytes_free(&want);
	profile_free(p);
}

/* What go's pprof and google-pprof would make of our records. */
struct reader_view {
	size_t records;
	size_t most_with_same_second;
};

static void add_second(uint64_t *seconds, size_t *counts, size_t *used, uint64_t pc)
{
	size_t i = 0;

	while (i < *used && seconds[i] != pc)
		i++;
	if (i == *used)
		counts[(*used)++] = 0;
	seconds[i] = pc;
	counts[i]++;
}

static struct reader_view view_records(const struct bytes *b)
{
	const uint64_t *slots = (const uint64_t *)b->start;
	struct reader_view view = { 0 };
	uint64_t seconds[1024];
	size_t counts[1024], used = 0;

	for (size_t i = 5; slots[i] != 0; i += 2 + slots[i + 1]) {
		assert_true(slots[i + 1] >= 1 && slots[i + 1] <= 254);
		for (size_t j = 0; j < slots[i + 1]; j++)
			assert_true(slots[i + 2 + j] != 0);
		view.records++;
		if (slots[i + 1] > 1)
			add_second(seconds, counts, &used, slots[i + 3]);
	}
	for (size_t i = 0; i < used; i++)
		if (counts[i] > view.most_with_same_second)
			view.most_with_same_second = counts[i];
	return view;
}

/* n stacks with leaves of their own and one caller, and `others` with another. */
static struct profile *hot_caller(uint32_t n, uint32_t others, int64_t count)
{
	struct profile *p = empty_profile(1000000);
	uint32_t none = add_labels(p, 0, 0, "", false);
	uint32_t exe = add_mapping(p, 0x400000, 0x500000, 0, "/bin/prog");

	for (uint32_t i = 0; i < n + others; i++) {
		uint32_t frames[] = {
			add_location(p, 0x400000 + 16 * (i + 1), exe),
			add_location(p, i < n ? 0x410000 : 0x420000 + i, exe),
			add_location(p, 0x430000, exe),
		};

		add_sample(p, frames, 3, none, count);
	}
	return p;
}

static void callers_are_guarded(void **state)
{
	(void)state;
	for (uint32_t n = 1; n < 200; n++) {
		for (uint32_t others = 0; others < 5; others++) {
			struct profile *p = hot_caller(n, others, 2);
			struct bytes b = write_bytes(gperftools, p);
			struct reader_view view = view_records(&b);

			if (n + others > 1)
				assert_int_equal(view.records, n + others);
			assert_true(view.most_with_same_second < view.records - view.records / 32);
			bytes_free(&b);
			profile_free(p);
		}
	}
}

static void only_stack_is_split(void **state)
{
	struct profile *p = hot_caller(1, 0, 10);
	struct bytes b = write_bytes(gperftools, p), want = { 0 };

	(void)state;
	SLOTS(&want, 0, 3, 0, 1000, 0, 9, 3, 0x400010, 0x410001, 0x430001, 1, 4, 0x400010, 0x400010,
	      0x410001, 0x430001, TRAILER);
	assert_memory_equal(b.start, want.start, want.size);
	profile_free(p);
	bytes_free(&b);
	bytes_free(&want);
	/* A single tick cannot be split: two passes of go's pprof leave the caller. */
	p = hot_caller(1, 0, 1);
	b = write_bytes(gperftools, p);
	SLOTS(&want, 0, 3, 0, 1000, 0, 1, 5, 0x400010, 0x400010, 0x400010, 0x410001, 0x430001,
	      TRAILER);
	assert_memory_equal(b.start, want.start, want.size);
	profile_free(p);
	bytes_free(&b);
	bytes_free(&want);
}

static void deep_stacks_are_cut_at_the_root(void **state)
{
	struct profile *p = empty_profile(1000000), *q;
	uint32_t none = add_labels(p, 0, 0, "", false);
	uint32_t frames[300];
	struct bytes b;

	(void)state;
	for (uint32_t i = 0; i < 300; i++)
		frames[i] = add_location(p, 0x1000 + i, PROFILE_NONE);
	add_sample(p, frames, 300, none, 5);
	add_sample(p, frames, 1, none, 5);
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->samples[0].depth, 254);
	assert_int_equal(q->locations[q->frames[0]].address, 0x1000);
	assert_int_equal(q->locations[q->frames[253]].address, 0x1000 + 253);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static void big_counts_are_split(void **state)
{
	struct profile *p = small_profile(), *q;
	struct bytes b;

	(void)state;
	p->bits = 32;
	p->values[2 * 2] = 3LL * UINT32_MAX + 5;
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->bits, 32);
	assert_true(q->values[2] == 3LL * UINT32_MAX + 5);
	profile_free(q);
	bytes_free(&b);
	/* So many records help nobody. */
	p->values[2 * 2] = INT64_MAX;
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->bits, 64);
	assert_true(q->values[2] == INT64_MAX);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static void zero_pcs_are_not_written(void **state)
{
	struct profile *p = empty_profile(1000000), *q;
	uint32_t none = add_labels(p, 0, 0, "", false);
	uint32_t f[] = { add_location(p, 0, PROFILE_NONE), add_location(p, 0x1000, PROFILE_NONE),
			 add_location(p, UINT64_MAX, PROFILE_NONE) };
	struct bytes b;

	(void)state;
	p->bits = 32;
	add_sample(p, f, 3, none, 2);
	add_sample(p, f, 1, none, 2);
	add_sample(p, f + 1, 2, none, 3);
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->bits, 32);
	assert_int_equal(q->sample_count, 1);
	assert_int_equal(q->values[0], 5);
	assert_int_equal(q->locations[0].address, 0x1000);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static void kernel_has_a_map_line(void **state)
{
	struct profile *p = small_profile(), *q;
	uint32_t kernel =
		add_mapping(p, 0xffffffff81000000, 0xffffffff82000000, 0, "[kernel.kallsyms]");
	uint32_t frame = add_location(p, 0xffffffff81000100, kernel);
	struct bytes b;

	(void)state;
	add_sample(p, &frame, 1, 0, 2);
	b = write_bytes(gperftools, p);
	assert_non_null(memmem(b.start, b.size, " [kernel.kallsyms]_text\n", 24));
	q = read_good(gperftools, &b);
	assert_int_equal(q->mapping_count, 3);
	assert_string_equal(q->images[2].path, "[kernel.kallsyms]");
	profile_free(q);
	bytes_free(&b);
	/* Below 4 GiB, when the program is of 32 bits. */
	p->bits = 32;
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->bits, 32);
	assert_true(q->mappings[2].limit <= 1ULL << 32);
	assert_int_equal(q->mappings[q->locations[4].mapping].start, q->mappings[2].start);
	assert_int_equal(q->locations[4].address, q->mappings[2].start + 0x100);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static void narrow_slots_give_way(void **state)
{
	struct profile *p = small_profile(), *q;
	uint32_t frame = add_location(p, 0x123456789a, PROFILE_NONE);
	struct bytes b;

	(void)state;
	p->bits = 32;
	add_sample(p, &frame, 1, 0, 2);
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->bits, 64);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static void newline_in_a_path(void **state)
{
	struct profile *p = empty_profile(1000000), *q;
	struct bytes b;

	(void)state;
	add_mapping(p, 0x1000, 0x2000, 0, "/a\nb");
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->mapping_count, 1);
	assert_string_equal(q->images[0].path, "/a\\012b");
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

/* Each mapping has a place of its own, and each copy its original's. */
static void assert_no_overlap(const struct address_space *s)
{
	const struct profile *p = s->p;

	for (size_t i = 0; i < p->mapping_count; i++) {
		uint64_t size = p->mappings[i].limit - p->mappings[i].start;

		assert_int_equal(s->start[i], s->start[s->home[i]]);
		for (size_t j = 0; j < i; j++)
			if (s->home[i] != s->home[j])
				assert_true(s->start[i] + size <= s->start[j] ||
					    s->start[j] + (p->mappings[j].limit -
							   p->mappings[j].start) <=
						    s->start[i]);
	}
}

static void mappings_that_overlap_move(void **state)
{
	struct profile *p = empty_profile(1000000);
	struct address_space s;

	(void)state;
	add_mapping(p, 0x400000, 0x500000, 0, "/bin/a");
	add_mapping(p, 0x7f0000000, 0x7f0010000, 0, "/lib/c");
	add_mapping(p, 0x480000, 0x580000, 0, "/bin/b");
	add_mapping(p, 0x7e0000000, 0x7e0010000, 0, "/lib/c");
	add_mapping(p, 0x900000, 0x910000, 0, "[anon]");
	add_mapping(p, 0xa00000, 0xa10000, 0, "[anon]");
	add_mapping(p, 0x500000, 0x501000, 0, "/bin/next");
	add_mapping(p, 0x900000, 0x910000, 0, "[anon]");
	for (unsigned int bits = 32; bits <= 64; bits += 32) {
		assert_int_equal(address_space_init(&s, p, bits), 0);
		assert_no_overlap(&s);
		assert_int_equal(s.start[0], 0x400000);
		assert_int_equal(s.home[2], 2);
		assert_true(s.start[2] != 0x480000);
		assert_int_equal(s.home[3], 1);
		assert_int_equal(s.home[5], 5);
		assert_int_equal(s.start[5], 0xa00000);
		assert_int_equal(s.start[6], 0x500000);
		assert_int_equal(s.home[7], 4);
		if (bits == 64)
			assert_true(s.start[1] == 0x7f0000000);
		else
			for (size_t i = 0; i < p->mapping_count; i++)
				assert_true(s.start[i] + 0x100000 <= 1ULL << 32);
		address_space_free(&s);
	}
	profile_free(p);
}

static void addresses_move_with_their_mapping(void **state)
{
	struct profile *p = empty_profile(1000000);
	uint32_t other, lost;
	struct address_space s;

	(void)state;
	add_mapping(p, 0x400000, 0x500000, 0, "/bin/a");
	other = add_location(p, 0x400123, add_mapping(p, 0x400000, 0x410000, 0, "/bin/b"));
	lost = add_location(p, 0x400123, PROFILE_NONE);
	assert_int_equal(address_space_init(&s, p, 64), 0);
	assert_int_equal(address_space_address(&s, other), s.start[1] + 0x123);
	/* It would have a name that is not its own. */
	assert_true(address_space_address(&s, lost) == (0x400123 | 1ULL << 62));
	address_space_free(&s);
	profile_free(p);
}

static void address_space_is_too_small(void **state)
{
	struct profile *p = empty_profile(1000000);
	struct address_space s;

	(void)state;
	add_mapping(p, 0x10000000, 0xd0000000, 0, "/a");
	add_mapping(p, 0x10000000, 0xd0000001, 0, "/b");
	assert_int_equal(address_space_init(&s, p, 32), -ENOSPC);
	assert_int_equal(address_space_init(&s, p, 64), 0);
	assert_no_overlap(&s);
	address_space_free(&s);
	/* A map of everything, which go's pprof makes up when there is none, cannot move. */
	add_mapping(p, 0, UINT64_MAX, 0, "/all");
	add_mapping(p, 5, 5, 0, "/nothing");
	assert_int_equal(address_space_init(&s, p, 64), 0);
	assert_int_equal(s.start[2], 0);
	assert_int_equal(s.start[3], 5);
	address_space_free(&s);
	profile_free(p);
}

static void many_mappings(void **state)
{
	struct profile *p = empty_profile(1000000);
	struct address_space s;
	uint64_t random = 1;

	(void)state;
	for (int i = 0; i < 400; i++) {
		char path[32];

		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		snprintf(path, sizeof(path), "/bin/%d", i % 300);
		add_mapping(p, random >> 40 << 12,
			    (random >> 40 << 12) + ((random & 0xff) << 12) + 0x1000, 0, path);
	}
	assert_int_equal(address_space_init(&s, p, 64), 0);
	assert_no_overlap(&s);
	address_space_free(&s);
	profile_free(p);
}

static void two_processes(void **state)
{
	struct profile *p = small_profile(), *q;
	uint32_t other = add_mapping(p, 0x400000, 0x480000, 0, "/bin/other");
	uint32_t again = add_mapping(p, 0x10400000, 0x10500000, 0x1000, "/bin/prog");
	uint32_t frames[] = { add_location(p, 0x400100, other),
			      add_location(p, 0x10400100, again) };
	struct bytes b;

	(void)state;
	add_sample(p, frames, 1, 0, 20);
	add_sample(p, frames + 1, 1, 0, 30);
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->mapping_count, 3);
	assert_int_equal(q->sample_count, 5);
	assert_int_equal(q->values[2 * 3], 20);
	assert_string_equal(profile_location_image(q, q->frames[q->samples[3].first_frame])->path,
			    "/bin/other");
	assert_int_equal(q->locations[q->frames[q->samples[4].first_frame]].address, 0x400100);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static void survive_anything(void **state)
{
	struct bytes java = { 0 };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct profile *p = small_profile();
		struct bytes b;

		p->bits = i & 1 ? 32 : 64;
		p->big_endian = i & 2;
		b = write_bytes(gperftools, p);
		survive_truncation(gperftools, &b);
		survive_bit_flips(gperftools, &b);
		bytes_free(&b);
		profile_free(p);
	}
	SLOTS(&java, 0, 3, 1, 10000, 0, 2, 3, 5, 6, 7, TRAILER);
	bytes_add_text(&java, "0x5 VM\n 0x6 f(int) (source.java:06)\n1-2 /x (@5) 0a\nbuild=/b\n"
			      "a.cc:1] 5-6: $build/x (deleted)\n");
	survive_truncation(gperftools, &java);
	survive_bit_flips(gperftools, &java);
	bytes_free(&java);
}

/* Files of real writers and hand-made ones, with what other readers found in them. */
static const struct {
	const char *name;
	uint64_t samples;
	size_t stacks;
	size_t mappings; /* that hold code */
	uint32_t depth;	 /* of the deepest stack */
	unsigned int bits;
	bool big_endian;
	const char *warning;
	const char *error;
} files[] = {
	{ "gperftools/slots/bad-leading-space-procmap.prof", 0, 0, 0, 0, 64, false, "blank", NULL },
	{ "gperftools/slots/bad-no-maps.prof", 0, 0, 0, 0, 64, false, "no map", NULL },
	{ "gperftools/slots/bad-not-enough-data.prof", 0, 0, 0, 0, 64, false, "trailer", NULL },
	{ "gperftools/slots/bad-num_pcs-0.prof", 1, 1, 1, 0, 64, false, "no pc", NULL },
	{ "gperftools/slots/bad-padding.prof", 0, 0, 1, 0, 64, false, "padding", NULL },
	{ "gperftools/slots/bad-truncated-sample.prof", 0, 0, 0, 0, 0, false, NULL,
	  "at byte 40: a record of 5000 pcs" },
	{ "gperftools/slots/bad-version.prof", 0, 0, 0, 0, 0, false, NULL, "version 9" },
	{ "gperftools/slots/ok-CollectTwoFlush.prof", 2, 1, 1, 5, 64, false, NULL, NULL },
	{ "gperftools/slots/ok-StartStopEmpty.prof", 0, 0, 1, 0, 64, false, NULL, NULL },
	{ "gperftools/slots/ok-build-line.prof", 0, 0, 1, 0, 64, false, NULL, NULL },
	{ "gperftools/variants/01-basic.prof", 16, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/variants/03-hdrwords5-nonzero.prof", 16, 4, 2, 5, 64, false, "2 more words",
	  NULL },
	{ "gperftools/variants/05-version1.prof", 16, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/variants/07-pad-nonzero.prof", 16, 4, 2, 5, 64, false, "padding", NULL },
	{ "gperftools/variants/09-no-trailer-maps.prof", 16, 4, 2, 5, 64, false, "trailer", NULL },
	{ "gperftools/variants/11-zero-pc-first-midfile.prof", 20, 5, 2, 5, 64, false, "are 0",
	  NULL },
	{ "gperftools/variants/13-num-pcs-0.prof", 20, 5, 2, 5, 64, false, "no pc", NULL },
	{ "gperftools/variants/15-dup-records.prof", 32, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/variants/17-dup-leaf.prof", 16, 4, 2, 6, 64, false, NULL, NULL },
	{ "gperftools/variants/19-single-record-3deep.prof", 10, 1, 2, 3, 64, false, NULL, NULL },
	{ "gperftools/variants/21-depth-70000.prof", 18, 5, 2, 70000, 64, false, NULL, NULL },
	{ "gperftools/variants/23-pc-max.prof", 25, 5, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/variants/25-build-two-last-wins.prof", 16, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/variants/27-garbage-lines.prof", 16, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/variants/29-space-in-path.prof", 16, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/variants/31-uppercase-hex.prof", 16, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/variants/33-crlf.prof", 16, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/variants/35-be64.prof", 16, 4, 2, 5, 64, true, NULL, NULL },
	{ "gperftools/variants/37-be32.prof", 16, 4, 2, 5, 32, true, NULL, NULL },
	{ "gperftools/variants/39-adjacent-split-maps.prof", 16, 4, 1, 5, 64, false, NULL, NULL },
	{ "gperftools/variants/41-vmmap-other-first.prof", 16, 4, 3, 5, 64, false, NULL, NULL },
	{ "gperftools/variants/43-header-only.prof", 0, 0, 0, 0, 64, false, "trailer", NULL },
	{ "gperftools/variants/45-build-libs.prof", 17, 5, 5, 5, 64, false, NULL, NULL },
	{ "gperftools/variants/47-same-second-plus-dupleaf.prof", 12, 3, 2, 4, 64, false, NULL,
	  NULL },
	{ "gperftools/variants/49-kernel-map.prof", 25, 5, 3, 5, 64, false, NULL, NULL },
	{ "gperftools/real/work-pie.prof", 498, 69, 11, 11, 64, false, NULL, NULL },
	{ "gperftools/cppbench.cpu", 712, 50, 12, 18, 64, false, NULL, NULL },
	{ "gperftools/gobench.cpu", 305, 153, 0, 17, 64, false, "no map", NULL },
	{ "gperftools/java.cpu", 7, 8, 0, 25, 32, false, "count of 0", NULL },
	{ "pprof/cppbench.cpu.pb", 712, 50, 12, 18, 64, false, NULL, NULL },
	{ "pprof/gobench.cpu.pb", 305, 153, 0, 17, 64, false, "no map", NULL },
};

static void check_file(size_t i, const struct profile *p)
{
	uint32_t depth = 0;

	for (size_t j = 0; j < p->sample_count; j++)
		if (depth < p->samples[j].depth)
			depth = p->samples[j].depth;
	assert_string_equal(p->format, "gperftools");
	assert_int_equal(profile_total(p), files[i].samples);
	assert_int_equal(p->sample_count, files[i].stacks);
	assert_int_equal(p->mapping_count, files[i].mappings);
	assert_int_equal(depth, files[i].depth);
	assert_int_equal(p->bits, files[i].bits);
	assert_int_equal(p->big_endian, files[i].big_endian);
	if (files[i].warning)
		assert_warned(p, files[i].warning);
	else
		assert_int_equal(p->warning_count, 0);
}

static void files_of_others(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		char *path = data_path(files[i].name);
		struct profile *p = NULL;
		struct error e = { 0 };
		int err;

		/* Not skip(): cmocka 1.1.5 prints that as a failure. */
		if (!path) {
			print_message("# no PROFIL_TEST_DATA: not done\n");
			return;
		}
		err = format_read(path, &p, &e);
		free(path);
		if (files[i].error) {
			assert_true(err < 0);
			assert_non_null(strstr(e.what, files[i].error));
			continue;
		}
		if (err)
			fail_msg("%s", e.what);
		print_message("# %s\n", files[i].name);
		check_file(i, p);
		profile_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_widths_and_orders),
		cmocka_unit_test(overlook),
		cmocka_unit_test(reject),
		cmocka_unit_test(reject_symbolized),
		cmocka_unit_test(zero_pcs_stay),
		cmocka_unit_test(repeated_stacks_are_summed),
		cmocka_unit_test(period_saturates),
		cmocka_unit_test(read_map_lines),
		cmocka_unit_test(unknown_lines_are_comments),
		cmocka_unit_test(build_does_not_explode),
		cmocka_unit_test(read_java),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(written_bytes),
		cmocka_unit_test(callers_are_guarded),
		cmocka_unit_test(only_stack_is_split),
		cmocka_unit_test(deep_stacks_are_cut_at_the_root),
		cmocka_unit_test(big_counts_are_split),
		cmocka_unit_test(zero_pcs_are_not_written),
		cmocka_unit_test(kernel_has_a_map_line),
		cmocka_unit_test(narrow_slots_give_way),
		cmocka_unit_test(newline_in_a_path),
		cmocka_unit_test(mappings_that_overlap_move),
		cmocka_unit_test(addresses_move_with_their_mapping),
		cmocka_unit_test(address_space_is_too_small),
		cmocka_unit_test(many_mappings),
		cmocka_unit_test(two_processes),
		cmocka_unit_test(survive_anything),
		cmocka_unit_test(files_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
