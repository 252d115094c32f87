// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pprof_fixture.h"

static void read_any_order(void **state)
{
	struct bytes b = small_file();
	struct profile *p;

	(void)state;
	add_strings(&b);
	p = read_good(pprof, &b);
	assert_int_equal(p->value_type_count, 2);
	assert_string_equal(p->value_types[1].type, "cpu");
	assert_int_equal(profile_tick_ns(p), 10);
	assert_int_equal(p->sample_count, 1);
	assert_int_equal(p->samples[0].depth, 2);
	assert_int_equal(p->values[1], 70);
	assert_int_equal(p->locations[0].address, 0x401000);
	assert_int_equal(p->mappings[0].offset, 0x1000);
	assert_string_equal(p->images[0].path, "/bin/a");
	assert_int_equal(p->images[0].build_id_size, 2);
	assert_int_equal(p->images[0].build_id[1], 0xff);
	assert_int_equal(p->bits, 64);
	assert_false(p->return_addresses);
	assert_false(p->totals.known);
	profile_free(p);
	bytes_free(&b);
}

static void read_packed_and_unknown(void **state)
{
	/* location_id and value packed, as by most writers; unknown fields */
	static const uint8_t sample[] = {
		2 << 3 | 2, 8, 1 << 3 | 2, 2, 40, 40, 2 << 3 | 2, 2, 9, 90
	};
	static const uint8_t comments[] = { 13 << 3 | 2, 2, 5, 6 };
	static const uint8_t unknown[] = { 0xa0, 1, 5,	  0xa2, 1, 2, 0, 0, 0xa5, 1, 1, 2,
					   3,	 4, 0xa1, 1,	1, 2, 3, 4, 5,	  6, 7, 8 };
	struct bytes b = small_file();
	struct profile *p;

	(void)state;
	bytes_add(&b, sample, sizeof(sample));
	bytes_add(&b, comments, sizeof(comments));
	bytes_add(&b, unknown, sizeof(unknown));
	add_strings(&b);
	p = read_good(pprof, &b);
	assert_int_equal(p->sample_count, 1);
	assert_int_equal(p->values[0], 16);
	assert_int_equal(p->values[1], 160);
	assert_int_equal(p->comment_count, 2);
	assert_string_equal(p->comments[1], "main");
	profile_free(p);
	bytes_free(&b);
}

/* The small file with one error. */
static void check_bad(struct bytes b, const char *words)
{
	add_strings(&b);
	read_bad(pprof, &b, words);
	bytes_free(&b);
}

#define CHECK_BAD(words, field, ...)               \
	do {                                       \
		struct bytes bad = small_file();   \
                                                   \
		MESSAGE(&bad, field, __VA_ARGS__); \
		check_bad(bad, words);             \
	} while (0)

static void reject(void **state)
{
	struct bytes b;

	(void)state;
	CHECK_BAD("at byte 62: the mapping has the id 0", MAPPING, 1, 0);
	CHECK_BAD("two mappings have the id 30", MAPPING, 1, 30);
	CHECK_BAD("the location has the id 0", LOCATION, 3, 5);
	CHECK_BAD("two locations have the id 40", LOCATION, 1, 40);
	CHECK_BAD("the function has the id 0", FUNCTION, 2, 5);
	CHECK_BAD("location 41, which", SAMPLE, 1, 41, 2, 1, 2, 1);
	CHECK_BAD("1 values, but the file has 2 sample types", SAMPLE, 1, 40, 2, 1);
	CHECK_BAD("3 values", SAMPLE, 1, 40, 2, 1, 2, 1, 2, 1);
	CHECK_BAD("string number 8, but the file has 8 strings", FUNCTION, 1, 1, 2, 8);
	CHECK_BAD("string number -1", FUNCTION, 1, 1, 2, UINT64_MAX);
	CHECK_BAD("string number 99", TYPE, 1, 99);
	CHECK_BAD("the ValueType is corrupt", TYPE, 0, 0);
	b = small_file();
	add_number(&b, PPROF_TIME_NANOS, 1);
	add_number(&b, PPROF_TIME_NANOS, 1);
	check_bad(b, "second start time");
	b = small_file();
	add_number(&b, PPROF_COMMENT, 55);
	check_bad(b, "string number 55");
	b = small_file();
	add_text(&b, STRING, "x");
	check_bad(b, "first string is not empty");
	b = small_file();
	add_number(&b, SAMPLE, 1);
	check_bad(b, "wrong wire type");
	b = (struct bytes){ 0 };
	MESSAGE(&b, SAMPLE, 2, 1);
	check_bad(b, "samples but no sample_type");
}

