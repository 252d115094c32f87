// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "gperftools_fixture.h"

#include <errno.h>

static const struct format *const gperftools = &format_gperftools;

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
		assert_int_equal(profile_tick_ns(p), 10000000);
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

/* A file of slots and text, and its warning (NULL: none) or error. */
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

static void accept_with_warning(void **state)
{
	(void)state;
	CHECK(MAP, NULL, NULL, HEADER, TRAILER);
	CHECK(MAP, "2 unknown words", NULL, 0, 5, 0, 10000, 0, 8, 9, TRAILER);
	CHECK(MAP, "padding", NULL, 0, 3, 0, 10000, 1, TRAILER);
	CHECK(MAP, "period of 0", NULL, 0, 3, 0, 0, 0, TRAILER);
	CHECK("", "no memory map", NULL, HEADER, TRAILER);
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
	CHECK("", NULL, "bytes is truncated", 0, 3, 0);
	CHECK("", NULL, "bytes is truncated", 0, 65535, 0, 0, 0);
	CHECK("", NULL, "not of this format", 0, 2, 0, 10000, 0);
	CHECK("", NULL, "not of this format", 1, 3, 0, 10000, 0);
	CHECK("", NULL, "at byte 40: the file ends within", HEADER, 1);
	CHECK("xx", NULL, "at byte 64: the file ends within", HEADER, 1, 1, 5);
	CHECK("", NULL, "at byte 40: a record of 3 pcs, but the rest of the file has 1", HEADER, 1,
	      3, 0x400010);
	CHECK("", NULL, "at byte 64: a record of 18446744073709551615 pcs", HEADER, 1, 1, 0x400010,
	      1, UINT64_MAX, 0x400010);
	/* Text that is not a map does not replace a missing trailer. */
	CHECK("once upon a time there was\n", NULL, "at byte 40", HEADER);
}

#define SYMBOLS                                                                       \
	"%warn of something\r\n--- symbol\nbinary=/bin/prog\n"                        \
	"0x0000000000400010 leaf<0000000000400000>\n0x0040001f out--operator----in\n" \
	"0x400030 0x400030\n0x400040 ??\nanything\n\n---\n"

/* Appends slots with the text around them of a symbolized file. */
static struct bytes symbolized(const char *symbols, const uint64_t *slots, size_t count,
			       const char *map)
{
	struct bytes b = { 0 };

	bytes_add_text(&b, symbols);
	bytes_add_text(&b, "--- profile\n");
	add_slots(&b, 64, false, slots, count);
	bytes_add_text(&b, map);
	return b;
}

static const char *line_name(const struct profile *p, uint32_t location, uint32_t line)
{
	return p->functions[p->lines[p->locations[location].first_line + line].function].name;
}

static void read_symbolized(void **state)
{
	static const uint64_t slots[] = { 0,	    3,	      0,	1, 0, 7,       3,
					  0x400010, 0x40001f, 0x400030, 2, 1, 0x400040 };
	struct bytes b = symbolized(SYMBOLS, slots, sizeof(slots) / sizeof(*slots), "");
	struct profile *p = read_good(gperftools, &b);
	const uint32_t *f = p->frames;

	(void)state;
	assert_int_equal(p->sample_count, 2);
	assert_int_equal(p->value_type_count, 1);
	assert_int_equal(profile_tick_ns(p), 0);
	assert_string_equal(p->command, "/bin/prog");
	assert_int_equal(p->comment_count, 1);
	assert_string_equal(p->comments[0], "%warn of something");
	assert_int_equal(p->warning_count, 1);
	assert_warned(p, "is invalid and is ignored");
	assert_int_equal(p->locations[f[1]].address, 0x40001f);
	assert_int_equal(p->locations[f[0]].line_count, 1);
	assert_string_equal(line_name(p, f[0], 0), "leaf");
	assert_int_equal(p->locations[f[1]].line_count, 3);
	assert_string_equal(line_name(p, f[1], 0), "in");
	assert_string_equal(line_name(p, f[1], 1), "operator--");
	assert_string_equal(line_name(p, f[1], 2), "out");
	assert_int_equal(p->locations[f[2]].line_count, 0);
	assert_int_equal(p->locations[f[3]].line_count, 0);
	profile_free(p);
	bytes_free(&b);
}

