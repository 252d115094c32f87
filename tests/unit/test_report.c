// SPDX-License-Identifier: GPL-2.0-only
/* The views of user/report: exact texts of small profiles made by hand. */
#include <inttypes.h>
#include <json-c/json.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "print_fixture.h"
#include "report/dump/dump.h"
#include "report/flat/flat.h"
#include "report/report.h"

#define NO_OPTIONS (&(struct report_table_options){ 0 })

/* ---- making profiles ---- */

static struct profile *empty_profile(void)
{
	struct profile *p = profile_new();

	assert_non_null(p);
	assert_int_equal(profile_add_value_type(p, "samples", "count"), 0);
	return p;
}

/* A mapping of 64 KiB, from offset 0 of the file. */
static uint32_t add_mapping(struct profile *p, const char *path, uint64_t start)
{
	uint32_t image, mapping;

	assert_int_equal(profile_add_image(p, path, NULL, 0, &image), 0);
	assert_int_equal(profile_add_mapping(p, start, start + 0x10000, 0, image, &mapping), 0);
	return mapping;
}

static uint32_t add_pc(struct profile *p, uint64_t address, uint32_t mapping)
{
	uint32_t location;

	assert_int_equal(profile_add_location(p, address, mapping, &location), 0);
	return location;
}

static uint32_t add_function(struct profile *p, const char *name)
{
	struct profile_function f = { .name = name, .system_name = name, .file = "" };
	uint32_t function;

	assert_int_equal(profile_add_function(p, &f, &function), 0);
	return function;
}

/* A location in a function; with `outer`, one where `name` is inlined into that. */
static uint32_t add_inlined(struct profile *p, uint64_t address, uint32_t mapping, const char *name,
			    const char *outer)
{
	struct profile_line lines[2] = { { .function = add_function(p, name) } };
	uint32_t location = add_pc(p, address, mapping);

	if (outer)
		lines[1].function = add_function(p, outer);
	assert_int_equal(profile_set_lines(p, location, lines, outer ? 2 : 1), 0);
	return location;
}

static uint32_t add_named(struct profile *p, uint64_t address, uint32_t mapping, const char *name)
{
	return add_inlined(p, address, mapping, name, NULL);
}

static void add_labelled(struct profile *p, int64_t count, const struct profile_labels *l,
			 const uint32_t *frames, uint32_t depth)
{
	struct profile_labels none = { .comm = "" };
	uint32_t labels;

	assert_int_equal(profile_add_labels(p, l ? l : &none, &labels), 0);
	assert_int_equal(profile_add_sample(p, frames, depth, labels, &count), 0);
}

#define DEPTH(...)		 (sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
#define STACK(...)		 (const uint32_t[]){ __VA_ARGS__ }, DEPTH(__VA_ARGS__)
#define add_stack(p, count, ...) add_labelled(p, count, NULL, STACK(__VA_ARGS__))

static void add_without_pc(struct profile *p, int64_t count)
{
	const uint32_t no_frame = 0;

	add_labelled(p, count, NULL, &no_frame, 0);
}

/* 10 samples: 6 work, 2 memcpy, 1 without a name in libc, 1 without any image. */
static struct profile *flat_profile(void)
{
	struct profile *p = empty_profile();
	uint32_t exe = add_mapping(p, "/usr/bin/prog", 0x400000);
	uint32_t libc = add_mapping(p, "/lib/libc.so.6", 0x7f0000000000);

	add_stack(p, 4, add_named(p, 0x401000, exe, "work(int, char)"));
	add_stack(p, 2, add_named(p, 0x401004, exe, "work(int, char)"));
	add_stack(p, 2, add_named(p, 0x7f0000000100, libc, "memcpy"));
	add_stack(p, 1, add_pc(p, 0x7f0000000abc, libc));
	add_stack(p, 1, add_pc(p, 0xdead, PROFILE_NONE));
	return p;
}

/* main calls fib, which calls itself; leaf is inlined into fib. */
static struct profile *stack_profile(void)
{
	struct profile *p = empty_profile();
	uint32_t exe = add_mapping(p, "/usr/bin/prog", 0x400000);
	uint32_t main_pc = add_named(p, 0x401000, exe, "main");
	uint32_t fib = add_named(p, 0x402000, exe, "fib");
	uint32_t again = add_named(p, 0x402010, exe, "fib");
	uint32_t inlined = add_inlined(p, 0x402020, exe, "leaf", "fib");

	add_stack(p, 3, fib, again, again, main_pc);
	add_stack(p, 1, inlined, again, main_pc);
	add_without_pc(p, 4);
	return p;
}

/* ---- printed text, each valid until the next ---- */

static const char *table(const struct profile *p, const struct report_table_options *options)
{
	FILE *out = print_begin();

	return print_end(out, report_table(p, options, out));
}

static const char *view(int (*report)(const struct profile *p, FILE *out), const struct profile *p)
{
	FILE *out = print_begin();

	return print_end(out, report(p, out));
}

static int json(const struct profile *p, FILE *out)
{
	return report_json(p, &(struct report_table_options){ 0 }, out);
}

static const char *summary(const struct profile *p, const char *target)
{
	FILE *out = print_begin();

	return print_end(out, report_summary(p, NULL, "tool: ", target, out));
}

static const char *unnamed(const struct profile *p)
{
	FILE *out = print_begin();

	return print_end(out, report_unnamed(p, NULL, false, "tool: ", out));
}

/* ---- the table ---- */