static void add_repeated(struct bytes *b, const void *bytes, size_t size, size_t times)
{
	char *all = malloc(size * times);

	assert_non_null(all);
	for (size_t i = 0; i < times; i++)
		memcpy(all + i * size, bytes, size);
	bytes_add(b, all, size * times);
	free(all);
}

/* A location of a million lines: no real file has one, and it would take much more memory. */
static void reject_large_message(void **state)
{
	struct bytes b = small_file();

	(void)state;
	add_varint(&b, LOCATION << 3 | 2);
	add_varint(&b, 2000000);
	add_repeated(&b, "\x22", 2, 1000000);
	check_bad(b, "the location has more than 1048576 bytes");
}

static void reject_line_without_function(void **state)
{
	static const uint8_t location[] = { 4 << 3 | 2, 6, 1 << 3, 41, 4 << 3 | 2, 2, 1 << 3, 9 };
	struct bytes b = small_file();

	(void)state;
	bytes_add(&b, location, sizeof(location));
	check_bad(b, "function 9, which is not in the file");
}

/* A sample of these bytes, after that of the small file. */
static void check_bad_sample(const void *bytes, size_t size, const char *words)
{
	struct bytes b = small_file();

	add_varint(&b, SAMPLE << 3 | 2);
	add_varint(&b, size);
	bytes_add(&b, bytes, size);
	check_bad(b, words);
}

#define CHECK_BAD_SAMPLE(words, ...)                                                           \
	check_bad_sample((const uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ }), \
			 words)

static void reject_samples(void **state)
{
	(void)state;
	/* 2^31 and 2^63 bytes of values; truncated values and locations */
	CHECK_BAD_SAMPLE("the sample is corrupt", 0x12, 0x80, 0x80, 0x80, 0x80, 8, 1, 1);
	CHECK_BAD_SAMPLE("the sample is corrupt", 0x12, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
			 0x80, 0x80, 1, 1);
	CHECK_BAD_SAMPLE("a number is truncated", 0x12, 2, 1, 0x80);
	CHECK_BAD_SAMPLE("a number is truncated", 0x0a, 1, 0xff);
	CHECK_BAD_SAMPLE("the sample is corrupt", 0x0d, 1, 2, 3, 4);
	CHECK_BAD_SAMPLE("the label is corrupt", 0x12, 2, 1, 1, 0x1a, 2, 8, 0x80);
	CHECK_BAD_SAMPLE("the label is corrupt", 0x12, 2, 1, 1, 0x1a, 2, 0x12, 0);
	CHECK_BAD_SAMPLE("string number 99", 0x12, 2, 1, 1, 0x1a, 4, 8, 99, 0x18, 1);
	CHECK_BAD_SAMPLE("string number -1", 0x12, 2, 1, 1, 0x1a, 15, 8, 1, 0x18, 1, 0x10, 0xff,
			 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1);
}

/* A file with one sample of 7 ticks, and these bytes for their times. */
static struct bytes file_with_times(const uint8_t *times, size_t size)
{
	struct bytes b = small_file();

	add_strings(&b);
	add_varint(&b, PPROF_TICKS << 3 | 2);
	add_varint(&b, size);
	bytes_add(&b, times, size);
	return b;
}