/* The reply of a server, with names: return addresses, the true period, and a map. */
static void read_symbolized_from_server(void **state)
{
	static const uint64_t slots[] = { HEADER, 7, 2, 0x400010, 0x400020, TRAILER };
	struct bytes b = symbolized(SYMBOLS, slots, sizeof(slots) / sizeof(*slots), MAP);
	struct profile *p = read_good(gperftools, &b);

	(void)state;
	assert_int_equal(profile_tick_ns(p), 10000000);
	assert_int_equal(p->value_type_count, 2);
	assert_int_equal(p->locations[p->frames[1]].address, 0x40001f);
	assert_int_equal(p->locations[p->frames[1]].line_count, 3);
	assert_int_equal(p->locations[p->frames[1]].mapping, 0);
	assert_int_equal(p->locations[p->frames[1]].image_address, 0x101f);
	profile_free(p);
	bytes_free(&b);
}

/* Without names it is a usual file. */
static void read_marked(void **state)
{
	static const uint64_t slots[] = { HEADER, 7, 2, 0x400010, 0x400020, TRAILER };
	struct bytes b = symbolized("", slots, sizeof(slots) / sizeof(*slots), MAP);
	struct profile *p = read_good(gperftools, &b);

	(void)state;
	assert_true(p->return_addresses);
	assert_int_equal(p->locations[p->frames[1]].address, 0x40001f);
	assert_int_equal(p->warning_count, 0);
	profile_free(p);
	bytes_free(&b);
}

static void reject_text(const char *text, const char *error)
{
	struct bytes b = { 0 };

	bytes_add_text(&b, text);
	read_bad(gperftools, &b, error);
	bytes_free(&b);
}

static void reject_symbolized(void **state)
{
	(void)state;
	reject_text("--- symbol", "input:1: the file ends before \"--- profile\"");
	reject_text("--- symbol\n0x1 f\n", "input:2: the file ends before \"--- profile\"");
	reject_text("--- symbol\n0x1 f\n---\n%x\n",
		    "input:4: the file ends before \"--- profile\"");
	reject_text("--- symbol\n---\n--- heap\nheap profile: 1: 2 [3: 4] @ heapprofile\n",
		    "input:3: \"--- heap\" where \"--- profile\" is expected");
	reject_text("--- symbol\n---\n--- profile\nheap profile: 1: 2 [3: 4] @ heapprofile\n",
		    "at byte 27: no CPU profile follows");
	reject_text("--- symbol\n---\n--- profile\n", "at byte 27: no CPU profile follows");
	reject_text("%!PS\n", "not of this format");
	reject_text("%!PS", "not of this format");
}

/* The first record is kept complete, whatever the damage to the next. */
static void salvage(void **state)
{
	struct input_options options = { .salvage = true };
	struct profile *p;
	struct bytes b = { 0 };
	struct error e = { 0 };
	char *path;

	(void)state;
	SLOTS(&b, HEADER, 7, 2, 0x400010, 0x400020, 5, 1ULL << 61, 0x400030);
	bytes_add_text(&b, MAP);
	assert_int_equal(read_file(&b, &p, &e), -EINVAL);
	assert_non_null(strstr(e.what, "at byte 72: a record of 2305843009213693952 pcs, but "
				       "the rest of the file has 8"));
	path = temporary_file(b.start, b.size);
	assert_int_equal(format_read(path, &options, &p, &e), 0);
	assert_warned(p, "salvaged");
	assert_int_equal(p->sample_count, 1);
	assert_int_equal(p->samples[0].depth, 2);
	assert_int_equal(p->values[0], 7);
	assert_int_equal(p->location_count, 2);
	profile_free(p);
	unlink(path);
	free(path);
	bytes_free(&b);
}

/* 800 KB of records of three stacks of that depth. */
static uint64_t add_records(struct bytes *b, uint64_t depth)
{
	uint64_t records = 100000 / (2 + depth) + 3, *slot;
	uint64_t *slots = slot = calloc(records * (2 + depth), sizeof(*slots));

	assert_non_null(slots);
	for (uint64_t i = 0; i < records; i++) {
		*slot++ = 1;
		*slot++ = depth;
		for (uint64_t j = 0; j < depth; j++)
			*slot++ = 0x400010 + 0x10 * (i % 3 + j);
	}
	add_slots(b, 64, false, slots, slot - slots);
	free(slots);
	return records;
}

