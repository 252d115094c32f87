// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "format_fixture.h"

#include "format/folded/folded.h"

static const struct format *const folded = &format_folded;

static struct profile *read_text(const char *text)
{
	struct bytes b = { 0 };
	struct profile *p;

	bytes_add_text(&b, text);
	p = read_good(folded, &b);
	bytes_free(&b);
	return p;
}

/* Sample i as the writer would print it, with all values: "main;work;leaf 10 20". */
static void assert_stack(const struct profile *p, size_t i, const char *expected)
{
	char text[256] = "";
	size_t used = 0;

	assert_true(i < p->sample_count);
	for (uint32_t depth = p->samples[i].depth; depth-- > 0;) {
		uint32_t location = p->frames[p->samples[i].first_frame + depth];
		const struct profile_location *l = &p->locations[location];

		assert_int_equal(l->line_count, 1);
		assert_int_equal(l->mapping, PROFILE_NONE);
		used += snprintf(text + used, sizeof(text) - used, "%s%s",
				 p->functions[p->lines[l->first_line].function].name,
				 depth ? ";" : "");
	}
	for (size_t value = 0; value < p->value_type_count; value++)
		used += snprintf(text + used, sizeof(text) - used, " %lld",
				 (long long)p->values[i * p->value_type_count + value]);
	assert_string_equal(text, expected);
}

static void read_lines(void **state)
{
	struct profile *p = read_text("main;work;leaf 42\nmain;work 7\nmain;work;leaf 1\n");

	(void)state;
	assert_int_equal(p->value_type_count, 1);
	assert_string_equal(p->value_types[0].type, "samples");
	assert_string_equal(p->value_types[0].unit, "count");
	assert_int_equal(p->sample_count, 2);
	assert_stack(p, 0, "main;work;leaf 43");
	assert_stack(p, 1, "main;work 7");
	assert_int_equal(p->location_count, 3);
	assert_int_equal(p->function_count, 3);
	assert_int_equal(p->warning_count, 0);
	profile_free(p);
}

/* A line of another writer, as one stack and its count; warning NULL: none. */
static const struct {
	const char *text;
	const char *stack;
	const char *warning;
} writers[] = {
	{ "a;b 3", "a;b 3", NULL },
	{ "a;b 3\r\n", "a;b 3", NULL },
	{ "a;b\t3\n", "a;b 3", NULL },
	{ "  a;b  3  \n", "a;b 3", NULL },
	{ "a;b 0\n", "a;b 0", NULL },
	{ "a;b -3\n", "a;b -3", NULL },
	{ "a;b 12.0\n", "a;b 12", NULL },
	{ "a;b 12.\n", "a;b 12", NULL },
	{ "a;b 1.5\n", "a;b 1500", "1 is shown as 1000" },
	{ "a;b 400.4\n", "a;b 400", "rounded" },
	{ "a;b -400.5\n", "a;b -401", "rounded" },
	{ "a;b .5\na;b 0.5\n", "a;b 1", NULL },
	{ "a;b 0.4\na;b 0.4\na;b 0.4\na;b 0.4\na;b 0.4\n", "a;b 2", NULL },
	{ "a;b 0.4\na;b -0.4\n", "a;b 0", NULL },
	{ "a;b 2.75\na;b -0.75\n", "a;b 2", NULL },
	{ "a;b 1e-10\n", "a;b 100", "1 is shown as 1000000000000" },
	{ "a;b 1e-18\n", "a;b 1", "1 is shown as 1000000000000000000" },
	{ "a;b 1e-19\n", "a;b 0", "rounded" },
	{ "a;b 1e-99999999999999999999\n", "a;b 0", "rounded" },
	{ "a;b 0e99999999999999999999\n", "a;b 0", NULL },
	{ "a;b 2.5e3\n", "a;b 2500", NULL },
	{ "a;b 7E+0\n", "a;b 7", NULL },
	{ "a;b 1200e-2\n", "a;b 12", NULL },
	{ "a;b 0.00000000000000000000000009e26\n", "a;b 9", NULL },
	{ "# by a profiler\r\na;b 3\r\n", "a;b 3", NULL },
	{ "a;b 9223372036854775806\n", "a;b 9223372036854775806", NULL },
	{ "\n\na;b 3\n\n", "a;b 3", NULL },
	{ "# interval: 100\n#\na;b 3\n", "a;b 3", NULL },
	{ "#0;b 3\n", "#0;b 3", NULL },
	{ "a;;b; 3\n", "a;b 3", "2 empty frame(s)" },
	{ ";a 3\n", "a 3", "1 empty frame(s)" },
	{ "; 3\n", " 3", "2 empty frame(s)" },
	{ "bash;foo(int, char const*);operator new (x) 3\n",
	  "bash;foo(int, char const*);operator new (x) 3", NULL },
	{ "swapper;start_kernel_[k];-;jit_[j];inl_[i] 3\n",
	  "swapper;start_kernel_[k];-;jit_[j];inl_[i] 3", NULL },
	{ "P1 2;a b 3\n", "P1 2;a b 3", NULL },
	{ "\xff\xfe;b 3\n", "\xff\xfe;b 3", NULL },
	{ "[no pc] 3\n", " 3", NULL },
	{ "0x401000 3\n", "0x401000 3", NULL },
	{ "a\\x3bb;App\\x\\Foo\\x5cx3b;\\x7e 3\n", "a;b;App\\x\\Foo\\x3b;\\x7e 3", NULL },
};