static void test_table_empty(void **state)
{
	struct profile *p = empty_profile();

	(void)state;
	assert_string_equal(table(p, NO_OPTIONS), "samples  %  cum%  function  image\n");
	add_stack(p, 0, add_pc(p, 0x10, PROFILE_NONE));
	assert_string_equal(table(p, NO_OPTIONS), "samples  %  cum%  function  image\n");
	profile_free(p);
	p = profile_new();
	assert_non_null(p);
	assert_string_equal(table(p, NO_OPTIONS), "samples  %  cum%  function  image\n");
	profile_free(p);
}

static void test_table_flat(void **state)
{
	struct profile *p = flat_profile();

	(void)state;
	assert_string_equal(table(p, NO_OPTIONS),
			    "samples      %    cum%  function         image\n"
			    "      6  60.00   60.00  work(int, char)  prog\n"
			    "      2  20.00   80.00  memcpy           libc.so.6\n"
			    "      1  10.00   90.00  0xdead           [unknown]\n"
			    "      1  10.00  100.00  libc.so.6+0xabc  libc.so.6\n");
	profile_free(p);
}

/* A location with several lines is a stack, without any other frame. */
static void test_table_inlined_flat(void **state)
{
	struct profile *p = empty_profile();
	uint32_t exe = add_mapping(p, "/a", 0x1000);

	(void)state;
	add_stack(p, 2, add_inlined(p, 0x1000, exe, "inner", "outer"));
	add_stack(p, 1, add_named(p, 0x1008, exe, "outer"));
	assert_string_equal(table(p, NO_OPTIONS), "self  self%  total  total%  function  image\n"
						  "   2  66.67      2   66.67  inner     a\n"
						  "   1  33.33      3  100.00  outer     a\n");
	profile_free(p);
}

static void test_table_stacks(void **state)
{
	struct profile *p = stack_profile();

	(void)state;
	assert_string_equal(table(p, NO_OPTIONS),
			    "self  self%  total  total%  function  image\n"
			    "   4  50.00      4   50.00  [no pc]   [unknown]\n"
			    "   3  37.50      4   50.00  fib       prog\n"
			    "   1  12.50      1   12.50  leaf      prog\n"
			    "   0   0.00      4   50.00  main      prog\n");
	profile_free(p);
}

/* A name is one function in images of the same path, and two functions in different images. */
static void test_table_key(void **state)
{
	struct profile *p = empty_profile();
	const uint8_t build_id[] = { 1, 2 };
	uint32_t a = add_mapping(p, "/x/a", 0x10000), b = add_mapping(p, "/y/a", 0x30000);
	uint32_t image, again;

	(void)state;
	assert_int_equal(profile_add_image(p, "/x/a", build_id, 2, &image), 0);
	assert_int_equal(profile_add_mapping(p, 0x50000, 0x60000, 0, image, &again), 0);
	add_stack(p, 1, add_named(p, 0x10000, a, "f"));
	add_stack(p, 1, add_named(p, 0x50000, again, "f"));
	add_stack(p, 1, add_named(p, 0x30000, b, "f"));
	add_stack(p, 1, add_pc(p, 0x10008, a));
	add_stack(p, 1, add_pc(p, 0x50008, again));
	assert_string_equal(table(p, NO_OPTIONS), "samples      %    cum%  function  image\n"
						  "      2  40.00   40.00  a+0x8     a\n"
						  "      2  40.00   80.00  f         a\n"
						  "      1  20.00  100.00  f         a\n");
	profile_free(p);
}

static void test_table_limit(void **state)
{
	struct profile *p = flat_profile();

	(void)state;
	assert_string_equal(table(p, &(struct report_table_options){ .limit = 2 }),
			    "samples      %   cum%  function         image\n"
			    "      6  60.00  60.00  work(int, char)  prog\n"
			    "      2  20.00  80.00  memcpy           libc.so.6\n"
			    "... 2 more functions, 20.00 %\n");
	assert_non_null(strstr(table(p, &(struct report_table_options){ .limit = 3 }),
			       "\n... 1 more function, 10.00 %\n"));
	assert_null(strstr(table(p, &(struct report_table_options){ .limit = 4 }), "..."));
	assert_null(strstr(table(p, &(struct report_table_options){ .limit = 5 }), "..."));
	profile_free(p);
}

static void test_table_color(void **state)
{
	struct profile *p = empty_profile();

	(void)state;
	add_stack(p, 95, add_named(p, 1, PROFILE_NONE, "a"));
	add_stack(p, 5, add_named(p, 2, PROFILE_NONE, "b"));
	add_stack(p, 1, add_named(p, 3, PROFILE_NONE, "c"));
	assert_string_equal(table(p, &(struct report_table_options){ .color = true }),
			    "\033[1msamples      %    cum%  function  image\033[0m\n"
			    "     95  \033[31m94.06\033[0m   94.06  a         [unknown]\n"
			    "      5   4.95   99.01  b         [unknown]\n"
			    "      1   0.99  100.00  c         [unknown]\n");
	profile_free(p);
}

static void assert_lines_fit(const char *text, size_t width)
{
	while (*text) {
		size_t size = strcspn(text, "\n"), columns = 0;

		for (size_t i = 0; i < size; i++)
			columns += (text[i] & 0xc0) != 0x80;
		assert_true(columns <= width);
		text += size + 1;
	}
}

