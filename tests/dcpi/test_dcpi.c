// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "dcpi_fixture.h"

static void read_all_fields(void **state)
{
	struct bytes b = basic();
	struct profile *p = read_good(dcpi, &b);

	(void)state;
	assert_string_equal(p->event, "cpu-clock");
	assert_string_equal(p->host, "walnut");
	assert_int_equal(profile_tick_ns(p), 10101010);
	assert_int_equal(p->time_ns, ORIGIN_S * UINT64_C(1000000000));
	assert_int_equal(p->value_type_count, 2);
	assert_string_equal(p->value_types[0].type, "samples");
	assert_string_equal(p->value_types[1].unit, "nanoseconds");
	assert_int_equal(p->image_count, 1);
	assert_string_equal(p->images[0].path, "/usr/bin/demo");
	assert_int_equal(p->images[0].build_id_size, 20);
	assert_int_equal(p->images[0].build_id[1], 0x2e);
	assert_int_equal(p->images[0].text_start, 0x401000);
	assert_int_equal(p->images[0].text_size, 4096);
	assert_int_equal(p->mapping_count, 1);
	assert_true(p->mappings[0].linked);
	assert_int_equal(p->mappings[0].start, 0x401000);
	assert_int_equal(p->mappings[0].limit, 0x402000);
	assert_int_equal(p->sample_count, 4);
	assert_int_equal(p->locations[1].address, 0x401137);
	assert_int_equal(p->locations[1].image_address, 0x401137);
	assert_int_equal(p->values[2], 3);
	assert_int_equal(p->values[3], 30303030);
	assert_int_equal(p->locations[3].address, 0x401fff);
	assert_int_equal(profile_total(p, NULL), 108);
	assert_false(p->totals.known);
	assert_int_equal(p->extra_count, 0);
	assert_int_equal(p->warning_count, 0);
	profile_free(p);
	bytes_free(&b);
}

/* Reads a header, whose error must contain these words; NULL: it is valid. */
static void check_header(const char *header, const char *error)
{
	struct bytes b = headed(header);

	WORDS(&b, 0x10, 1, 5, 1, 5);
	if (error)
		read_bad(dcpi, &b, error);
	else
		profile_free(read_good(dcpi, &b));
	bytes_free(&b);
}