static void read_what_writers_make(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(writers) / sizeof(*writers); i++) {
		struct profile *p = read_text(writers[i].text);

		assert_int_equal(p->sample_count, 1);
		assert_stack(p, 0, writers[i].stack);
		if (writers[i].warning)
			assert_warned(p, writers[i].warning);
		else
			assert_int_equal(p->warning_count, 0);
		profile_free(p);
	}
}

/* Lines are a comparison only if all have two numbers at their ends. */
static void read_comparison(void **state)
{
	struct profile *p = read_text("a;b 10 20\na;c 5 0\n");

	(void)state;
	assert_int_equal(p->value_type_count, 2);
	assert_string_equal(p->value_types[0].type, "before");
	assert_string_equal(p->value_types[1].type, "samples");
	assert_int_equal(profile_total(p, NULL), 20);
	assert_stack(p, 0, "a;b 10 20");
	assert_stack(p, 1, "a;c 5 0");
	profile_free(p);
	p = read_text("a;b 10 20\na;c 5\n");
	assert_int_equal(p->value_type_count, 1);
	assert_stack(p, 0, "a;b 10 20");
	assert_stack(p, 1, "a;c 5");
	profile_free(p);
	/* No comparison has a stack twice: these are names that end with a number. */
	p = read_text("java;GC Thread 3 17\njava;main 0 1\njava;GC Thread 4 20\n");
	assert_int_equal(p->value_type_count, 1);
	assert_stack(p, 0, "java;GC Thread 3 17");
	assert_stack(p, 2, "java;GC Thread 4 20");
	profile_free(p);
	p = read_text("a;b 0.25 0.5\na;c 5 0\n");
	assert_stack(p, 0, "a;b 250 500");
	assert_string_equal(p->value_types[profile_value(p, NULL)].type, "samples/1000");
	profile_free(p);
}

/* Enough valid lines before it for the format to be detected. */
#define GOOD "a;b 1\n"
#define TEN  GOOD GOOD GOOD GOOD GOOD GOOD GOOD GOOD GOOD GOOD

static void read_bad_text(const char *text, size_t size, const char *words)
{
	struct bytes b = { 0 };

	bytes_add(&b, text, size);
	read_bad(folded, &b, words);
	bytes_free(&b);
}

static void read_largest_counts(void **state)
{
	struct profile *p = read_text(TEN "a;b 9223372036854775807\nc -9223372036854775808\n"
					  "d 9223372036854775807.7\n");

	(void)state;
	assert_true(p->values[p->sample_count - 3] == INT64_MAX);
	assert_true(p->values[p->sample_count - 2] == INT64_MIN);
	assert_true(p->values[p->sample_count - 1] == INT64_MAX);
	profile_free(p);
}

/* Two lines after twenty good ones, and another good one. */
static void skip_bad_lines(void **state)
{
	static const char *const bad[] = {
		"a;b",	   "a;b c",   "12",	"a;b .",     "a;b 0x5", "a;b 5 .",
		"a;b --5", "a;b 1e",  "a;b e5", "a;b .e5",   "a;b 1e+", "a;b 1e5.5",
		"a;b +5",  "a;b nan", "a;b -",	"a;b 1.2.3",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct profile *p;
		char text[256];

		snprintf(text, sizeof(text), TEN TEN "%s\n%s\nc 5\n", bad[i], bad[i]);
		p = read_text(text);
		assert_warned(p,
			      "2 line(s) were not read, the first is line 21: the line does not");
		assert_int_equal(profile_total(p, NULL), 25);
		assert_int_equal(p->sample_count, 2);
		assert_false(p->salvaged);
		profile_free(p);
	}
}