static void test_table_width(void **state)
{
	struct profile *p = empty_profile();
	uint32_t lib = add_mapping(p, "/lib/libwith-a-long-name-indeed.so.1", 0x1000);
	struct report_table_options options = { .width = 60 };

	(void)state;
	add_stack(p, 2, add_named(p, 0x1000, lib, "std::vector<int>::begin_of_a_long_one() const"));
	add_stack(p, 1, add_named(p, 0x1004, lib, "f"));
	assert_string_equal(table(p, &options),
			    "samples      %    cum%  function                image\n"
			    "      2  66.67   66.67  std::vecto...e() const  libwi...so.1\n"
			    "      1  33.33  100.00  f                       libwi...so.1\n");
	for (options.width = 56; options.width < 140; options.width++)
		assert_lines_fit(table(p, &options), options.width);
	/* A terminal too narrow for anything, and none at all */
	for (options.width = 1; options.width < 56; options.width++)
		assert_non_null(strstr(table(p, &options), "..."));
	options.width = 0;
	assert_null(strstr(table(p, &options), "..."));
	profile_free(p);
}

/* In a pipe a long name is complete, and does not widen the column of the other rows. */
static void test_table_pipe(void **state)
{
	struct profile *p = empty_profile();
	uint32_t lib = add_mapping(p, "/lib/l.so", 0x1000);
	char name[301] = "", expected[1024];

	(void)state;
	memset(name, 'n', 300);
	add_stack(p, 2, add_named(p, 0x1000, lib, name));
	add_stack(p, 2, add_named(p, 0x1004, lib, "z"));
	snprintf(expected, sizeof(expected),
		 "samples      %%    cum%%  %-60s  image\n"
		 "      2  50.00   50.00  %-60s  l.so\n"
		 "      2  50.00  100.00  %-60s  l.so\n",
		 "function", name, "z");
	assert_string_equal(table(p, NO_OPTIONS), expected);
	profile_free(p);
}

static void test_table_large_counts(void **state)
{
	struct profile *p = empty_profile();

	(void)state;
	add_stack(p, 1, add_named(p, 1, PROFILE_NONE, "one"));
	add_stack(p, INT64_C(1) << 31, add_named(p, 2, PROFILE_NONE, "31"));
	add_stack(p, (INT64_C(1) << 32) + 1, add_named(p, 3, PROFILE_NONE, "32"));
	add_stack(p, INT64_MAX, add_named(p, 4, PROFILE_NONE, "max"));
	add_stack(p, -7, add_named(p, 5, PROFILE_NONE, "negative"));
	assert_string_equal(table(p, NO_OPTIONS),
			    "            samples       %    cum%  function  image\n"
			    "9223372036854775807  100.00  100.00  max       [unknown]\n"
			    "         4294967297    0.00  100.00  32        [unknown]\n"
			    "         2147483648    0.00  100.00  31        [unknown]\n"
			    "                 -7    0.00  100.00  negative  [unknown]\n"
			    "                  1    0.00  100.00  one       [unknown]\n");
	/* Sums saturate at 63 bits, what percentages are of does not. */
	add_stack(p, INT64_MAX, add_named(p, 6, PROFILE_NONE, "max"));
	add_stack(p, INT64_MAX, add_named(p, 7, PROFILE_NONE, "max"));
	assert_non_null(strstr(table(p, NO_OPTIONS), "\n9223372036854775807  33.33  33.33  max"));
	profile_free(p);
}

/* Equal rows are ordered by total, then by name, then by image. */
static void test_table_order(void **state)
{
	struct profile *p = empty_profile();
	uint32_t x = add_mapping(p, "/x", 0x1000), y = add_mapping(p, "/y", 0x20000);
	uint32_t by = add_named(p, 0x20000, y, "b"), bx = add_named(p, 0x1000, x, "b");
	uint32_t a = add_named(p, 0x1010, x, "a"), z = add_named(p, 0x1020, x, "z");

	(void)state;
	add_stack(p, 1, by);
	add_stack(p, 1, bx);
	add_stack(p, 1, a, z);
	add_stack(p, 1, z);
	assert_string_equal(table(p, NO_OPTIONS), "self  self%  total  total%  function  image\n"
						  "   1  25.00      2   50.00  z         x\n"
						  "   1  25.00      1   25.00  a         x\n"
						  "   1  25.00      1   25.00  b         x\n"
						  "   1  25.00      1   25.00  b         y\n");
	profile_free(p);
}

static void test_table_hostile(void **state)
{
	struct profile *p = empty_profile();
	uint32_t evil = add_mapping(p, "/tmp/\033]0;x\a\xff", 0x1000);

	(void)state;
	add_stack(p, 1, add_named(p, 0x1000, evil, "a\n\033[2Jb\xc2\x9b\xe2\x80\xae\xc3\xa9"));
	assert_string_equal(
		table(p, NO_OPTIONS),
		"samples       %    cum%  function                            image\n"
		"      1  100.00  100.00  a\\x0a\\x1b[2Jb\\xc2\\x9b\\xe2\\x80\\xae\xc3\xa9  "
		"\\x1b]0;x\\x07\\xff\n");
	profile_free(p);
}

#define COUNT "\u6570\u3048\u308b" /* three characters of two columns */
#define CAFE  "cafe\u0301"	   /* with an accent that combines */
#define SMILE "\U0001f600"

