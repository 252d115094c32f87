// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "format_fixture.h"

#include "format/gzip.h"
#include "format/pprof.h"

static const struct format *const pprof = &format_pprof;

/* A message under construction. */
static void add_varint(struct bytes *b, uint64_t value)
{
	uint8_t byte;

	for (; value > 0x7f; value >>= 7) {
		byte = value | 0x80;
		bytes_add(b, &byte, 1);
	}
	byte = value;
	bytes_add(b, &byte, 1);
}

static void add_number(struct bytes *b, unsigned int field, uint64_t value)
{
	add_varint(b, field << 3);
	add_varint(b, value);
}

static void add_text(struct bytes *b, unsigned int field, const char *text)
{
	add_varint(b, field << 3 | 2);
	add_varint(b, strlen(text));
	bytes_add_text(b, text);
}

/* Adds a message of numbers: pairs of field and value. */
static void add_message(struct bytes *b, unsigned int field, const uint64_t *pairs, size_t count)
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

/* The strings 0 to 7 of the files made here. */
static void add_strings(struct bytes *b)
{
	static const char *const strings[] = { "",	 "samples", "count", "cpu", "nanoseconds",
					       "/bin/a", "main",    "00ff" };

	for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++)
		add_text(b, STRING, strings[i]);
}

/* One sample of one location; what refers comes before what it refers to. */
static struct bytes small_file(void)
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

static void read_any_order(void **state)
{
	struct bytes b = small_file();
	struct profile *p;

	(void)state;
	add_strings(&b);
	p = read_good(pprof, &b);
	assert_int_equal(p->value_type_count, 2);
	assert_string_equal(p->value_types[1].type, "cpu");
	assert_int_equal(p->period_ns, 10);
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
	/* location_id and value packed, as most writers do; fields from the future */
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

/* The small file with one thing wrong in it. */
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
	CHECK_BAD("the mapping's id 30 is taken", MAPPING, 1, 30);
	CHECK_BAD("the location has the id 0", LOCATION, 3, 5);
	CHECK_BAD("the location's id 40 is taken", LOCATION, 1, 40);
	CHECK_BAD("mapping 31, which the file does not have", LOCATION, 1, 41, 2, 31);
	CHECK_BAD("the function has the id 0", FUNCTION, 2, 5);
	CHECK_BAD("location 41, which", SAMPLE, 1, 41, 2, 1, 2, 1);
	CHECK_BAD("1 values, where the file has 2 types", SAMPLE, 1, 40, 2, 1);
	CHECK_BAD("3 values", SAMPLE, 1, 40, 2, 1, 2, 1, 2, 1);
	CHECK_BAD("string 8, where the file has only 8", FUNCTION, 1, 1, 2, 8);
	CHECK_BAD("string -1", FUNCTION, 1, 1, 2, UINT64_MAX);
	CHECK_BAD("string 99", TYPE, 1, 99);
	CHECK_BAD("the ValueType is corrupt", TYPE, 0, 0);
	b = small_file();
	add_number(&b, PPROF_TIME_NANOS, 1);
	add_number(&b, PPROF_TIME_NANOS, 1);
	check_bad(b, "second start time");
	b = small_file();
	add_number(&b, PPROF_COMMENT, 55);
	check_bad(b, "string 55");
	b = small_file();
	add_text(&b, STRING, "x");
	check_bad(b, "first string is not empty");
	b = small_file();
	add_number(&b, SAMPLE, 1);
	check_bad(b, "wrong wire type");
	b = (struct bytes){ 0 };
	MESSAGE(&b, SAMPLE, 2, 1);
	check_bad(b, "what samples count");
}

static void reject_line_without_function(void **state)
{
	static const uint8_t location[] = { 4 << 3 | 2, 6, 1 << 3, 41, 4 << 3 | 2, 2, 1 << 3, 9 };
	struct bytes b = small_file();

	(void)state;
	bytes_add(&b, location, sizeof(location));
	check_bad(b, "function 9, which the file does not have");
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
	/* The third is the first again. */
	assert_int_equal(p->location_count, 2);
	assert_int_equal(p->sample_count, 2);
	assert_int_equal(p->values[0], 1 + 3);
	assert_string_equal(p->functions[p->lines[p->locations[1].first_line].function].name,
			    "main");
	profile_free(p);
	bytes_free(&b);
}

static void period_units(void **state)
{
	struct bytes b = { 0 };
	struct profile *p;

	(void)state;
	add_number(&b, PPROF_PERIOD, 3);
	MESSAGE(&b, PPROF_PERIOD_TYPE, 1, 3, 2, 8);
	add_strings(&b);
	add_text(&b, STRING, "milliseconds");
	p = read_good(pprof, &b);
	assert_int_equal(p->period_ns, 3000000);
	profile_free(p);
	bytes_free(&b);
}

static struct profile *full_profile(void)
{
	static const uint8_t build_id[] = { 0xde, 0xad, 0xbe, 0xef };
	struct profile *p = empty_profile(10101010);
	struct profile_function leaf = { "ns::leaf(int)", "_ZN2ns4leafEi", "leaf.cc", 3 };
	struct profile_function root = { "main", "main", "", 0 };
	struct profile_line lines[] = { { 0, 5 }, { 1, 12 } };
	uint32_t image, exe, kernel, f[4];