/* Detection would see all of an input in memory. */
static void read_undetected(const struct bytes *b, const char *words)
{
	struct input in = { .path = "input", .bytes = b->start, .size = b->size };
	struct profile *p = profile_new();
	struct error e = { 0 };

	assert_true(folded->read(&in, p, &e) < 0);
	if (!strstr(e.what, words))
		fail_msg("\"%s\" does not say \"%s\"", e.what, words);
	profile_free(p);
}

static void reject(void **state)
{
	struct bytes b = { 0 };
	size_t lines = 0;

	(void)state;
	/* Behind what detection reads, most lines are bad. */
	for (; b.size <= INPUT_WINDOW; lines++)
		bytes_add_text(&b, GOOD);
	for (size_t i = 0; i <= lines; i++)
		bytes_add_text(&b, "a\n");
	read_undetected(&b, ": the line does not end with a count");
	bytes_free(&b);
	read_bad_text(TEN "a;b 9223372036854775808\n", strlen(TEN) + 24, "input:11: the count has");
	read_bad_text(TEN "a;b 18446744073709551617\n", strlen(TEN) + 25,
		      "input:11: the count has");
	read_bad_text(TEN "a;b -9223372036854775809\n", strlen(TEN) + 25,
		      "input:11: the count has");
}

/* A NUL behind what detection reads. */
static void reject_nul(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	while (b.size <= INPUT_WINDOW)
		bytes_add_text(&b, GOOD);
	bytes_add(&b, "a\0b 5\n", 6);
	read_undetected(&b, ": the line has a NUL");
	bytes_free(&b);
}

static void keep_what_was_read_before_an_error(void **state)
{
	static const char text[] = TEN "c;d 4.6\nc;d 0.4\na;b 9223372036854775808\ne 7\n";
	struct input in = { .path = "input", .bytes = (const uint8_t *)text, .size = strlen(text) };
	struct profile *p = profile_new();
	struct error e = { 0 };

	(void)state;
	assert_true(folded->read(&in, p, &e) < 0);
	assert_int_equal(p->sample_count, 2);
	assert_int_equal(profile_total(p, NULL), 15);
	profile_free(p);
	p = profile_new();
	in = (struct input){
		.path = "input",
		.bytes = (const uint8_t *)text,
		.size = strlen(text),
		.options.salvage = true,
	};
	assert_int_equal(folded->read(&in, p, &e), 0);
	assert_true(p->salvaged);
	assert_warned(p, "1 line(s) were not read, the first is line 13: the count has more than");
	assert_int_equal(profile_total(p, NULL), 22);
	profile_free(p);
}

static bool detects(const char *text)
{
	struct input in = { .bytes = (const uint8_t *)text, .size = strlen(text) };

	return folded->detect(&in);
}