static void test_table_wide(void **state)
{
	struct profile *p = empty_profile();
	uint32_t prog = add_mapping(p, "/usr/bin/prog", 0x1000);
	struct report_table_options narrow = { .width = 48 };

	(void)state;
	add_stack(p, 4, add_named(p, 0x1000, prog, COUNT));
	add_stack(p, 3, add_named(p, 0x1010, prog, CAFE));
	add_stack(p, 2, add_named(p, 0x1020, prog, SMILE "::smile"));
	add_stack(p, 1, add_named(p, 0x1030, prog, COUNT "::" COUNT "::" COUNT));
	assert_string_equal(table(p, NO_OPTIONS),
			    "samples      %    cum%  function                image\n"
			    "      4  40.00   40.00  " COUNT "                  prog\n"
			    "      3  30.00   70.00  " CAFE "                    prog\n"
			    "      2  20.00   90.00  " SMILE "::smile               prog\n"
			    "      1  10.00  100.00  " COUNT "::" COUNT "::" COUNT "  prog\n");
	assert_string_equal(table(p, &narrow),
			    "samples      %    cum%  function           image\n"
			    "      4  40.00   40.00  " COUNT "             prog\n"
			    "      3  30.00   70.00  " CAFE "               prog\n"
			    "      2  20.00   90.00  " SMILE "::smile          prog\n"
			    "      1  10.00  100.00  " COUNT ":...:" COUNT "  prog\n");
	profile_free(p);
}

/* ---- JSON ---- */

/*
 * How the tests parse JSON. From json-c 0.18 on, its strict mode rejects all characters beyond
 * ASCII.
 */
static int parser_flags(void)
{
	return json_c_version_num() < (0 << 16 | 18 << 8) ? JSON_TOKENER_STRICT : 0;
}

static bool is_utf8(const char *text)
{
	locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0), before;
	size_t length;

	assert_non_null(utf8);
	before = uselocale(utf8);
	length = mbstowcs(NULL, text, 0);
	uselocale(before);
	freelocale(utf8);
	return length != (size_t)-1;
}

static struct json_object *parse(const char *text)
{
	struct json_object *object;
	struct json_tokener *tokener = json_tokener_new();

	assert_non_null(tokener);
	assert_true(is_utf8(text));
	json_tokener_set_flags(tokener, parser_flags());
	object = json_tokener_parse_ex(tokener, text, strlen(text));
	assert_int_equal(json_tokener_get_error(tokener), json_tokener_success);
	json_tokener_free(tokener);
	assert_int_equal(text[strlen(text) - 1], '\n');
	return object;
}

static struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	assert_true(json_object_object_get_ex(object, key, &value));
	return value;
}

static const char *text_member(struct json_object *object, const char *key)
{
	return json_object_get_string(member(object, key));
}

static void set_totals(struct profile *p)
{
	p->totals = (struct profile_totals){
		.known = true,
		.ticks = 989,
		.counted = 988,
		.kernel = 12,
		.cpu_ns = 9980000000,
		.bpf_ns_per_tick = 85,
		.interrupt_ns = 12100,
		.interrupts = 5000,
		.own_ns = 120000000,
		.machine_ns = 2400000000,
	};
	assert_int_equal(profile_add_lost(p, "ring_full", 1), 0);
	assert_int_equal(profile_add_lost(p, "no_memory", 0), 0);
	assert_int_equal(profile_string(p, "task-clock", &p->event), 0);
	profile_set_tick_ns(p, 10101010);
	p->duration_ns = 10020000000;
}

static void test_json_full(void **state)
{
	struct profile *p = stack_profile();
	struct json_object *object;

	(void)state;
	set_totals(p);
	assert_string_equal(view(json, p),
			    "{\n"
			    "  \"value\": \"samples\",\n"
			    "  \"event\": \"task-clock\",\n"
			    "  \"period_ns\": 10101010,\n"
			    "  \"duration_s\": 10.020,\n"
			    "  \"cpu_s\": 0.081,\n"
			    "  \"cpu_percent\": 0.81,\n"
			    "  \"ticks\": 989,\n"
			    "  \"counted\": 988,\n"
			    "  \"out_of_range\": 0,\n"
			    "  \"excluded\": 0,\n"
			    "  \"kernel\": 12,\n"
			    "  \"cpu_ns\": 9980000000,\n"
			    "  \"interrupt_ns\": 12100,\n"
			    "  \"interrupts\": 5000,\n"
			    "  \"own_ns\": 120000000,\n"
			    "  \"machine_ns\": 2400000000,\n"
			    "  \"lost\": { \"ring_full\": 1, \"no_memory\": 0 },\n"
			    "  \"due\": 988,\n"
			    "  \"cost\": { \"bpf_ns_per_tick\": 85, \"cpu_percent\": 0.12, "
			    "\"own_s\": 0.120, \"own_percent\": 1.20, "
			    "\"machine_percent\": 7.52 },\n"
			    "  \"samples\": 8,\n"
			    "  \"functions\": [\n"
			    "    { \"name\": \"[no pc]\", \"image\": \"[unknown]\", \"self\": 4, "
			    "\"self_percent\": 50.00, \"total\": 4, "
			    "\"cpu_s\": 0.040, \"cpu_percent\": 0.40, "
			    "\"total_cpu_s\": 0.040, \"total_cpu_percent\": 0.40 },\n"
			    "    { \"name\": \"fib\", \"image\": \"/usr/bin/prog\", \"self\": 3, "
			    "\"self_percent\": 37.50, \"total\": 4, "
			    "\"cpu_s\": 0.030, \"cpu_percent\": 0.30, "
			    "\"total_cpu_s\": 0.040, \"total_cpu_percent\": 0.40 },\n"
			    "    { \"name\": \"leaf\", \"image\": \"/usr/bin/prog\", \"self\": 1, "
			    "\"self_percent\": 12.50, \"total\": 1, "
			    "\"cpu_s\": 0.010, \"cpu_percent\": 0.10, "
			    "\"total_cpu_s\": 0.010, \"total_cpu_percent\": 0.10 },\n"
			    "    { \"name\": \"main\", \"image\": \"/usr/bin/prog\", \"self\": 0, "
			    "\"self_percent\": 0.00, \"total\": 4, "
			    "\"cpu_s\": 0.000, \"cpu_percent\": 0.00, "
			    "\"total_cpu_s\": 0.040, \"total_cpu_percent\": 0.40 }\n"
			    "  ]\n"
			    "}\n");
	object = parse(printed);
	assert_true(json_object_get_double(member(object, "duration_s")) == 10.02);
	assert_true(json_object_get_double(member(member(object, "cost"), "cpu_percent")) == 0.12);
	assert_int_equal(json_object_array_length(member(object, "functions")), 4);
	json_object_put(object);
	profile_free(p);
}