#define CHECK_BAD_TIMES(reason, ...)                                    \
	do {                                                            \
		const uint8_t times[] = { __VA_ARGS__ };                \
		struct bytes b = file_with_times(times, sizeof(times)); \
                                                                        \
		read_bad(pprof, &b, reason);                            \
		bytes_free(&b);                                         \
	} while (0)

static void reject_bad_times(void **state)
{
	(void)state;
	CHECK_BAD_TIMES("the times of ticks are truncated", 10);
	CHECK_BAD_TIMES("the times of ticks are truncated", 10, 100, 2, 5, 0);
	CHECK_BAD_TIMES("the times of ticks are truncated", 10, 100, 2, 5, 5, 0, 0x80);
	CHECK_BAD_TIMES("the times of ticks are truncated", 10, 100, 0xff, 0xff, 0xff, 0xff, 0xff,
			0xff, 0xff, 0xff, 0xff, 1);
	CHECK_BAD_TIMES("beyond all years", 0, 100, 0);
	CHECK_BAD_TIMES("beyond all years", 10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			0xff, 1, 0);
	CHECK_BAD_TIMES("a tick is later than the last one", 10, 100, 2, 5, 96, 0, 1);
	/* A time that goes back: one that is later by 2^64 - 1. */
	CHECK_BAD_TIMES("a tick is later than the last one", 10, 100, 2, 5, 0xff, 0xff, 0xff, 0xff,
			0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 1);
	CHECK_BAD_TIMES("more times than ticks", 10, 100, 8, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1,
			1, 1, 1);
	CHECK_BAD_TIMES("a sample that is not in the file", 10, 100, 2, 5, 5, 0, 0);
	CHECK_BAD_TIMES("a sample that is not in the file", 10, 100, 2, 5, 5, 1, 0);
	CHECK_BAD_TIMES("a sample that is not in the file", 10, 100, 2, 5, 5, 0, 2);
}

static void read_times(void **state)
{
	static const uint8_t times[] = { 10, 100, 3, 5, 0, 95, 0, 1, 1 };
	struct bytes b = file_with_times(times, sizeof(times));
	struct profile *p = profile_new();

	(void)state;
	assert_int_equal(read_salvage(&b, b.size, p), 0);
	assert_false(p->salvaged);
	assert_int_equal(p->ticks.count, 3);
	assert_int_equal(p->ticks.times[0], 50);
	assert_int_equal(p->ticks.times[1], 50);
	assert_int_equal(p->ticks.times[2], 1000);
	assert_int_equal(p->ticks.numbers[2], 0);
	profile_free(p);
	bytes_free(&b);
}

/* A file whose two samples have the value 70 and 7 of this type, and these bytes in this field. */
static struct bytes file_with_waits(const char *type, enum pprof_field field, const uint8_t *waits,
				    size_t size)
{
	struct bytes b = { 0 };

	MESSAGE(&b, TYPE, 1, 1, 2, 2);
	MESSAGE(&b, SAMPLE, 1, 40, 2, 70);
	MESSAGE(&b, SAMPLE, 1, 41, 2, 7);
	MESSAGE(&b, LOCATION, 1, 40, 3, 0x401000);
	MESSAGE(&b, LOCATION, 1, 41, 3, 0x402000);
	add_text(&b, STRING, "");
	add_text(&b, STRING, type);
	add_text(&b, STRING, "nanoseconds");
	add_varint(&b, field << 3 | 2);
	add_varint(&b, size);
	bytes_add(&b, waits, size);
	return b;
}

#define CHECK_BAD_WAITS(reason, ...)                                                         \
	do {                                                                                 \
		const uint8_t waits[] = { __VA_ARGS__ };                                     \
		struct bytes b = file_with_waits("wall", PPROF_WAITS, waits, sizeof(waits)); \
                                                                                             \
		read_bad(pprof, &b, reason);                                                 \
		bytes_free(&b);                                                              \
	} while (0)