static void detect(void **state)
{
	static const char *const others[] = {
		"hello\n",
		"12\n",
		"#include <stdio.h>\n\nint main(void)\n{\n\treturn 0;\n}\n",
		"# callgrind format\nversion: 1\ncreator: x\nevents: Ir\n\nfn=main\n16 400\n",
		"events: Ir\nfn=(1) main\n1 2\n2 3\n3 4\n4 5\n5 6\n",
		"Nov 20 16:44:01 host kernel: started\nNov 20 16:44:02 host kernel: done 5\n",
		"prog 1234 1.234567: 1 cycles:\n\t401000 main+0x10 (/bin/prog)\n",
		"{\"a\": 5\n}\n",
		"a;b 5\n\x01\n",
		"image /bin/x\nepoch 2000-01-01 12\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (detects(others[i]))
			fail_msg("taken for folded: %s", others[i]);
	assert_true(detects("a 5"));
	assert_true(detects("# by a profiler\na;b 5\n"));
	assert_true(detects(TEN "a;b\n"));
	assert_false(detects(GOOD GOOD "a;b\n"));
	assert_false(detects("# nothing else\n"));
}

/* Lines that are longer than the window, and a name of 1 MB. */
static void long_lines(void **state)
{
	struct bytes b = { 0 };
	struct profile *p;
	char *name = malloc(1 << 20);

	(void)state;
	assert_non_null(name);
	memset(name, 'x', 1 << 20);
	for (int i = 0; i < 100000; i++)
		bytes_add_text(&b, "recurse;");
	bytes_add(&b, name, 1 << 20);
	bytes_add_text(&b, " 5\na 1\n");
	p = read_good(folded, &b);
	assert_int_equal(p->samples[0].depth, 100001);
	assert_int_equal(strlen(p->functions[0].name), 1 << 20);
	assert_int_equal(profile_total(p, NULL), 6);
	profile_free(p);
	bytes_free(&b);
	free(name);
}

static uint32_t add_named(struct profile *p, const char *const *names, uint32_t count)
{
	struct profile_line lines[4] = { 0 };
	uint32_t location;

	for (uint32_t i = 0; i < count; i++)
		lines[i].function = add_function(p, names[i], "", 0);
	assert_int_equal(profile_add_line_location(p, 0, PROFILE_NONE, lines, count, &location), 0);
	return location;
}

static void write_stacks(void **state)
{
	static const char *const inlined[] = { "inner", "outer" }, *const main_name[] = { "main" };
	struct profile *p = empty_profile(1000000);
	uint32_t frames[] = {
		add_location(p, 0x402010, add_mapping(p, 0x402000, 0x403000, 0, "/lib/a b;c.so")),
		add_named(p, inlined, 2),
		add_location(p, 0x77, PROFILE_NONE),
		add_named(p, main_name, 1),
	};
	uint32_t labels = add_labels(p, 1, 1, "x", false), other = add_labels(p, 2, 2, "y", true);
	struct bytes b;

	(void)state;
	add_sample(p, frames, 4, labels, 7);
	add_sample(p, frames + 3, 1, labels, 1);
	add_sample(p, frames + 3, 1, other, 2);
	add_sample(p, frames + 1, 1, other, 0);
	add_sample(p, NULL, 0, other, 3);
	b = write_bytes(folded, p);
	bytes_add(&b, "", 1);
	assert_string_equal((char *)b.start, "main;0x77;outer;inner;a b\\x3bc.so+0x10 7\n"
					     "main 3\n[no pc] 3\n");
	bytes_free(&b);
	profile_free(p);
}

/* A name, and its text in the file. */
static const char *const escapes[][2] = {
	{ "plain", "plain" },
	{ "a b", "a b" },
	{ "Ljava/lang/String;.x", "Ljava/lang/String\\x3b.x" },
	{ "a\nb\r", "a\\x0ab\\x0d" },
	{ "App\\Foo", "App\\Foo" },
	{ "a\\x3b", "a\\x5cx3b" },
	{ "a\\x5cx3b", "a\\x5cx5cx3b" },
	{ "\\\\x3b\\", "\\\\x5cx3b\\" },
	{ "\\x7e\\x/a\\x3", "\\x7e\\x/a\\x3" },
	{ "\033[2J\x7f", "\\x1b[2J\\x7f" },
	{ "\\x1b", "\\x5cx1b" },
	{ "\xe2\x80\xae\xc2\x9b", "\\xe2\\x80\\xae\\xc2\\x9b" }, /* U+202E, U+009B */
	{ "\xc3\xbc\xe4\xbd\xa0", "\xc3\xbc\xe4\xbd\xa0" },
	{ "\xff\xe4\xbd\xed\xa0\x80", "\\xff\\xe4\\xbd\\xed\\xa0\\x80" }, /* invalid UTF-8 */
	{ "thread 3", "thread\\x203" },
	{ "x 1 2.5", "x 1\\x202.5" },
	{ "x -1", "x\\x20-1" },
	{ "x 1e5", "x\\x201e5" },
	{ "x .5", "x\\x20.5" },
	{ "x 3b", "x 3b" },
	{ " a ", "\\x20a\\x20" },
	{ "\ta\t5", "\\x09a\\x095" },
	{ "# a", "\\x23 a" },
	{ "#", "\\x23" },
	{ "#private", "#private" },
	{ "12", "12" },
	{ "\xc3\xa9\xff", "\xc3\xa9\\xff" },
};

static void names_come_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(escapes) / sizeof(*escapes); i++) {
		struct profile *p = empty_profile(0), *back;
		uint32_t frame = add_named(p, &escapes[i][0], 1);
		char *line = NULL;
		struct bytes b;

		add_sample(p, &frame, 1, add_labels(p, 0, 0, "", false), 5);
		b = write_bytes(folded, p);
		assert_true(asprintf(&line, "%s 5\n", escapes[i][1]) > 0);
		assert_int_equal(b.size, strlen(line));
		assert_memory_equal(b.start, line, b.size);
		back = read_good(folded, &b);
		assert_int_equal(back->value_type_count, 1);
		assert_string_equal(back->functions[0].name, escapes[i][0]);
		assert_int_equal(profile_total(back, NULL), 5);
		profile_free(back);
		profile_free(p);
		bytes_free(&b);
		free(line);
	}
}