static void test_json_unknown(void **state)
{
	struct profile *p = empty_profile();

	(void)state;
	assert_string_equal(view(json, p),
			    "{\n  \"value\": \"samples\",\n  \"functions\": []\n}\n");
	p->totals.known = true;
	assert_string_equal(view(json, p), "{\n"
					   "  \"value\": \"samples\",\n"
					   "  \"ticks\": 0,\n"
					   "  \"counted\": 0,\n"
					   "  \"out_of_range\": 0,\n"
					   "  \"excluded\": 0,\n"
					   "  \"kernel\": 0,\n"
					   "  \"lost\": { },\n"
					   "  \"functions\": []\n"
					   "}\n");
	p->totals.bpf_ns_per_tick = 5;
	assert_non_null(strstr(view(json, p), "\n  \"cost\": { \"bpf_ns_per_tick\": 5 },\n"));
	profile_free(p);
}

static void test_json_hostile(void **state)
{
	struct profile *p = empty_profile();
	uint32_t evil = add_mapping(p, "/a\"\\\xff", 0x1000);
	struct json_object *object, *row, *lost;

	(void)state;
	add_stack(p, INT64_MAX, add_named(p, 0x1000, evil, "\n\033\"\xe2\x80\xed\xa0\x80\xc3\xa9"));
	p->totals.known = true;
	p->totals.ticks = UINT64_MAX;
	assert_int_equal(profile_add_lost(p, "twice\xff", 2), 0);
	assert_int_equal(profile_add_lost(p, "twice\xff", 3), 0);
	object = parse(view(json, p));
	assert_true(json_object_get_uint64(member(object, "ticks")) == UINT64_MAX);
	lost = member(object, "lost");
	assert_int_equal(json_object_object_length(lost), 1);
	assert_int_equal(json_object_get_int(member(lost, "twice\xef\xbf\xbd")), 5);
	row = json_object_array_get_idx(member(object, "functions"), 0);
	assert_string_equal(text_member(row, "name"),
			    "\n\033\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
			    "\xc3\xa9");
	assert_string_equal(text_member(row, "image"), "/a\"\\\xef\xbf\xbd");
	assert_true(json_object_get_int64(member(row, "self")) == INT64_MAX);
	assert_true(json_object_get_double(member(row, "self_percent")) == 100);
	json_object_put(object);
	profile_free(p);
}

/* Percentages are of all samples, so that their sum is 100, except for rounding. */
static void test_json_percent_sum(void **state)
{
	struct profile *p = empty_profile();
	struct json_object *object, *rows;
	double sum = 0;

	(void)state;
	for (uint64_t i = 1; i <= 37; i++)
		add_stack(p, i * 3, add_pc(p, i, PROFILE_NONE));
	object = parse(view(json, p));
	rows = member(object, "functions");
	assert_int_equal(json_object_array_length(rows), 37);
	for (size_t i = 0; i < 37; i++)
		sum += json_object_get_double(
			member(json_object_array_get_idx(rows, i), "self_percent"));
	assert_true(sum > 100 - 37 * 0.005 && sum < 100 + 37 * 0.005);
	json_object_put(object);
	profile_free(p);
}

/* ---- summary ---- */

static void test_summary_full(void **state)
{
	struct profile *p = empty_profile();

	(void)state;
	set_totals(p);
	assert_string_equal(
		summary(p, "python3 (PID 1234)"),
		"tool: python3 (PID 1234): 10.02 s, 9.98 s of CPU; task-clock, 99 Hz asked, "
		"reached within chance\n"
		"tool: ticks 989 = counted 988 + out_of_range 0 + excluded 0 + lost 1 "
		"(ring_full 1); 12 of the counted in the kernel\n"
		"tool: cost: 85 ns BPF + 12.1 us interrupt per tick, 0.12 % of the target's CPU; "
		"with the recorder's own 0.12 s 1.32 %, 7.52 % of the machine's\n");
	profile_free(p);
}

/* Ticks of a busy and of an idle target: a rate is missed only where chance does not explain it. */
static void test_rate(void **state)
{
	static const struct {
		uint64_t ticks, cpu_ms;
		const char *rate; /* as the summary has it */
	} cases[] = {
		{ 6, 98, "reached within chance" },	  /* 61 Hz */
		{ 0, 12, "reached within chance" },	  /* 0 of 1.2 */
		{ 9, 65, "reached within chance" },	  /* 138 Hz */
		{ 9603, 98000, "reached within chance" }, /* 98.0 Hz of 99 */
		{ 9400, 98000, "95.9 Hz reached" },	  /* beyond it */
		{ 60, 980, "61.2 Hz reached" },		  /* the same rate as the first, of more */
		{ 0, 98, "0.0 Hz reached" },		  /* none of 9.7 */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct profile *p = empty_profile();
		char text[64];

		set_totals(p);
		p->totals.ticks = cases[i].ticks;
		p->totals.cpu_ns = cases[i].cpu_ms * 1000000;
		snprintf(text, sizeof(text), "99 Hz asked, %s\n", cases[i].rate);
		if (!strstr(summary(p, "x"), text))
			fail_msg("%s is not in: %s", text, summary(p, "x"));
		profile_free(p);
	}
}