/* The unit, the latest end and the number; begins, lengths and samples. */
static void reject_bad_waits(void **state)
{
	static const uint8_t good[] = { 10, 100, 1, 5, 2, 1 };
	struct bytes without = small_file();

	(void)state;
	CHECK_BAD_WAITS("the times of waits are truncated", 10);
	CHECK_BAD_WAITS("the times of waits are truncated", 10, 100, 1, 5, 2);
	CHECK_BAD_WAITS("the times of waits are truncated", 10, 100, 1, 0x80, 0x80, 1);
	CHECK_BAD_WAITS("the times of waits are truncated", 10, 100, 1, 5, 0x80, 1);
	CHECK_BAD_WAITS("the times of waits are truncated", 10, 100, 2, 5, 0, 2, 2, 1, 0x80);
	CHECK_BAD_WAITS("the times of waits are truncated", 10, 100, 0xff, 0xff, 0xff, 0xff, 0xff,
			0xff, 0xff, 0xff, 0xff, 1);
	CHECK_BAD_WAITS("beyond all years", 0, 100, 0);
	CHECK_BAD_WAITS("beyond all years", 10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			0xff, 1, 0);
	CHECK_BAD_WAITS("a wait is later than the last one", 10, 100, 1, 101, 0, 1);
	CHECK_BAD_WAITS("a wait is later than the last one", 10, 100, 1, 99, 2, 1);
	CHECK_BAD_WAITS("a wait is later than the last one", 10, 100, 2, 5, 0xff, 0xff, 0xff, 0xff,
			0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 1, 1, 1);
	CHECK_BAD_WAITS("a wait is later than the last one", 10, 100, 1, 5, 0xff, 0xff, 0xff, 0xff,
			0xff, 0xff, 0xff, 0xff, 0xff, 1, 1);
	CHECK_BAD_WAITS("a sample that is not in the file", 10, 100, 1, 5, 2, 0);
	CHECK_BAD_WAITS("a sample that is not in the file", 10, 100, 1, 5, 2, 3);
	/* One alone, and two together. */
	CHECK_BAD_WAITS("longer waits than its value", 10, 100, 1, 5, 8, 1);
	CHECK_BAD_WAITS("longer waits than its value", 1, 100, 1, 5, 8, 2);
	CHECK_BAD_WAITS("longer waits than its value", 10, 100, 2, 5, 0, 4, 4, 1, 1);
	add_strings(&without);
	add_varint(&without, PPROF_WAITS << 3 | 2);
	add_varint(&without, sizeof(good));
	bytes_add(&without, good, sizeof(good));
	read_bad(pprof, &without, "there are times of waits, but no value \"wall\"");
	bytes_free(&without);
}

static void read_waits(void **state)
{
	/* From 50 on for 20, and for 7 of the other sample; from 1000 on for 50. */
	static const uint8_t waits[] = { 1, 0xe9, 0x08, 3, 50, 0, 0xb6, 0x07, 20, 7, 50, 1, 2, 1 };
	struct bytes b = file_with_waits("wall", PPROF_WAITS, waits, sizeof(waits));
	struct profile *p = profile_new();

	(void)state;
	assert_int_equal(read_salvage(&b, b.size, p), 0);
	assert_false(p->salvaged);
	assert_int_equal(p->waits.count, 3);
	assert_int_equal(p->waits.waits[0].since_ns, 50);
	assert_int_equal(p->waits.waits[0].length_ns, 20);
	assert_int_equal(p->waits.waits[1].sample, 1);
	assert_int_equal(p->waits.waits[2].since_ns, 1000);
	assert_int_equal(p->waits.waits[2].length_ns, 50);
	profile_free(p);
	bytes_free(&b);
}