static void write_is_stable(void **state)
{
	struct profile *p = read_text("main;a b;c 5\nmain 1\n[no pc] 2\nmain;x -7\n");
	struct bytes once = write_bytes(folded, p), twice;
	struct profile *back = read_good(folded, &once);

	(void)state;
	twice = write_bytes(folded, back);
	assert_int_equal(once.size, twice.size);
	assert_memory_equal(once.start, twice.start, once.size);
	profile_free(back);
	profile_free(p);
	bytes_free(&once);
	bytes_free(&twice);
}

static void survive_corruption(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	bytes_add_text(&b, TEN "main;a\\x3bb;c 5.5\r\n# x\n[no pc] 7\n\n;x 9223372036854775806");
	survive_truncation(folded, &b);
	survive_bit_flips(folded, &b);
	bytes_free(&b);
}

#define STACKS 1000000
#define DEPTH  16

/* All stacks differ. unnamed: without names, so that the writer makes them. */
static struct profile *many_stacks(bool unnamed)
{
	struct profile *p = empty_profile(0);
	uint32_t labels = add_labels(p, 0, 0, "", false), locations[1000], frames[DEPTH];
	uint32_t mapping = add_mapping(p, 0x400000, 0x500000, 0x400000, "/lib/libexample.so.1");

	for (int i = 0; i < 1000; i++) {
		char text[64];
		const char *name = text;

		snprintf(text, sizeof(text), "example::space::function_number_%d(int)", i);
		locations[i] =
			unnamed ? add_location(p, 0x400000 + i, mapping) : add_named(p, &name, 1);
	}
	for (int i = 0; i < STACKS; i++) {
		for (int depth = 0; depth < DEPTH; depth++)
			frames[depth] =
				locations[(depth < 2 ? i / (depth ? 1000 : 1) : depth) % 1000];
		add_sample(p, frames, DEPTH, labels, 1);
	}
	assert_int_equal(p->sample_count, STACKS);
	return p;
}

static ssize_t count_lines(void *cookie, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		*(size_t *)cookie += text[i] == '\n';
	return size;
}

/* A writer that compared each stack with all others would not end within the test's time limit. */
static void a_million_stacks(void **state)
{
	struct error e = { 0 };

	(void)state;
	for (int unnamed = 0; unnamed < 2; unnamed++) {
		struct profile *p = many_stacks(unnamed);
		size_t lines = 0;
		FILE *out =
			fopencookie(&lines, "w", (cookie_io_functions_t){ .write = count_lines });

		assert_non_null(out);
		assert_int_equal(folded->write(p, &(struct format_options){ 0 }, out, &e), 0);
		fclose(out);
		assert_int_equal(lines, STACKS);
		profile_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_lines),
		cmocka_unit_test(read_what_writers_make),
		cmocka_unit_test(read_comparison),
		cmocka_unit_test(read_largest_counts),
		cmocka_unit_test(skip_bad_lines),
		cmocka_unit_test(reject),
		cmocka_unit_test(reject_nul),
		cmocka_unit_test(keep_what_was_read_before_an_error),
		cmocka_unit_test(detect),
		cmocka_unit_test(long_lines),
		cmocka_unit_test(write_stacks),
		cmocka_unit_test(names_come_back),
		cmocka_unit_test(write_is_stable),
		cmocka_unit_test(survive_corruption),
		cmocka_unit_test(a_million_stacks),
	};

	return cmocka_run_group_tests_name("folded", tests, NULL, NULL);
}