	assert_int_equal(profile_add_image(p, "/bin/a b", build_id, 4, &image), 0);
	assert_int_equal(profile_add_mapping(p, 0x400000, 0x500000, 0x1000, image, &exe), 0);
	kernel = add_mapping(p, 0xffffffff81000000, 0xffffffff82000000, 0, "[kernel.kallsyms]");
	f[0] = add_location(p, 0x400100, exe);
	f[1] = add_location(p, 0x400200, exe);
	f[2] = add_location(p, 0xffffffff81000100, kernel);
	f[3] = add_location(p, 0x1234, PROFILE_NONE);
	assert_int_equal(profile_add_function(p, &leaf, &image), 0);
	assert_int_equal(profile_add_function(p, &root, &image), 0);
	assert_int_equal(profile_set_lines(p, f[0], lines, 2), 0);
	assert_int_equal(profile_set_lines(p, f[1], lines + 1, 1), 0);
	add_sample(p, f, 2, add_labels(p, 7, 8, "a thread", false), 5);
	add_sample(p, f, 2, add_labels(p, 7, 9, "", false), 6);
	add_sample(p, (uint32_t[]){ f[2], f[1] }, 2, add_labels(p, 7, 8, "a thread", true), 1);
	add_sample(p, f + 3, 1, add_labels(p, 0, 0, "", false), 2);
	add_sample(p, f, 0, 0, 3);
	assert_int_equal(profile_string(p, "task-clock", &p->event), 0);
	p->time_ns = 1700000000000000000;
	p->duration_ns = 1500000000;
	assert_int_equal(profile_add_comment(p, "free text"), 0);
	assert_int_equal(profile_add_comment(p, "profil:ticks=many"), 0);
	p->totals = (struct profile_totals){ .known = true,
					     .ticks = 20,
					     .counted = 17,
					     .out_of_range = 1,
					     .excluded = 1,
					     .kernel = 1,
					     .cpu_ns = UINT64_MAX,
					     .bpf_ns_per_tick = 300,
					     .interrupt_ns = 900 };
	assert_int_equal(profile_add_lost(p, "ring=full", 1), 0);
	return p;
}

static void assert_same_lines(const struct profile *p, uint32_t a, const struct profile *q,
			      uint32_t b)
{
	const struct profile_location *x = &p->locations[a], *y = &q->locations[b];

	assert_true(x->address == y->address);
	assert_int_equal(x->mapping, y->mapping);
	assert_int_equal(x->line_count, y->line_count);
	for (uint32_t i = 0; i < x->line_count; i++) {
		const struct profile_line *m = &p->lines[x->first_line + i];
		const struct profile_line *n = &q->lines[y->first_line + i];
		const struct profile_function *f = &p->functions[m->function];
		const struct profile_function *g = &q->functions[n->function];

		assert_int_equal(m->line, n->line);
		assert_string_equal(f->name, g->name);
		assert_string_equal(f->system_name, g->system_name);
		assert_string_equal(f->file, g->file);
		assert_int_equal(f->start_line, g->start_line);
	}
}

static void assert_same_samples(const struct profile *p, const struct profile *q)
{
	assert_int_equal(p->sample_count, q->sample_count);
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_labels *a = &p->labels[p->samples[i].labels];
		const struct profile_labels *b = &q->labels[q->samples[i].labels];

		assert_int_equal(p->samples[i].depth, q->samples[i].depth);
		for (uint32_t j = 0; j < p->samples[i].depth; j++)
			assert_same_lines(p, p->frames[p->samples[i].first_frame + j], q,
					  q->frames[q->samples[i].first_frame + j]);
		assert_memory_equal(p->values + 2 * i, q->values + 2 * i, 16);
		assert_int_equal(a->pid, b->pid);
		assert_int_equal(a->tid, b->tid);
		assert_string_equal(a->comm, b->comm);
		assert_int_equal(a->kernel, b->kernel);
	}
}

static void assert_same_header(const struct profile *p, const struct profile *q)
{
	assert_string_equal(p->event, q->event);
	assert_int_equal(p->period_ns, q->period_ns);
	assert_int_equal(p->time_ns, q->time_ns);
	assert_int_equal(p->duration_ns, q->duration_ns);
	assert_int_equal(p->value_type_count, q->value_type_count);
	assert_int_equal(p->mapping_count, q->mapping_count);
	assert_memory_equal(p->mappings, q->mappings, p->mapping_count * sizeof(*p->mappings));
	for (size_t i = 0; i < p->image_count; i++) {
		assert_string_equal(p->images[i].path, q->images[i].path);
		assert_int_equal(p->images[i].build_id_size, q->images[i].build_id_size);
		assert_memory_equal(p->images[i].build_id, q->images[i].build_id,
				    PROFILE_BUILD_ID_MAX);
	}
}