/* Of calls, in the same way. */
static void read_calls(void **state)
{
	static const uint8_t calls[] = { 1, 100, 2, 50, 1, 20, 7, 1, 2 },
			     longer[] = { 1, 100, 1, 50, 8, 2 };
	struct bytes b = file_with_waits("span", PPROF_CALLS, calls, sizeof(calls));
	struct profile *p = profile_new();

	(void)state;
	assert_int_equal(read_salvage(&b, b.size, p), 0);
	assert_false(p->salvaged);
	assert_int_equal(p->waits.count, 0);
	assert_int_equal(p->calls.count, 2);
	assert_int_equal(p->calls.waits[0].since_ns, 50);
	assert_int_equal(p->calls.waits[0].length_ns, 20);
	assert_int_equal(p->calls.waits[1].since_ns, 51);
	assert_int_equal(p->calls.waits[1].sample, 1);
	profile_free(p);
	bytes_free(&b);
	b = file_with_waits("span", PPROF_CALLS, longer, sizeof(longer));
	read_bad(pprof, &b, "longer calls than its value");
	bytes_free(&b);
	b = file_with_waits("wall", PPROF_CALLS, calls, sizeof(calls));
	read_bad(pprof, &b, "there are times of calls, but no value \"span\"");
	bytes_free(&b);
}

static void reject_truncated(void **state)
{
	struct bytes b = small_file();

	(void)state;
	add_strings(&b);
	b.size -= 2;
	read_bad(pprof, &b, "longer than the rest of the file");
	bytes_free(&b);
}

static void not_of_this_format(void **state)
{
	static const char *const texts[] = {
		"main;f 12\n",
		"events: Ir\n",
		"# callgrind format\n",
		"profile of a day\n",
		"version 0.07\n",
		"2 of these\n",
		"\n\n\n\n",
		"x",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct bytes b = { 0 };

		bytes_add_text(&b, texts[i]);
		read_bad(pprof, &b, "not of this format");
		bytes_free(&b);
	}
}

static void read_without_samples(void **state)
{
	struct bytes b = { 0 };
	struct profile *p;

	(void)state;
	add_strings(&b);
	p = read_good(pprof, &b);
	assert_int_equal(p->value_type_count, 1);
	assert_string_equal(p->value_types[0].type, "samples");
	profile_free(p);
	bytes_free(&b);
}

/* Interpreted programs' locations: one address, and different lines. */
static void same_address_different_lines(void **state)
{
	struct bytes b = { 0 };
	struct profile *p;

	(void)state;
	MESSAGE(&b, TYPE, 1, 1, 2, 2);
	MESSAGE(&b, FUNCTION, 1, 1, 2, 5);
	MESSAGE(&b, FUNCTION, 1, 2, 2, 6);
	for (uint8_t i = 1; i <= 3; i++) {
		uint8_t location[] = { 4 << 3 | 2, 8,	   1 << 3,	   i,	   4 << 3 | 2,
				       4,	   1 << 3, i == 3 ? 1 : i, 2 << 3, 7 };

		bytes_add(&b, location, sizeof(location));
		MESSAGE(&b, SAMPLE, 1, i, 2, i);
	}
	add_strings(&b);
	p = read_good(pprof, &b);
	/* The third equals the first. */
	assert_int_equal(p->location_count, 2);
	assert_int_equal(p->sample_count, 2);
	assert_int_equal(p->values[0], 1 + 3);
	assert_string_equal(p->functions[p->lines[p->locations[1].first_line].function].name,
			    "main");
	profile_free(p);
	bytes_free(&b);
}