/* Records, text and a missing trailer across the borders of the parts in which a file is read. */
static void read_in_parts(void **state)
{
	(void)state;
	for (uint32_t depth = 1; depth < 40000; depth = depth * 5 + 1) {
		struct bytes b = { 0 };
		struct profile *p;
		uint64_t records;

		SLOTS(&b, HEADER);
		records = add_records(&b, depth);
		if (depth % 2)
			SLOTS(&b, TRAILER);
		bytes_add_text(&b, MAP);
		p = read_file_good(&b);
		assert_int_equal(profile_total(p, NULL), records);
		assert_int_equal(p->sample_count, 3);
		assert_int_equal(p->samples[2].depth, depth);
		assert_int_equal(p->mapping_count, 1);
		assert_int_equal(p->locations[p->frames[depth - 1]].mapping, 0);
		assert_int_equal(p->warning_count, depth % 2 ? 0 : 1);
		profile_free(p);
		bytes_free(&b);
	}
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
	assert_true(profile_tick_ns(p) == UINT64_MAX);
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

/* A small file must not make the reader allocate much memory. */
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

static void survive_anything(void **state)
{
	static const uint64_t slots[] = { HEADER, 7, 2, 0x400010, 0x400020, TRAILER };
	struct bytes names = symbolized(SYMBOLS, slots, sizeof(slots) / sizeof(*slots), MAP);
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
	survive_truncation(gperftools, &names);
	survive_bit_flips(gperftools, &names);
	bytes_free(&names);
}

/* A file, and the results of other readers. */
struct known_file {
	const char *name;
	uint64_t samples;
	size_t stacks;
	size_t mappings; /* that contain code */
	uint32_t depth;	 /* of the deepest stack */
	unsigned int bits;
	bool big_endian;
	const char *warning;
	const char *error;
};

/* Our own files, as unusual as those of other writers can be. */
static const struct known_file files[] = {
	{ "gperftools/strict/bad-blank-before-map.prof", 0, 0, 0, 0, 64, false, "blank", NULL },
	{ "gperftools/strict/bad-no-maps.prof", 0, 0, 0, 0, 64, false, "no memory map", NULL },
	{ "gperftools/strict/bad-no-trailer.prof", 0, 0, 0, 0, 64, false, "trailer", NULL },
	{ "gperftools/strict/bad-no-pcs.prof", 1, 1, 1, 0, 64, false, "no pc", NULL },
	{ "gperftools/strict/bad-padding.prof", 0, 0, 1, 0, 64, false, "padding", NULL },
	{ "gperftools/strict/bad-cut-record.prof", 0, 0, 0, 0, 0, false, NULL,
	  "at byte 40: a record of 5000 pcs" },
	{ "gperftools/strict/bad-version.prof", 0, 0, 0, 0, 0, false, NULL, "version 9" },
	{ "gperftools/strict/ok-same-stack-twice.prof", 2, 1, 1, 5, 64, false, NULL, NULL },
	{ "gperftools/strict/ok-no-samples.prof", 0, 0, 1, 0, 64, false, NULL, NULL },
	{ "gperftools/strict/ok-build-line.prof", 0, 0, 1, 0, 64, false, NULL, NULL },
	{ "gperftools/basic.prof", 16, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/hdrwords5-nonzero.prof", 16, 4, 2, 5, 64, false, "2 unknown words", NULL },
	{ "gperftools/version1.prof", 16, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/pad-nonzero.prof", 16, 4, 2, 5, 64, false, "padding", NULL },
	{ "gperftools/no-trailer-maps.prof", 16, 4, 2, 5, 64, false, "trailer", NULL },
	{ "gperftools/zero-pc-first-midfile.prof", 20, 5, 2, 5, 64, false, "are 0", NULL },
	{ "gperftools/num-pcs-0.prof", 20, 5, 2, 5, 64, false, "no pc", NULL },
	{ "gperftools/dup-records.prof", 32, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/dup-leaf.prof", 16, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/single-record-3deep.prof", 10, 1, 2, 3, 64, false, NULL, NULL },
	{ "gperftools/depth-70000.prof.gz", 18, 5, 2, 70000, 64, false, NULL, NULL },
	{ "gperftools/pc-max.prof", 25, 5, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/build-two-last-wins.prof", 16, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/garbage-lines.prof", 16, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/space-in-path.prof", 16, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/uppercase-hex.prof", 16, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/crlf.prof", 16, 4, 2, 5, 64, false, NULL, NULL },
	{ "gperftools/be64.prof", 16, 4, 2, 5, 64, true, NULL, NULL },
	{ "gperftools/be32.prof", 16, 4, 2, 5, 32, true, NULL, NULL },
	{ "gperftools/adjacent-split-maps.prof", 16, 4, 1, 5, 64, false, NULL, NULL },
	{ "gperftools/vmmap-other-first.prof", 16, 4, 3, 5, 64, false, NULL, NULL },
	{ "gperftools/header-only.prof", 0, 0, 0, 0, 64, false, "trailer", NULL },
	{ "gperftools/build-libs.prof", 17, 5, 5, 5, 64, false, NULL, NULL },
	{ "gperftools/repeated-caller.prof", 12, 3, 2, 3, 64, false, NULL, NULL },
	{ "gperftools/kernel-map.prof", 25, 5, 3, 5, 64, false, NULL, NULL },
};

/* Files of writers that are no longer in use: see tests/data/README.md. */
static const struct known_file files_of_others[] = {
	{ "gperftools/cppbench.cpu", 712, 50, 12, 18, 64, false, NULL, NULL },
	{ "gperftools/gobench.cpu", 305, 153, 0, 17, 64, false, "no memory map", NULL },
	{ "gperftools/java.cpu", 7, 8, 0, 25, 32, false, "count of 0", NULL },
};

static void check_profile(const struct known_file *file, const struct profile *p)
{
	uint32_t depth = 0;

	for (size_t j = 0; j < p->sample_count; j++)
		if (depth < p->samples[j].depth)
			depth = p->samples[j].depth;
	assert_string_equal(p->format, "gperftools");
	assert_int_equal(profile_total(p, NULL), file->samples);
	assert_int_equal(p->sample_count, file->stacks);
	assert_int_equal(p->mapping_count, file->mappings);
	assert_int_equal(depth, file->depth);
	assert_int_equal(p->bits, file->bits);
	assert_int_equal(p->big_endian, file->big_endian);
	if (file->warning)
		assert_warned(p, file->warning);
	else
		assert_int_equal(p->warning_count, 0);
}

static void check_file(const struct known_file *file, const char *path)
{
	struct profile *p = NULL;
	struct error e = { 0 };
	int err = format_read(path, NULL, &p, &e);

	print_message("# %s\n", file->name);
	if (file->error) {
		assert_true(err < 0);
		assert_non_null(strstr(e.what, file->error));
		return;
	}
	if (err)
		fail_msg("%s", e.what);
	check_profile(file, p);
	profile_free(p);
}

static void read_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		char *path = data_path(files[i].name);

		check_file(&files[i], path);
		free(path);
	}
}

static void read_files_of_others(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(files_of_others) / sizeof(*files_of_others); i++) {
		char *path = others_path(files_of_others[i].name);

		if (!path) {
			print_message("# PROFIL_TEST_DATA names no directory with %s\n",
				      files_of_others[i].name);
			skip();
			return;
		}
		check_file(&files_of_others[i], path);
		free(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_widths_and_orders),
		cmocka_unit_test(accept_with_warning),
		cmocka_unit_test(reject),
		cmocka_unit_test(read_symbolized),
		cmocka_unit_test(read_symbolized_from_server),
		cmocka_unit_test(read_marked),
		cmocka_unit_test(reject_symbolized),
		cmocka_unit_test(salvage),
		cmocka_unit_test(read_in_parts),
		cmocka_unit_test(zero_pcs_stay),
		cmocka_unit_test(repeated_stacks_are_summed),
		cmocka_unit_test(period_saturates),
		cmocka_unit_test(read_map_lines),
		cmocka_unit_test(unknown_lines_are_comments),
		cmocka_unit_test(build_does_not_explode),
		cmocka_unit_test(read_java),
		cmocka_unit_test(survive_anything),
		cmocka_unit_test(read_files),
		cmocka_unit_test(read_files_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