static void assert_same_account(const struct profile_totals *a, const struct profile_totals *b)
{
	assert_int_equal(a->known, b->known);
	assert_int_equal(a->ticks, b->ticks);
	assert_int_equal(a->counted, b->counted);
	assert_int_equal(a->out_of_range, b->out_of_range);
	assert_int_equal(a->excluded, b->excluded);
	assert_int_equal(a->kernel, b->kernel);
	assert_true(a->cpu_ns == b->cpu_ns);
	assert_int_equal(a->bpf_ns_per_tick, b->bpf_ns_per_tick);
	assert_int_equal(a->interrupt_ns, b->interrupt_ns);
	assert_int_equal(a->lost_count, b->lost_count);
	for (size_t i = 0; i < a->lost_count; i++) {
		assert_string_equal(a->lost[i].cause, b->lost[i].cause);
		assert_int_equal(a->lost[i].count, b->lost[i].count);
	}
}

static void round_trip(void **state)
{
	struct profile *p = full_profile(), *q;
	struct bytes b = write_bytes(pprof, p);

	(void)state;
	q = read_file_good(&b);
	assert_string_equal(q->format, "pprof");
	assert_same_header(p, q);
	assert_same_samples(p, q);
	assert_int_equal(q->comment_count, 2);
	assert_string_equal(q->comments[0], "free text");
	assert_string_equal(q->comments[1], "profil:ticks=many");
	assert_same_account(&p->totals, &q->totals);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static void address_kind_travels(void **state)
{
	struct profile *p = full_profile(), *q;
	struct bytes b;

	(void)state;
	p->bits = 32;
	p->big_endian = true;
	b = write_bytes(pprof, p);
	q = read_file_good(&b);
	assert_int_equal(q->bits, 32);
	assert_true(q->big_endian);
	assert_int_equal(q->comment_count, 2);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static void no_account_stays_none(void **state)
{
	struct profile *p = empty_profile(5), *q;
	struct bytes b = write_bytes(pprof, p);

	(void)state;
	q = read_file_good(&b);
	assert_false(q->totals.known);
	assert_int_equal(q->comment_count, 0);
	assert_int_equal(q->sample_count, 0);
	assert_int_equal(q->period_ns, 5);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static void malformed_accounts_stay_comments(void **state)
{
	static const char *const texts[] = { "profil:ticks",	"profil:ticks=",
					     "profil:ticks=-1", "profil:ticks=1x",
					     "profil:ticks= 1", "profil:tocks=1",
					     "profil:lost.=1",	"profil:event=",
					     "profil:",		"profil:ticks=18446744073709551616",
					     "ticks=1" };
	struct profile *p = empty_profile(5), *q;
	struct bytes b;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_int_equal(profile_add_comment(p, texts[i]), 0);
	b = write_bytes(pprof, p);
	q = read_file_good(&b);
	assert_int_equal(q->comment_count, sizeof(texts) / sizeof(*texts));
	assert_false(q->totals.known);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

/* Only what samples use is written, and the main program's mapping. */
static void unused_is_left_out(void **state)
{
	struct profile *p = empty_profile(5), *q;
	uint32_t frame;
	struct bytes b;

	(void)state;
	add_mapping(p, 0x1000, 0x2000, 0, "/main");
	add_mapping(p, 0x3000, 0x4000, 0, "/unused");
	frame = add_location(p, 0x5000, add_mapping(p, 0x5000, 0x6000, 0, "/used"));
	add_location(p, 0x3000, 1);
	add_sample(p, &frame, 1, add_labels(p, 0, 0, "", false), 1);
	b = write_bytes(pprof, p);
	q = read_file_good(&b);
	assert_int_equal(q->mapping_count, 2);
	assert_string_equal(q->images[0].path, "/main");
	assert_string_equal(q->images[1].path, "/used");
	assert_int_equal(q->location_count, 1);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static struct bytes inflated(const struct bytes *b)
{
	struct bytes raw = { 0 };
	char reason[128];

	assert_int_equal(gzip_inflate(b->start, b->size, 1 << 20, &raw.start, &raw.size, reason,
				      sizeof(reason)),
			 0);
	return raw;
}

static void survive_anything(void **state)
{
	struct profile *p = full_profile();
	struct bytes b = write_bytes(pprof, p), raw = inflated(&b), small = small_file();

	(void)state;
	add_strings(&small);
	survive_truncation(pprof, &raw);
	survive_bit_flips(pprof, &raw);
	survive_truncation(pprof, &small);
	survive_bit_flips(pprof, &small);
	bytes_free(&raw);
	bytes_free(&b);
	bytes_free(&small);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_any_order),
		cmocka_unit_test(read_packed_and_unknown),
		cmocka_unit_test(reject),
		cmocka_unit_test(reject_line_without_function),
		cmocka_unit_test(reject_truncated),
		cmocka_unit_test(not_of_this_format),
		cmocka_unit_test(read_without_samples),
		cmocka_unit_test(same_address_different_lines),
		cmocka_unit_test(period_units),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(address_kind_travels),
		cmocka_unit_test(no_account_stays_none),
		cmocka_unit_test(malformed_accounts_stay_comments),
		cmocka_unit_test(unused_is_left_out),
		cmocka_unit_test(survive_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