/* Line numbers that no source file has are unknown. */
static void line_numbers(void **state)
{
	const uint64_t numbers[] = { 7, UINT32_MAX, (UINT64_C(1) << 32) + 5, UINT64_MAX };
	const uint32_t expected[] = { 7, UINT32_MAX, 0, 0 };
	struct bytes b = small_file();
	struct profile *p;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		MESSAGE(&b, FUNCTION, 1, 70 + i, 2, 1 + i, 5, numbers[i]);
	add_strings(&b);
	p = read_good(pprof, &b);
	assert_true(p->function_count >= 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(p->functions[p->function_count - 4 + i].start_line, expected[i]);
	profile_free(p);
	bytes_free(&b);
}

static void location_in_no_mapping(void **state)
{
	struct bytes b = small_file();
	struct profile *p;

	(void)state;
	MESSAGE(&b, LOCATION, 1, 41, 2, 31, 3, 0x1000);
	MESSAGE(&b, SAMPLE, 1, 41, 2, 1, 2, 1);
	add_strings(&b);
	p = read_good(pprof, &b);
	assert_warned(p, "mappings that are not in the file");
	assert_int_equal(p->locations[1].mapping, PROFILE_NONE);
	profile_free(p);
	bytes_free(&b);
}

static void period_units(void **state)
{
	struct bytes b = { 0 };
	struct profile *p;

	(void)state;
	MESSAGE(&b, TYPE, 1, 1, 2, 2);
	add_number(&b, PPROF_PERIOD, 3);
	MESSAGE(&b, PPROF_PERIOD_TYPE, 1, 3, 2, 8);
	add_strings(&b);
	add_text(&b, STRING, "milliseconds");
	p = read_good(pprof, &b);
	assert_int_equal(profile_tick_ns(p), 3000000);
	profile_free(p);
	bytes_free(&b);
}

/* Unknown fields inside messages: reported once. */
static void unknown_inside(void **state)
{
	struct bytes b = small_file();
	struct profile *p;

	(void)state;
	MESSAGE(&b, SAMPLE, 1, 40, 1, 40, 2, 7, 2, 70, 15, 1);
	MESSAGE(&b, MAPPING, 1, 31, 77, 1);
	MESSAGE(&b, FUNCTION, 1, 1, 2, 6, 77, 1);
	add_strings(&b);
	p = read_good(pprof, &b);
	assert_int_equal(p->warning_count, 1);
	assert_warned(p, "unknown fields inside messages");
	assert_int_equal(p->values[0], 14);
	profile_free(p);
	bytes_free(&b);
}

/* The file, and its first field, are larger than the window of detection. */
static void detect_in_window(void **state)
{
	struct bytes b = { 0 };
	struct input in;

	(void)state;
	add_varint(&b, SAMPLE << 3 | 2);
	add_varint(&b, 100000);
	add_varint(&b, 1 << 3 | 2);
	add_varint(&b, 99990);
	add_repeated(&b, "\1", 1, 100000);
	in = (struct input){ .path = "input", .bytes = b.start, .size = INPUT_WINDOW };
	assert_true(pprof->detect(&in));
	/* the second field is */
	bytes_free(&b);
	MESSAGE(&b, TYPE, 1, 1, 2, 2);
	add_varint(&b, STRING << 3 | 2);
	add_varint(&b, 1 << 20);
	add_repeated(&b, "x", 1, INPUT_WINDOW);
	in = (struct input){ .path = "input", .bytes = b.start, .size = INPUT_WINDOW };
	assert_true(pprof->detect(&in));
	/* the window has all of a smaller file */
	in.size = 1000;
	assert_false(pprof->detect(&in));
	bytes_free(&b);
}

/* A file without some strings, the function of a line, and the location of a sample. */
static void salvage_what_is_missing(void **state)
{
	static const uint8_t location[] = { 4 << 3 | 2, 6, 1 << 3, 41, 4 << 3 | 2, 2, 1 << 3, 9 };
	struct bytes b = small_file();
	struct profile *p = profile_new();

	(void)state;
	assert_non_null(p);
	bytes_add(&b, location, sizeof(location));
	MESSAGE(&b, SAMPLE, 1, 41, 1, 42, 2, 1, 2, 2);
	MESSAGE(&b, SAMPLE, 1, 40, 2, 1);
	assert_int_equal(read_salvage(&b, b.size, p), 0);
	assert_int_equal(p->sample_count, 2);
	assert_int_equal(p->samples[1].depth, 1);
	assert_int_equal(p->locations[1].line_count, 0);
	assert_int_equal(p->mappings[0].start, 0x400000);
	assert_string_equal(p->value_types[1].type, "value2");
	assert_warned(p, "lost what is corrupt: at byte");
	assert_warned(p, "lost references to strings, functions or locations");
	assert_int_equal(p->warning_count, 2);
	assert_true(p->salvaged);
	profile_free(p);
	bytes_free(&b);
}

/* 100000 labels of one sample, and as many comments about missing values: no quadratic time. */
static void many_labels_and_comments(void **state)
{
	struct bytes b = small_file(), sample = { 0 };
	struct profile *p;

	(void)state;
	bytes_add(&sample, "\x12\2\1\1", 4);
	for (uint64_t i = 0; i < 100000; i += 1000) {
		struct bytes part = { 0 };

		for (uint64_t j = 1; j <= 1000; j++)
			MESSAGE(&part, 3, 1, 6, 3, i + j);
		bytes_add(&sample, part.start, part.size);
		bytes_free(&part);
	}
	/* comments 8, 9 and 10 */
	add_repeated(&b, "\x6a\3\x8\x9\xa", 5, 33333);
	add_varint(&b, SAMPLE << 3 | 2);
	add_varint(&b, sample.size);
	bytes_add(&b, sample.start, sample.size);
	add_strings(&b);
	add_text(&b, STRING, "profil:title.none=/none");
	add_text(&b, STRING, "profil:period.samples=x");
	add_text(&b, STRING, "profil:formula.=");
	p = read_good(pprof, &b);
	assert_int_equal(p->labels[1].tag_count, 100000);
	assert_int_equal(p->comment_count, 3 * 33333);
	profile_free(p);
	bytes_free(&sample);
	bytes_free(&b);
}

/* Labels with the same bytes as earlier ones are not parsed again; fields behind them are. */
static void labels_come_again(void **state)
{
#define THREAD 3 << 3 | 2, 4, 1 << 3, 8, 3 << 3, 7 /* pid 7 */
	static const uint8_t last[] = { 2 << 3 | 2, 12, 1 << 3, 40, 2 << 3, 1, 2 << 3, 10, THREAD };
	static const uint8_t values_behind[] = { 2 << 3 | 2, 12, 1 << 3, 40, THREAD,
						 2 << 3,     2,	 2 << 3, 20 };
	static const uint8_t others_behind[] = { 2 << 3 | 2, 12, 1 << 3, 40, THREAD,
						 2 << 3,     3,	 2 << 3, 30 };
	struct bytes b = small_file();
	struct profile *p;

	(void)state;
	for (int i = 0; i < 2; i++) {
		bytes_add(&b, last, sizeof(last));
		bytes_add(&b, values_behind, sizeof(values_behind));
		bytes_add(&b, others_behind, sizeof(others_behind));
	}
	add_strings(&b);
	add_text(&b, STRING, "pid");
	p = read_good(pprof, &b);
	assert_int_equal(p->sample_count, 2);
	assert_int_equal(p->label_count, 2);
	assert_int_equal(p->labels[p->samples[1].labels].pid, 7);
	assert_int_equal(p->samples[1].depth, 1);
	assert_int_equal(p->values[2], 12);
	assert_int_equal(p->values[3], 120);
	profile_free(p);
	bytes_free(&b);
#undef THREAD
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_any_order),
		cmocka_unit_test(read_packed_and_unknown),
		cmocka_unit_test(reject),
		cmocka_unit_test(reject_line_without_function),
		cmocka_unit_test(reject_samples),
		cmocka_unit_test(reject_large_message),
		cmocka_unit_test(read_times),
		cmocka_unit_test(reject_bad_waits),
		cmocka_unit_test(read_waits),
		cmocka_unit_test(read_calls),
		cmocka_unit_test(reject_bad_times),
		cmocka_unit_test(reject_truncated),
		cmocka_unit_test(not_of_this_format),
		cmocka_unit_test(read_without_samples),
		cmocka_unit_test(same_address_different_lines),
		cmocka_unit_test(line_numbers),
		cmocka_unit_test(location_in_no_mapping),
		cmocka_unit_test(period_units),
		cmocka_unit_test(unknown_inside),
		cmocka_unit_test(detect_in_window),
		cmocka_unit_test(salvage_what_is_missing),
		cmocka_unit_test(many_labels_and_comments),
		cmocka_unit_test(labels_come_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
