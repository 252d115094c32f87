// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "format_fixture.h"

#include "report/dump/dump.h"

static uint32_t at_line(struct profile *p, const char *name, const char *file, uint32_t number)
{
	struct profile_line line = { .function = add_function(p, name, file, 0), .line = number };
	uint32_t id;

	assert_int_equal(profile_add_line_location(p, 0, PROFILE_NONE, &line, 1, &id), 0);
	return id;
}

/* The members that a profile of one clock does not have. */
static struct profile *full_profile(void)
{
	const struct profile_tag tags[] = { { .key = "user", .text = "a\tb" },
					    { .key = "size", .number = 64, .unit = "bytes" },
					    { .key = "no\xffutf8", .number = 1 } };
	struct profile_labels labels = { .comm = "", .tags = tags, .tag_count = 3 };
	struct profile *p = profile_new();
	struct profile_arc arc = { .kind = PROFILE_CALL, .count = 3 };
	uint32_t mapping;

	assert_non_null(p);
	assert_int_equal(profile_add_value_type(p, "Ir", "count"), 0);
	assert_int_equal(profile_add_value_type(p, "Dw", "count"), 0);
	p->value_types[1].period = 100;
	assert_int_equal(profile_string(p, "Data Write", &p->value_types[1].title), 0);
	assert_int_equal(profile_string(p, "2 Ir", &p->value_types[1].formula), 0);
	assert_int_equal(profile_string(p, "walnut", &p->host), 0);
	assert_int_equal(profile_string(p, "prog -x", &p->command), 0);
	p->bucket = 16;
	p->time_ns = 1500000000000000001;
	mapping = add_mapping(p, 0x1000, 0x2000, 0, "/bin/a");
	p->mappings[mapping].linked = true;
	p->images[0].text_start = 0x1000;
	p->images[0].text_size = 0x800;
	arc.from = at_line(p, "main", "a.c", 7);
	arc.to = at_line(p, "work", "", 0);
	assert_int_equal(profile_add_labels(p, &labels, &arc.labels), 0);
	assert_int_equal(profile_add_sample(p, &arc.from, 1, arc.labels, (int64_t[]){ 5, 6 }), 0);
	arc.labels = add_labels(p, 0, 0, "", false);
	assert_int_equal(profile_add_arc(p, &arc, (int64_t[]){ 70, 80 }), 0);
	arc.kind = PROFILE_CONDITIONAL_JUMP;
	arc.executed = 4;
	assert_int_equal(profile_add_arc(p, &arc, NULL), 0);
	assert_int_equal(profile_add_extra(p, "dcpi", 0, "label foo", 9), 0);
	assert_int_equal(profile_add_extra(p, "pprof", PROFILE_NONE, "\0a\0", 3), 0);
	return p;
}

static char *dump(int (*print)(const struct profile *p, FILE *out), const struct profile *p)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(print(p, out), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void as_text(void **state)
{
	struct profile *p = full_profile();
	char *text = dump(report_dump, p);

	(void)state;
	assert_string_equal(text, "host walnut\n"
				  "command prog -x\n"
				  "bucket 16\n"
				  "value Ir count\n"
				  "value Dw count period=100 = 2 Ir : Data Write\n"
				  "time_ns 1500000000000000001\n"
				  "samples 5\n"
				  "mappings:\n"
				  "0x1000-0x2000 0x0 /bin/a text_start=0x1000 text_size=0x800 "
				  "linked\n"
				  "stacks:\n"
				  "5,6 0x0 [user=a\\x09b size=64bytes no\\xffutf8=1] "
				  "# main (a.c:7)\n"
				  "calls:\n"
				  "3 70,80 0x0 0x0 # main (a.c:7);work\n"
				  "jumps:\n"
				  "3/4 0x0 0x0 # main (a.c:7);work\n"
				  "extras:\n"
				  "dcpi /bin/a: label foo\n"
				  "pprof: \\x00a\\x00\n");
	free(text);
	profile_free(p);
}

static void as_json(void **state)
{
	struct profile *p = full_profile();
	char *text = dump(report_dump_json, p);

	(void)state;
	assert_string_equal(
		text,
		"{\n"
		"  \"host\": \"walnut\",\n"
		"  \"command\": \"prog -x\",\n"
		"  \"bucket\": 16,\n"
		"  \"time_ns\": 1500000000000000001,\n"
		"  \"samples\": 5,\n"
		"  \"values\": [\n"
		"    { \"type\": \"Ir\", \"unit\": \"count\" },\n"
		"    { \"type\": \"Dw\", \"unit\": \"count\", \"period\": 100, "
		"\"title\": \"Data Write\", \"formula\": \"2 Ir\" }\n"
		"  ],\n"
		"  \"stacks\": [\n"
		"    { \"count\": 5, \"pcs\": [ \"0x0\" ], \"functions\": [ [\"main\"] ], "
		"\"values\": [ 5, 6 ], "
		"\"labels\": { \"tags\": { \"user\": \"a\\tb\", \"size\": 64, "
		"\"no\xef\xbf\xbdutf8\": 1 } } }\n"
		"  ],\n"
		"  \"mappings\": [\n"
		"    { \"start\": \"0x1000\", \"limit\": \"0x2000\", \"offset\": \"0x0\", "
		"\"path\": \"/bin/a\", \"text_start\": \"0x1000\", \"text_size\": \"0x800\", "
		"\"linked\": true }\n"
		"  ],\n"
		"  \"calls\": [\n"
		"    { \"count\": 3, \"from\": \"0x0\", \"to\": \"0x0\", "
		"\"functions\": [ [\"main\"], [\"work\"] ], \"cost\": 70, "
		"\"values\": [ 70, 80 ] }\n"
		"  ],\n"
		"  \"jumps\": [\n"
		"    { \"count\": 3, \"executed\": 4, \"from\": \"0x0\", \"to\": \"0x0\", "
		"\"functions\": [ [\"main\"], [\"work\"] ] }\n"
		"  ],\n"
		"  \"extras\": [\n"
		"    { \"format\": \"dcpi\", \"path\": \"/bin/a\", \"text\": \"label foo\" },\n"
		"    { \"format\": \"pprof\", \"text\": \"\" }\n"
		"  ]\n"
		"}\n");
	free(text);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_text),
		cmocka_unit_test(as_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