static void read_grammar(void **state)
{
	static const struct {
		const char *header, *error;
	} cases[] = {
		{ REQUIRED, NULL },
		{ REQUIRED "label x \t\n\xff\xfe \xff\n", NULL },
		{ REQUIRED "cpuamask ff\ncpuamask 0F\ncpucount 8\npath a\npath b\n", NULL },
		{ REQUIRED "samples are below\n", NULL },
		{ CPUSPEED TSIZE TSTART PERIOD EVENT PLATFORM EPOCH IMAGE VERSION, NULL },
		{ REQUIRED "\n", ":10: an empty line" },
		{ REQUIRED " label x\n", ":10: a line of the header begins with a blank" },
		{ REQUIRED "label\n", ":10: no value follows \"label\"" },
		{ REQUIRED "label \t \n", ":10: no value follows \"label\"" },
		{ REQUIRED IMAGE, ":10: a second line \"image\"" },
		{ REQUIRED PERIOD, ":10: a second line \"period\"" },
		{ VERSION IMAGE EPOCH PLATFORM EVENT PERIOD TSTART TSIZE,
		  ":9: the header has no line \"cpuspeed\"" },
		{ IMAGE EPOCH PLATFORM EVENT PERIOD TSTART TSIZE CPUSPEED,
		  ":9: the header has no line \"version\"" },
		{ "version pdb-1.01\n" IMAGE, ":1: version pdb-1.01 of the format: only major" },
		{ "version pdb-0.07\r\n" IMAGE, ":1: \"pdb-0.07\r\" is no value for version" },
		{ "version pdb-0\n" IMAGE, "no value for version" },
		{ VERSION "image 12g4\n", ":2: \"12g4\" is no value for image" },
		{ VERSION "period 100 \n", "\"100 \" is no value for period" },
		{ VERSION "period -1\n", "no value for period" },
		{ VERSION "period 18446744073709551616\n", "no value for period" },
		{ VERSION "tstart 0x401000\n", "no value for tstart" },
		{ VERSION "tstart 10000000000000000\n", "no value for tstart" },
		{ VERSION "tsize 0x1000\n", "no value for tsize" },
		{ VERSION IMAGE EPOCH PLATFORM EVENT PERIOD
		  "tstart ffffffffffffffff\ntsize 2\n" CPUSPEED,
		  "tstart and tsize exceed the highest address" },
		{ VERSION "cpuspeed fast\n", "no value for cpuspeed" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check_header(cases[i].header, cases[i].error);
}

static void read_header_without_end(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	bytes_add_text(&b, REQUIRED PATH);
	read_bad(dcpi, &b, ":11: the header does not end");
	bytes_add(&b, "nul \0\n", 6);
	read_bad(dcpi, &b, ":11: a NUL byte");
	bytes_free(&b);
	/* A name of 2 MB. */
	bytes_add_text(&b, VERSION "path ");
	for (int i = 0; i < 2000; i++) {
		char kilobyte[1024];

		memset(kilobyte, 'x', sizeof(kilobyte));
		bytes_add(&b, kilobyte, sizeof(kilobyte));
	}
	bytes_add_text(&b, "\nsamples\n");
	read_bad(dcpi, &b, ":2: the header does not end");
	bytes_free(&b);
}

/* The time of a file with this epoch, in seconds; -1: it is rejected. */
static int64_t epoch_of(const char *epoch)
{
	struct bytes b;
	struct profile *p;
	struct error e = { 0 };
	char *header;
	int64_t time = -1;

	assert_true(asprintf(&header,
			     VERSION IMAGE "epoch %s\n" PLATFORM EVENT PERIOD TSTART TSIZE CPUSPEED,
			     epoch) > 0);
	b = headed(header);
	WORDS(&b, 0, 0);
	if (read_part(dcpi, b.start, b.size, &p, &e) == 0)
		time = p->time_ns / 1000000000;
	else
		assert_non_null(strstr(e.what, ":3: \""));
	profile_free(time < 0 ? NULL : p);
	bytes_free(&b);
	free(header);
	return time;
}

static void read_epochs(void **state)
{
	static const struct {
		const char *text;
		int64_t seconds;
	} cases[] = {
		{ "2501181015", ORIGIN_S },   { "20250118101559", ORIGIN_S + 59 },
		{ "9701010000", 852076800 },  { "7001010000", 0 },
		{ "6812312359", 3124223940 }, { "6912312359", 0 }, /* of 1969: unknown */
		{ "2402290000", 1709164800 }, { "2302290000", -1 },
		{ "2513011015", -1 },	      { "2500011015", -1 },
		{ "2501321015", -1 },	      { "2501182415", -1 },
		{ "2501181060", -1 },	      { "20250118101560", -1 },
		{ "202501181015", -1 }, /* of later versions */
		{ "250118101", -1 },	      { "25011810 5", -1 },
		{ "-501181015", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (epoch_of(cases[i].text) != cases[i].seconds)
			fail_msg("epoch %s is read as %ld", cases[i].text,
				 (long)epoch_of(cases[i].text));
}

static void check_body(const uint32_t *words, size_t count, const char *error)
{
	struct bytes b = headed(REQUIRED PATH);

	add_words(&b, words, count);
	if (error)
		read_bad(dcpi, &b, error);
	else
		profile_free(read_good(dcpi, &b));
	bytes_free(&b);
}

#define BODY(error, ...)                                                                       \
	check_body((const uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / 4, \
		   error)

static void read_bodies(void **state)
{
	struct bytes b = headed(REQUIRED PATH);

	(void)state;
	BODY(NULL, 0, 0);
	BODY(NULL, 4, 3, 0, 0, 7, 1, 7);
	BODY(NULL, 4, 1, 1, 5, 1, 1, 2, 2);
	BODY(NULL, 4095, 1, 0xffffffff, 1, 0xffffffff);
	BODY("the file ends before its footer", 0);
	BODY("at byte 236: a chunk runs into the footer", 4, 1, 0, 0);
	BODY("a chunk runs into the footer", 4, 0, 0, 0);
	BODY("a chunk runs into the footer", 4, 1, 1, 0, 1, 1);
	BODY("at byte 240: a chunk without counts", 4, 0, 1, 1, 1);
	BODY("a chunk of 2 counts, where only 1 stand", 4, 2, 1, 1, 1);
	BODY("a chunk of 2147483648 counts", 4, 0x80000000, 1, 1, 1);
	BODY("a chunk of 4294967295 counts", 4, 0xffffffff, 1, 1, 1);
	BODY("not above 0x8", 8, 1, 1, 4, 1, 1, 2, 2);
	BODY("not above 0x8", 8, 1, 1, 8, 1, 1, 2, 2);
	BODY("not above 0x0", 0, 1, 1, 0, 1, 1, 2, 2);
	BODY("they overlap", 8, 2, 1, 1, 9, 1, 1, 3, 3);
	BODY("outside of the text of 4096 bytes", 4095, 2, 1, 1, 2, 2);
	BODY("outside of the text", 0xffffffff, 1, 1, 1, 1);
	BODY("has 2 addresses with samples, but there are 1", 4, 1, 1, 2, 1);
	BODY("has 2 samples, but the counts add up to 1", 4, 1, 1, 1, 2);
	BODY("add up to 4294967296: it has wrapped", 4, 2, 0xffffffff, 1, 2, 0);
	BODY("outside of the text", 0, 1, 0x01000000, 0x01000000, 1, 1, 1, 1);
	WORDS(&b, 4, 1, 1, 1, 1);
	b.size -= 2;
	read_bad(dcpi, &b, "no multiple of 4");
	bytes_free(&b);
}

static void read_strides(void **state)
{
	struct bytes b = headed(REQUIRED "x-stride 4\n"), plain = headed(REQUIRED);
	struct input_options options = { .stride = 4 };
	struct profile *p = read_good(dcpi, (WORDS(&b, 8, 2, 1, 2, 16, 1, 3, 3, 6), &b));
	char *path;
	struct error e;

	(void)state;
	assert_int_equal(p->locations[1].address, 0x40100c);
	assert_int_equal(p->locations[2].address, 0x401010);
	assert_int_equal(p->extra_count, 0);
	profile_free(p);
	WORDS(&plain, 8, 2, 1, 2, 2, 3);
	p = read_good(dcpi, &plain);
	assert_int_equal(p->locations[1].address, 0x401009);
	profile_free(p);
	path = temporary_file(plain.start, plain.size);
	assert_int_equal(format_read(path, &options, &p, &e), 0);
	assert_int_equal(p->locations[1].address, 0x40100c);
	profile_free(p);
	unlink(path);
	free(path);
	bytes_free(&b);
	b = headed(REQUIRED "x-stride 4\n");
	WORDS(&b, 8, 2, 1, 2, 12, 1, 3, 3, 6);
	read_bad(dcpi, &b, "they overlap");
	bytes_free(&b);
	b = headed(REQUIRED "x-stride 1000000000000\n");
	WORDS(&b, 0, 0);
	read_bad(dcpi, &b, "a stride of 1000000000000 bytes");
	bytes_free(&b);
	bytes_free(&plain);
}

static void read_images(void **state)
{
	static const struct {
		const char *header, *path;
		unsigned int build_id_size;
	} cases[] = {
		{ VERSION "image 0123456789abcdef\n" REST, "0123456789abcdef", 8 },
		{ VERSION "image 0123456789ABCDEF0123456789abcdef\npath x\n" REST, "x", 16 },
		{ VERSION "image 19970328081403c0c18b\n" REST, "19970328081403c0c18b", 0 },
		{ VERSION "image 19970328081403c0c18b\npath /vmunix\n" REST, "/vmunix", 0 },
		{ VERSION "image 0\n" REST, "", 0 },
		{ VERSION "image 0\npath [anon]\n" REST, "[anon]", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct profile *p = read_header(cases[i].header);

		assert_string_equal(p->images[0].path, cases[i].path);
		assert_int_equal(p->images[0].build_id_size, cases[i].build_id_size);
		profile_free(p);
	}
}

static void read_unattributed(void **state)
{
	struct profile *p =
		read_header(VERSION "image 0\npath unknown@walnut\n" EPOCH PLATFORM EVENT PERIOD
				    "tstart 0\ntsize 1\n" CPUSPEED);

	(void)state;
	assert_int_equal(p->image_count, 0);
	assert_int_equal(p->sample_count, 1);
	assert_int_equal(p->samples[0].depth, 0);
	assert_int_equal(p->values[0], 7);
	profile_free(p);
}

static void read_events(void **state)
{
	struct profile *p = read_header(VERSION IMAGE EPOCH PLATFORM
					"event cycles\nperiod 65536\n" TSTART TSIZE CPUSPEED);

	(void)state;
	assert_string_equal(p->event, "cycles");
	assert_int_equal(profile_tick_ns(p), 0);
	assert_int_equal(p->value_type_count, 1);
	assert_string_equal(p->value_types[0].type, "samples");
	assert_int_equal(p->value_types[0].period, 65536);
	profile_free(p);
	p = read_header(VERSION IMAGE EPOCH PLATFORM
			"event cycles\nperiod 65536\n" TSTART TSIZE CPUSPEED
			"x-period-unit nanoseconds\n");
	assert_int_equal(profile_tick_ns(p), 65536);
	assert_int_equal(p->value_type_count, 2);
	profile_free(p);
	p = read_header(VERSION IMAGE EPOCH PLATFORM "event alloc\nperiod 0\n" TSTART TSIZE CPUSPEED
						     "x-unit bytes\n");
	assert_string_equal(p->value_types[0].type, "alloc");
	assert_string_equal(p->value_types[0].unit, "bytes");
	assert_int_equal(p->warning_count, 0);
	profile_free(p);
	p = read_header(VERSION IMAGE EPOCH PLATFORM
			"event samples\nperiod 0\n" TSTART TSIZE CPUSPEED);
	assert_int_equal(p->warning_count, 0);
	profile_free(p);
	p = read_header(VERSION IMAGE EPOCH PLATFORM
			"event cycles\nperiod 0\n" TSTART TSIZE CPUSPEED);
	assert_warned(p, "a sampling period of 0");
	profile_free(p);
}

static void read_warnings(void **state)
{
	struct profile *p = read_header("version pdb-0.05\n" IMAGE REST "cpuimplv 8\ncpucount x\n");

	(void)state;
	assert_warned(p, "version 0.5 of the format");
	assert_warned(p, "--dcpi-stride 4");
	assert_warned(p, "the line \"cpucount x\"");
	profile_free(p);
}

static void read_own_lines(void **state)
{
	struct profile *p =
		read_header(REQUIRED "x-bucket 16\nx-start 1737195301.25\nx-duration 2.5\n"
				     "x-ticks 20\nx-out-of-range 4\nx-excluded 5\n"
				     "x-lost 1 ring_full\nx-lost 3\nx-kernel 2\nx-cpu 1\n"
				     "x-command demo -x  y \nlabel L\n");

	(void)state;
	assert_int_equal(p->bucket, 16);
	assert_int_equal(p->time_ns, 1737195301250000000);
	assert_int_equal(p->duration_ns, 2500000000);
	assert_true(p->totals.known);
	assert_int_equal(p->totals.ticks, 20);
	assert_int_equal(p->totals.counted, 7);
	assert_int_equal(p->totals.out_of_range, 4);
	assert_int_equal(p->totals.excluded, 5);
	assert_int_equal(p->totals.lost_count, 2);
	assert_string_equal(p->totals.lost[0].cause, "ring_full");
	assert_int_equal(profile_lost(p), 4);
	assert_int_equal(p->totals.kernel, 2);
	assert_int_equal(p->totals.cpu_ns, 1000000000);
	assert_string_equal(p->command, "demo -x  y ");
	assert_int_equal(p->labels[0].tag_count, 1);
	assert_string_equal(p->labels[0].tags[0].key, "label");
	assert_string_equal(p->labels[0].tags[0].text, "L");
	profile_free(p);
}

static void survive_damage(void **state)
{
	struct bytes b = basic();

	(void)state;
	survive_truncation(dcpi, &b);
	survive_bit_flips(dcpi, &b);
	bytes_free(&b);
}

static void salvage_a_part(void **state)
{
	struct bytes b = basic();
	struct input_options options = { .salvage = true };
	char *path = temporary_file(b.start, b.size - 16);
	struct profile *p;
	struct error e;

	(void)state;
	assert_int_equal(format_read(path, &options, &p, &e), 0);
	assert_int_equal(profile_total(p, NULL), 73);
	assert_warned(p, "salvaged");
	profile_free(p);
	unlink(path);
	free(path);
	bytes_free(&b);
}

/* --- The cases of the project's requirements --- */

static int check_case(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *name = path + ftw->base;
	struct profile *p;
	struct error e = { 0 };
	struct bytes b;

	(void)st;
	if (type != FTW_F || !strstr(name, ".dcpi"))
		return 0;
	b = file_bytes(path);
	if (strncmp(name, "ok_", 3) == 0) {
		profile_free(read_good(dcpi, &b));
	} else {
		if (read_part(dcpi, b.start, b.size, &p, &e) == 0)
			fail_msg("%s is accepted", name);
		assert_string_not_equal(e.what, "not of this format");
	}
	bytes_free(&b);
	file_count++;
	return 0;
}

static void check_cases(void **state)
{
	(void)state;
	file_count = 0;
	assert_int_equal(nftw(PROFIL_TESTS "/dcpi/data", check_case, 8, FTW_PHYS), 0);
	assert_true(file_count > 0);
}

static void detect_others(void **state)
{
	static const char *const texts[] = {
		"version: 1\n", "version pdb\n", "samples\n", "image 0\nepoch 1\n", "", "a;b 1\n"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_false(dcpi->detect(&(struct input){ .bytes = (const uint8_t *)texts[i],
							   .size = strlen(texts[i]) }));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_all_fields),
		cmocka_unit_test(read_grammar),
		cmocka_unit_test(read_header_without_end),
		cmocka_unit_test(read_epochs),
		cmocka_unit_test(read_bodies),
		cmocka_unit_test(read_strides),
		cmocka_unit_test(read_images),
		cmocka_unit_test(read_unattributed),
		cmocka_unit_test(read_events),
		cmocka_unit_test(read_warnings),
		cmocka_unit_test(read_own_lines),
		cmocka_unit_test(survive_damage),
		cmocka_unit_test(salvage_a_part),
		cmocka_unit_test(check_cases),
		cmocka_unit_test(detect_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