/* Of a target that ran for next to nothing, the cost is that of the machine. */
static void test_idle_cost(void **state)
{
	struct profile *p = empty_profile();

	(void)state;
	set_totals(p);
	p->totals.ticks = p->totals.counted = 6;
	p->totals.cpu_ns = 98000000;
	assert_non_null(strstr(summary(p, "x"),
			       "\ntool: cost: 85 ns BPF + 12.1 us interrupt per tick; with the "
			       "recorder's own 0.12 s 7.52 % of the machine's CPUs\n"));
	assert_null(strstr(summary(p, "x"), "target's"));
	p->totals.machine_ns = 0; /* unknown */
	assert_non_null(strstr(summary(p, "x"), "of the target's CPU"));
	profile_free(p);
}

static void test_summary_parts(void **state)
{
	struct profile *p = empty_profile();

	(void)state;
	assert_string_equal(summary(p, "x"), "");
	p->duration_ns = 1500000000;
	assert_string_equal(summary(p, "a\033"), "tool: a\\x1b: 1.50 s\n");
	assert_string_equal(summary(p, NULL), "tool: 1.50 s\n");
	p->duration_ns = 0;
	profile_set_tick_ns(p, 3000000);
	assert_string_equal(summary(p, "x"), "tool: x: 333.3 Hz asked\n");
	profile_set_tick_ns(p, 0);
	p->totals.known = true;
	p->totals.ticks = 7;
	p->totals.counted = 1;
	assert_int_equal(profile_add_lost(p, "a", 2), 0);
	assert_int_equal(profile_add_lost(p, "b\n", 4), 0);
	assert_string_equal(summary(p, "x"),
			    "tool: ticks 7 = counted 1 + out_of_range 0 + excluded 0 + lost 6 "
			    "(a 2, b\\x0a 4); 0 of the counted in the kernel\n");
	p->totals.ticks = 8; /* a file with a wrong sum */
	assert_non_null(strstr(summary(p, "x"), "ticks 8 != counted 1"));
	p->totals.bpf_ns_per_tick = 1500;
	assert_non_null(strstr(summary(p, "x"),
			       "\ntool: cost: 1.5 us BPF per tick, and that of the interrupt"));
	profile_free(p);
}

static void test_unnamed(void **state)
{
	struct profile *p = empty_profile();
	uint32_t a = add_mapping(p, "/lib/liba.so", 0x10000);
	uint32_t b = add_mapping(p, "/lib/libb\t.so", 0x30000);
	uint32_t c = add_mapping(p, "/lib/libc.so", 0x50000);

	(void)state;
	assert_string_equal(unnamed(p), "");
	add_stack(p, 1, add_pc(p, 0x10000, a));
	add_stack(p, 2, add_pc(p, 0x30000, b), add_pc(p, 0x10000, a));
	add_stack(p, 1, add_pc(p, 0x30008, b));
	add_stack(p, 3, add_pc(p, 0x50008, c));
	add_stack(p, 92, add_named(p, 0x30010, b, "named"));
	add_stack(p, 1, add_pc(p, 0x1, PROFILE_NONE));
	add_without_pc(p, 100);
	assert_string_equal(unnamed(p), "");
	p->images[0].unnamed = "stripped: no symbol table";
	p->images[1].unnamed = "gone";
	assert_string_equal(
		unnamed(p),
		"tool: libb\\x09.so: 3 samples (1.50 %) without symbols: gone\n"
		"tool: liba.so: 1 sample (0.50 %) without symbols: stripped: no symbol table\n");
	profile_free(p);
}

static void test_many_unnamed(void **state)
{
	struct profile *p = empty_profile();
	char path[32];

	(void)state;
	for (int i = 0; i < 12; i++) {
		uint64_t start = 0x10000 * (i + 1);
		uint32_t mapping;

		snprintf(path, sizeof(path), "/lib/%d.so", i);
		mapping = add_mapping(p, path, start);
		p->images[i].unnamed = "gone";
		add_stack(p, i == 11 ? 89 : 1, add_pc(p, start, mapping));
	}
	assert_non_null(strstr(unnamed(p),
			       "tool: 8.so: 1 sample (1.00 %) without symbols: gone\n"
			       "tool: 2 more images: 2 samples (2.00 %) without symbols\n"));
	assert_null(strstr(unnamed(p), "tool: 9.so"));
	profile_free(p);
}

static const char *brief(const struct profile *p)
{
	FILE *out = print_begin();

	return print_end(out,
			 report_brief(p, &(struct rows_options){ 0 }, "python3", false, out, out));
}

static void test_brief_lines(void **state)
{
	struct profile *p = empty_profile();
	uint32_t a = add_mapping(p, "/lib/liba.so", 0x10000);
	uint32_t b = add_mapping(p, "/lib/libb\t.so", 0x30000);
	char name[16];

	(void)state;
	assert_string_equal(brief(p), "");
	set_totals(p);
	for (int i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		add_stack(p, i < 2 ? 30 : 1, add_named(p, 0x10000 + i, a, name));
	}
	add_stack(p, 20, add_named(p, 0x30000, b, "g\n"));
	add_stack(p, 10, add_named(p, 0x30008, b, "h"));
	/* 60 of liba's 70 samples are in two functions. */
	p->totals.machine_ns = 2 * p->duration_ns;
	assert_string_equal(brief(p), "python3, 10.0 s: on CPU 9.98 s (1.00 of 2 CPUs)\n"
				      "70 % in liba.so, mostly 2 functions; 30 % in "
				      "libb\\x09.so\n"
				      "988 samples at 99 Hz, lost 1 (ring_full 1); "
				      "cost 1.32 % of its CPU\n");
	/* Of a thread, all of its time; what a line has no room for is in the next. */
	p->totals.threads = 1;
	p->totals.wall_ns = p->duration_ns;
	p->totals.runnable_ns = 20000000;
	assert_non_null(strstr(brief(p), "python3, 1 thread, 10.0 s: on CPU 100 %\n"));
	p->totals.threads = 20;
	p->totals.wall_ns = 20 * p->duration_ns;
	p->totals.runnable_ns = 2000000000;
	assert_non_null(strstr(brief(p), "python3, 20 threads, 10.0 s:\n"
					 "  on CPU 9.98 s, runnable 2.00 s (no free CPU), sleeping "
					 "188 s\n"));
	add_stack(p, 100, add_named(p, 0x30000, b, "g\n"));
	assert_non_null(strstr(brief(p), "\n65 % in libb\\x09.so, mostly g\\x0a; 35 % in liba"));
	/* What is not 0 is never omitted. */
	p->totals.out_of_range = 5;
	p->totals.excluded = 2;
	assert_non_null(strstr(
		brief(p), ", 5 out_of_range, 2 excluded, lost 1 (ring_full 1), but 989 ticks"));
	profile_free(p);
}

static void test_brief_causes(void **state)
{
	static const char stripped[] = "stripped: no symbol table" SYMBOL_DEBUG_HINT;
	static const char *const reasons[] = {
		stripped, stripped, "gone", "gone", "denied", "odd"
	};
	struct profile *p = empty_profile();
	char path[32];

	(void)state;
	for (int i = 0; i < 6; i++) {
		uint64_t start = 0x10000 * (i + 1);
		uint32_t mapping;

		snprintf(path, sizeof(path), "/lib/%d.so", i);
		mapping = add_mapping(p, path, start);
		p->images[i].unnamed = reasons[i];
		add_stack(p, 10, add_pc(p, start, mapping));
	}
	/* Neither file is there, so no package is known. */
	assert_non_null(strstr(brief(p), "2 images without symbols: 33 %: debug packages or "
					 "--debuginfod have them\n"));
	assert_non_null(strstr(brief(p),
			       "\n2.so and 1 other without symbols: 33 %: gone; -v has 2 more\n"));
	/* Less than one percent is for -v. */
	add_stack(p, 10000, add_named(p, 0x10008, 0, "named"));
	assert_null(strstr(brief(p), "without"));
	profile_free(p);
}

/* ---- dump ---- */

static struct profile *dump_profile(void)
{
	struct profile *p = stack_profile();
	struct profile_labels thread = {
		.pid = 1234, .tid = 1235, .comm = "my prog", .kernel = true
	};
	struct profile_labels kernel = { .comm = "", .kernel = true };
	uint32_t id, anonymous = add_pc(p, 0xffffffff81000000, PROFILE_NONE);
	uint32_t main_pc = add_named(p, 0x401000, 0, "main");

	p->format = "gperftools";
	p->bits = 64;
	p->return_addresses = true;
	assert_int_equal(profile_add_image(p, "/lib/b\n", (const uint8_t[]){ 0xab, 1 }, 2, &id), 0);
	assert_int_equal(profile_add_mapping(p, 0x10, UINT64_MAX, 0x1000, id, &id), 0);
	add_labelled(p, 2, &thread, STACK(anonymous, main_pc));
	add_labelled(p, INT64_C(1) << 40, &kernel, STACK(anonymous));
	assert_int_equal(profile_add_comment(p, "cpu: \033x"), 0);
	return p;
}

static void test_dump(void **state)
{
	struct profile *p = dump_profile();

	(void)state;
	set_totals(p);
	assert_string_equal(view(report_dump, p),
			    "format gperftools\n"
			    "bits 64\n"
			    "endian little\n"
			    "event task-clock\n"
			    "period_ns 10101010\n"
			    "duration_s 10.020000000\n"
			    "ticks 989\n"
			    "counted 988\n"
			    "out_of_range 0\n"
			    "excluded 0\n"
			    "kernel 12\n"
			    "cpu_ns 9980000000\n"
			    "bpf_ns_per_tick 85\n"
			    "interrupt_ns 12100\n"
			    "interrupts 5000\n"
			    "own_ns 120000000\n"
			    "machine_ns 2400000000\n"
			    "lost ring_full 1\n"
			    "lost no_memory 0\n"
			    "samples 1099511627786\n"
			    "comment cpu: \\x1bx\n"
			    "mappings:\n"
			    "0x400000-0x410000 0x0 /usr/bin/prog\n"
			    "0x10-0xffffffffffffffff 0x1000 /lib/b\\x0a build-id=ab01\n"
			    "stacks:\n"
			    "3 0x402000 0x402011 0x402011 0x401001 # fib;fib;fib;main\n"
			    "1 0x402020 0x402011 0x401001 # leaf (inlined);fib;fib;main\n"
			    "4\n"
			    "2 0xffffffff81000000 0x401001 [1234/1235 my prog kernel] # ?;main\n"
			    "1099511627776 0xffffffff81000000 [kernel]\n");
	profile_free(p);
}

static void test_dump_empty(void **state)
{
	struct profile *p = empty_profile();

	(void)state;
	assert_string_equal(view(report_dump, p), "samples 0\nmappings:\nstacks:\n");
	assert_string_equal(view(report_dump_json, p), "{\n"
						       "  \"samples\": 0,\n"
						       "  \"values\": [\n"
						       "    { \"type\": \"samples\", \"unit\": "
						       "\"count\" }\n"
						       "  ],\n"
						       "  \"stacks\": [],\n"
						       "  \"mappings\": []\n"
						       "}\n");
	profile_free(p);
}

static void test_dump_json(void **state)
{
	struct profile *p = dump_profile();

	(void)state;
	p->big_endian = true;
	profile_set_tick_ns(p, 10000000);
	assert_string_equal(
		view(report_dump_json, p),
		"{\n"
		"  \"format\": \"gperftools\",\n"
		"  \"bits\": 64,\n"
		"  \"endian\": \"big\",\n"
		"  \"period_ns\": 10000000,\n"
		"  \"samples\": 1099511627786,\n"
		"  \"values\": [\n"
		"    { \"type\": \"samples\", \"unit\": \"count\" }\n"
		"  ],\n"
		"  \"stacks\": [\n"
		"    { \"count\": 3, \"pcs\": [ \"0x402000\", \"0x402011\", \"0x402011\", "
		"\"0x401001\" ], \"functions\": [ [\"fib\"], [\"fib\"], [\"fib\"], [\"main\"] ] "
		"},\n"
		"    { \"count\": 1, \"pcs\": [ \"0x402020\", \"0x402011\", \"0x401001\" ], "
		"\"functions\": [ [\"leaf\", \"fib\"], [\"fib\"], [\"main\"] ] },\n"
		"    { \"count\": 4, \"pcs\": [ ] },\n"
		"    { \"count\": 2, \"pcs\": [ \"0xffffffff81000000\", \"0x401001\" ], "
		"\"functions\": [ [], [\"main\"] ], \"labels\": { \"pid\": 1234, \"tid\": 1235, "
		"\"comm\": \"my prog\", \"kernel\": true } },\n"
		"    { \"count\": 1099511627776, \"pcs\": [ \"0xffffffff81000000\" ], "
		"\"labels\": { \"kernel\": true } }\n"
		"  ],\n"
		"  \"mappings\": [\n"
		"    { \"start\": \"0x400000\", \"limit\": \"0x410000\", \"offset\": \"0x0\", "
		"\"path\": \"/usr/bin/prog\" },\n"
		"    { \"start\": \"0x10\", \"limit\": \"0xffffffffffffffff\", "
		"\"offset\": \"0x1000\", \"path\": \"/lib/b\\n\", \"build_id\": \"ab01\" }\n"
		"  ],\n"
		"  \"comments\": [\n"
		"    \"cpu: \\u001bx\"\n"
		"  ]\n"
		"}\n");
	json_object_put(parse(printed));
	profile_free(p);
}

/* The value that counts samples is found by its name, at any position. */
static void test_count_value(void **state)
{
	struct profile *p = profile_new();
	struct profile_labels none = { .comm = "" };
	const int64_t values[] = { 70000000, 7 };
	uint32_t labels, pc;

	(void)state;
	assert_non_null(p);
	assert_int_equal(profile_add_value_type(p, "cpu", "nanoseconds"), 0);
	assert_int_equal(profile_add_value_type(p, "samples", "count"), 0);
	assert_int_equal(profile_add_labels(p, &none, &labels), 0);
	pc = add_pc(p, 0x5, PROFILE_NONE);
	assert_int_equal(profile_add_sample(p, &pc, 1, labels, values), 0);
	assert_string_equal(table(p, NO_OPTIONS), "samples       %    cum%  function  image\n"
						  "      7  100.00  100.00  0x5       [unknown]\n");
	assert_non_null(strstr(view(report_dump, p), "\nstacks:\n7 0x5\n"));
	profile_free(p);
}

static int free_printed(void **state)
{
	(void)state;
	free(printed);
	printed = NULL;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_empty),
		cmocka_unit_test(test_table_flat),
		cmocka_unit_test(test_table_inlined_flat),
		cmocka_unit_test(test_table_stacks),
		cmocka_unit_test(test_table_key),
		cmocka_unit_test(test_table_limit),
		cmocka_unit_test(test_table_color),
		cmocka_unit_test(test_table_width),
		cmocka_unit_test(test_table_pipe),
		cmocka_unit_test(test_table_large_counts),
		cmocka_unit_test(test_table_order),
		cmocka_unit_test(test_table_hostile),
		cmocka_unit_test(test_table_wide),
		cmocka_unit_test(test_json_full),
		cmocka_unit_test(test_json_unknown),
		cmocka_unit_test(test_json_hostile),
		cmocka_unit_test(test_json_percent_sum),
		cmocka_unit_test(test_summary_full),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_idle_cost),
		cmocka_unit_test(test_summary_parts),
		cmocka_unit_test(test_unnamed),
		cmocka_unit_test(test_many_unnamed),
		cmocka_unit_test(test_brief_lines),
		cmocka_unit_test(test_brief_causes),
		cmocka_unit_test(test_dump),
		cmocka_unit_test(test_dump_empty),
		cmocka_unit_test(test_dump_json),
		cmocka_unit_test(test_count_value),
	};

	return cmocka_run_group_tests(tests, NULL, free_printed);
}
