// SPDX-License-Identifier: GPL-2.0-only
/* Listings of instructions and of source lines; an objdump that fails or misbehaves. */
#include "print_fixture.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/annotation.h"
#include "report/annotate/code_loops.h"
#include "report/disassembly.h"
#include "report/annotate/annotate.h"

static char directory[] = "/tmp/profil-annotate.XXXXXX";

static const char *path_of(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	const char *path = path_of(name);
	FILE *out = fopen(path, "we");

	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static int make_directory(void **state)
{
	(void)state;
	/* Root reads only what all users may read, wherever the sources of the tests are. */
	return mkdtemp(directory) && chmod(directory, 0755) == 0 ? chdir(directory) : -1;
}

static int remove_directory(void **state)
{
	static const char *const names[] = { "objdump", "own.c", "inline.h", "nul.c", "fifo" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(path_of(names[i]));
	return rmdir(directory);
}

/* ---- printed text, each valid until the next ---- */

static const char *listing(struct annotation *a, const struct report_listing_options *o)
{
	FILE *out = print_begin();

	return print_end(out, report_listing(a, o, out));
}

static const char *notes(const struct annotation *a)
{
	FILE *out = print_begin();

	annotation_notes(a, "# ", out);
	return print_end(out, 0);
}

/* ---- instructions ---- */

static struct instruction code[] = {
	{ 0x100, (char *)"push   %rbp", 0, false },
	{ 0x101, (char *)"xor    %eax,%eax", 0, false },
	{ 0x103, (char *)"nop", 0, false },
	{ 0x104, (char *)"nop", 0, false },
	{ 0x105, (char *)"mov    (%rdi),%edx", 0, false },
	{ 0x108, (char *)"add    %edx,%eax", 0, false },
	{ 0x10a, (char *)"dec    %ecx", 0, false },
	{ 0x10c, (char *)"jne    108 <f+0x8>", 0x108, false },
	{ 0x10e, (char *)"call   200 <g(int)>", 0, false },
	{ 0x112, (char *)"jmp    105 <f+0x5>", 0x105, false },
	{ 0x114, (char *)"ret", 0, false },
	{ 0x115, (char *)"nop", 0, false },
	{ 0x116, (char *)"nop", 0, false },
	{ 0x117, (char *)"nop", 0, false },
};
#define CODE_COUNT (sizeof(code) / sizeof(*code))

static char samples_title[] = "samples";

struct fixture {
	struct profile *p;
	struct annotation a;
	size_t values[1];
	char *titles[1];
	int64_t self[CODE_COUNT], total[CODE_COUNT];
};

static void begin(struct fixture *f, bool stacks)
{
	*f = (struct fixture){ .p = profile_new(), .titles = { samples_title } };
	assert_non_null(f->p);
	assert_int_equal(profile_add_value_type(f->p, "samples", "count"), 0);
	f->self[4] = f->total[4] = 30;
	f->self[5] = f->total[5] = 168;
	f->self[8] = 2;
	f->total[8] = 202;
	code[4].is_target = code[5].is_target = true;
	f->a = (struct annotation){
		.p = f->p,
		.image = PROFILE_NONE,
		.stacks = stacks,
		.values = f->values,
		.titles = f->titles,
		.value_count = 1,
		.samples = 200,
		.total = 400,
		.samples_weight = 200,
		.total_weight = 400,
		.code = { code, CODE_COUNT, CODE_COUNT },
		.code_counts = { .self = f->self, .total = f->total },
	};
}

static void end(struct fixture *f)
{
	source_files_free(&f->a.files);
	profile_free(f->a.code_places);
	profile_free(f->p);
}

static void test_code(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, false);
	f.total[8] = 2; /* without stacks */
	assert_string_equal(listing(&f.a, &(struct report_listing_options){ 0 }),
			    "samples      %  address     B  instruction\n"
			    "                               ... 2 instructions\n"
			    "      0   0.00    0x103        nop\n"
			    "      0   0.00    0x104        nop\n"
			    "     30  15.00    0x105  : /   mov    (%rdi),%edx\n"
			    "    168  84.00    0x108  : |/  add    %edx,%eax\n"
			    "      0   0.00    0x10a    ||  dec    %ecx\n"
			    "      0   0.00    0x10c    |\\  jne    108 <f+0x8>\n"
			    "      2   1.00    0x10e    |   call   200 <g(int)>\n"
			    "      0   0.00    0x112    \\   jmp    105 <f+0x5>\n"
			    "      0   0.00    0x114        ret\n"
			    "                               ... 3 instructions\n");
	end(&f);
}

/* Calls have their inclusive cost; percentages are of the function's total. */
static void test_code_with_stacks(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, true);
	assert_string_equal(listing(&f.a, &(struct report_listing_options){ .width = 80 }),
			    "self  total      %  address     B  instruction\n"
			    "                                   ... 2 instructions\n"
			    "   0      0   0.00    0x103        nop\n"
			    "   0      0   0.00    0x104        nop\n"
			    "  30     30   7.50    0x105  : /   mov    (%rdi),%edx\n"
			    " 168    168  42.00    0x108  : |/  add    %edx,%eax\n"
			    "   0      0   0.00    0x10a    ||  dec    %ecx\n"
			    "   0      0   0.00    0x10c    |\\  jne    108 <f+0x8>\n"
			    "   2    202  50.50    0x10e    |   call   200 <g(int)>\n"
			    "   0      0   0.00    0x112    \\   jmp    105 <f+0x5>\n"
			    "   0      0   0.00    0x114        ret\n"
			    "                                   ... 3 instructions\n");
	end(&f);
}

/* Lines of the instructions: the first half in f, the rest in a function inlined into f. */
static void add_places(struct fixture *f)
{
	struct profile *p = profile_new();
	struct profile_function own = { "f", "f", path_of("own.c"), 1 };
	struct profile_function inner = { "get", "get", "inline.h", 9 };
	uint32_t f_id, get_id, location;

	assert_non_null(p);
	assert_int_equal(profile_add_function(p, &own, &f_id), 0);
	assert_int_equal(profile_add_function(p, &inner, &get_id), 0);
	for (size_t i = 0; i < CODE_COUNT; i++) {
		struct profile_line lines[] = { { .function = get_id, .line = 9 },
						{ .function = f_id, .line = i < 4 ? 2 : 3 } };

		assert_int_equal(profile_add_location(p, code[i].address, PROFILE_NONE, &location),
				 0);
		assert_int_equal(
			profile_set_lines(p, location, i < 6 ? &lines[1] : lines, i < 6 ? 1 : 2),
			0);
	}
	f->a.code_places = p;
}

static void test_code_with_sources(void **state)
{
	struct fixture f;

	(void)state;
	write_file("own.c", "int f(int *p)\n{\n\tfor (;;) /* \033[2J */\n\t\tget(p);\n}\n", 0644);
	begin(&f, false);
	f.total[8] = 2;
	add_places(&f);
	assert_string_equal(listing(&f.a, &(struct report_listing_options){ .width = 80 }),
			    "samples      %  address     B  instruction\n"
			    "                               ... 2 instructions\n"
			    "                               own.c:2  {\n"
			    "      0   0.00    0x103        nop\n"
			    "      0   0.00    0x104        nop\n"
			    "                               own.c:3  for (;;) /* \\x1b[2J */\n"
			    "     30  15.00    0x105  : /   mov    (%rdi),%edx\n"
			    "    168  84.00    0x108  : |/  add    %edx,%eax\n"
			    "                               inline.h:9 (inlined get)\n"
			    "      0   0.00    0x10a    ||  dec    %ecx\n"
			    "      0   0.00    0x10c    |\\  jne    108 <f+0x8>\n"
			    "      2   1.00    0x10e    |   call   200 <g(int)>\n"
			    "      0   0.00    0x112    \\   jmp    105 <f+0x5>\n"
			    "      0   0.00    0x114        ret\n"
			    "                               ... 3 instructions\n");
	assert_string_equal(
		notes(&f.a),
		"# source file not found: inline.h; --source-path names its directory\n");
	for (size_t i = 0; i < f.a.files.count; i++)
		f.a.files.files[i]->too_large = !f.a.files.files[i]->text;
	assert_string_equal(notes(&f.a), "# source file not read: inline.h: all together are "
					 "limited to 64 MiB\n");
	end(&f);
}

static void test_colors(void **state)
{
	const struct report_listing_options o = { .width = 80, .color = true };
	struct fixture f;

	(void)state;
	begin(&f, false);
	f.total[8] = 2;
	assert_non_null(strstr(listing(&f.a, &o), "\033[31m    168\033[0m")
				?: strstr(printed, "    \033[31m168\033[0m"));
	assert_non_null(strstr(printed, "\033[31madd    %edx,%eax\033[0m"));
	assert_null(strstr(printed, "\033[31mcall"));
	assert_non_null(strstr(printed, "\033[2m      0   0.00    0x10a"));
	end(&f);
}

/* Many loops, loops nested deeper than is drawn, and endless ones. */
static void test_loops(void **state)
{
	enum {
		MANY = 5000
	};
	struct instruction *many = calloc(MANY, sizeof(*many));
	struct disassembly d = { many, MANY, MANY };
	struct code_loops l;

	(void)state;
	assert_non_null(many);
	for (size_t i = 0; i < MANY; i++)
		many[i] = (struct instruction){ .address = i + 1, .target = MANY - i };
	assert_int_equal(code_loops_draw(&l, &d), 0);
	assert_int_equal(l.depth, CODE_LOOPS_MAX);
	assert_string_equal(l.marks[0], "    "); /* too long */
	assert_string_equal(l.marks[MANY / 2], "|||\\");
	assert_string_equal(l.marks[MANY / 2 - 1], "|||/");
	code_loops_free(&l);

	for (size_t i = 0; i < MANY; i++)
		many[i].target = i == 7 ? 8 : UINT64_MAX;
	assert_int_equal(code_loops_draw(&l, &d), 0);
	assert_int_equal(l.depth, 1);
	assert_string_equal(l.marks[7], "<");
	assert_string_equal(l.marks[8], " ");
	code_loops_free(&l);

	/* continue jumps back, too */
	for (size_t i = 0; i < MANY; i++)
		many[i].target = i == 4 || i == 6 || i == 9 ? 3 : UINT64_MAX;
	assert_int_equal(code_loops_draw(&l, &d), 0);
	assert_int_equal(l.depth, 1);
	assert_string_equal(l.marks[2], "/");
	assert_string_equal(l.marks[4], "|");
	assert_string_equal(l.marks[6], "|");
	assert_string_equal(l.marks[9], "\\");
	assert_string_equal(l.marks[10], " ");
	code_loops_free(&l);
	free(many);
}

/* ---- source lines of a program that is not on this machine ---- */

static uint32_t add_function(struct profile *p, const char *name, const char *file, uint32_t line)
{
	struct profile_function f = {
		.name = name, .system_name = name, .file = file, .start_line = line
	};
	uint32_t id;

	assert_int_equal(profile_add_function(p, &f, &id), 0);
	return id;
}

static uint32_t add_location(struct profile *p, uint64_t address, uint32_t mapping,
			     const struct profile_line *lines, uint32_t count)
{
	uint32_t location;

	assert_int_equal(profile_add_location(p, address, mapping, &location), 0);
	assert_int_equal(profile_set_lines(p, location, lines, count), 0);
	return location;
}

static void add_sample(struct profile *p, const uint32_t *frames, uint32_t depth, int64_t value)
{
	struct profile_labels none = { .comm = "" };
	uint32_t labels;

	assert_int_equal(profile_add_labels(p, &none, &labels), 0);
	assert_int_equal(profile_add_sample(p, frames, depth, labels, &value), 0);
}

static const char own_text[] = "#include \"inline.h\"\n\n\n/* f */\nint f(int *p)\n{\n"
			       "\tint sum = 0;\n\n\t/*\n\t * nothing\n\t * here\n\t */\n\n"
			       "\tsum += get(p);\n\treturn sum + g();\n}\n\nint h;\n";

/* f's lines 14 (with get inlined, twice) and 15 (with a call of g), and f in itself. */
static struct profile *source_profile(void)
{
	struct profile *p = profile_new();
	uint32_t image, mapping, f, get, g, h;
	uint32_t locations[5];

	assert_non_null(p);
	assert_int_equal(profile_add_value_type(p, "samples", "count"), 0);
	assert_int_equal(profile_add_image(p, "/nowhere/x", NULL, 0, &image), 0);
	assert_int_equal(profile_add_mapping(p, 0x1000, 0x2000, 0, image, &mapping), 0);
	f = add_function(p, "f", path_of("own.c"), 5);
	get = add_function(p, "get", path_of("inline.h"), 1);
	g = add_function(p, "g", "", 0);
	h = add_function(p, "twin", "", 0);
	locations[0] = add_location(p, 0x1010, mapping,
				    (struct profile_line[]){ { .function = get, .line = 2 },
							     { .function = f, .line = 14 } },
				    2);
	locations[1] = add_location(p, 0x1014, mapping,
				    (struct profile_line[]){ { .function = get, .line = 3 },
							     { .function = f, .line = 14 } },
				    2);
	locations[2] = add_location(p, 0x1020, mapping,
				    &(struct profile_line){ .function = f, .line = 15 }, 1);
	locations[3] = add_location(p, 0x1100, mapping, &(struct profile_line){ .function = g }, 1);
	locations[4] = add_location(p, 0x1200, mapping, &(struct profile_line){ .function = h }, 1);
	add_sample(p, &locations[0], 1, 10);
	add_sample(p, &locations[1], 1, 30);
	add_sample(p, (uint32_t[]){ locations[3], locations[2] }, 2, 50);
	/* f calls f: counted once */
	add_sample(p, (uint32_t[]){ locations[2], locations[2], locations[0] }, 3, 5);
	add_sample(p, &locations[4], 1, 5);
	return p;
}

static void test_source(void **state)
{
	const struct annotation_options what = { .function = "f" };
	struct profile *p = source_profile();
	struct annotation a;
	struct error e;

	(void)state;
	write_file("own.c", own_text, 0644);
	write_file("inline.h", "static int get(int *p)\n{\n\treturn *p;\n}\n", 0644);
	if (annotation_make(&a, p, &what, &e))
		fail_msg("%s", e.what);
	assert_int_equal(a.samples, 45);
	assert_int_equal(a.total, 95);
	listing(&a, &(struct report_listing_options){ .source = true });
	assert_memory_equal(strchr(printed, '/'), directory, strlen(directory));
	assert_string_equal(strstr(printed, "own.c\n"),
			    "own.c\n"
			    "                       5  int f(int *p)\n"
			    "                          ... 6 lines\n"
			    "                      12           */\n"
			    "                      13  \n"
			    "  40     45  47.37    14          sum += get(p);\n"
			    "  10     15  15.79        > get at inline.h:2  {\n"
			    "  30     30  31.58        > get at inline.h:3  return *p;\n"
			    "   5     55  57.89    15          return sum + g();\n");
	assert_non_null(strstr(notes(&a), "# no instructions: cannot disassemble f: /nowhere/x: "));
	annotation_free(&a);
	profile_free(p);
}

/* The busiest function of a file; a function without source; a function that does not exist. */
static void test_choice_of_function(void **state)
{
	struct profile *p = source_profile();
	struct annotation a;
	struct error e;

	(void)state;
	assert_int_equal(annotation_make(&a, p, &(struct annotation_options){ 0 }, &e), -EINVAL);
	assert_non_null(strstr(e.what, "cannot disassemble g: /nowhere/x"));
	annotation_free(&a);
	assert_int_equal(
		annotation_make(&a, p, &(struct annotation_options){ .function = "x" }, &e),
		-ENOENT);
	annotation_free(&a);
	assert_int_equal(
		annotation_make(&a, p,
				&(struct annotation_options){ .function = "f", .no_sources = true },
				&e),
		-EINVAL);
	annotation_free(&a);
	profile_free(p);
}

/* ---- source files ---- */

static void test_source_files(void **state)
{
	struct source_files s = { .directory = directory };
	const struct source_file *f, *again;
	FILE *out;

	(void)state;
	write_file("own.c", "one\ntwo\r\nthree", 0644);
	assert_int_equal(source_files_find(&s, "/build/x/own.c", &f), 0);
	assert_string_equal(source_file_line(f, 1), "one");
	assert_string_equal(source_file_line(f, 3), "three");
	assert_null(source_file_line(f, 0));
	assert_null(source_file_line(f, 4));
	assert_null(source_file_line(f, UINT32_MAX));
	assert_int_equal(source_files_find(&s, "/build/x/own.c", &again), 0);
	assert_ptr_equal(f, again);
	/* Files that are not regular, or too large, are not read. */
	assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
	assert_int_equal(source_files_find(&s, "fifo", &f), 0);
	assert_null(f->text);
	assert_int_equal(source_files_find(&s, "/dev/zero", &f), 0);
	assert_null(f->text);
	assert_false(f->too_large);
	out = fopen(path_of("nul.c"), "we");
	assert_non_null(out);
	assert_int_equal(fwrite("a\0b\nc", 1, 5, out), 5);
	assert_int_equal(ftruncate(fileno(out), SOURCE_FILES_MAX), 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(source_files_find(&s, "nul.c", &f), 0);
	assert_null(f->text);
	assert_true(f->too_large);
	assert_int_equal(truncate(path_of("nul.c"), 5), 0);
	assert_int_equal(source_files_find(&s, "x/nul.c", &f), 0);
	assert_string_equal(source_file_line(f, 1), "a");
	assert_string_equal(source_file_line(f, 2), "c");
	source_files_free(&s);
}

/* ---- objdump ---- */

/* Disassembles with a test program in place of objdump. */
static int with_objdump(const char *script, unsigned int seconds, struct disassembly *d,
			struct error *e)
{
	char *path = strdup(getenv("PATH") ?: ""), *other;
	int err;

	write_file("objdump", script, 0700);
	assert_true(asprintf(&other, "%s:%s", directory, path) > 0);
	setenv("PATH", other, 1);
	err = disassemble(d, "/some/file", 0x10, 0x20, seconds, e);
	setenv("PATH", path, 1);
	free(other);
	free(path);
	return err;
}

/* The error message must contain these words. */
static void assert_fails(const char *script, unsigned int seconds, const char *words)
{
	struct disassembly d;
	struct error e;

	assert_true(with_objdump(script, seconds, &d, &e) < 0);
	assert_non_null(strstr(e.what, words));
	disassembly_free(&d);
}

static void test_objdump(void **state)
{
	struct disassembly d;
	struct error e;

	(void)state;
	assert_int_equal(with_objdump("#!/bin/sh\nprintf '  10:\\tnop \\n  11:\\tjmp\\t10 <f>'\n",
				      60, &d, &e),
			 0);
	assert_int_equal(d.count, 2);
	assert_string_equal(d.instructions[0].text, "nop");
	assert_string_equal(d.instructions[1].text, "jmp     10 <f>");
	assert_true(d.instructions[0].is_target);
	disassembly_free(&d);

	assert_fails("#!/bin/sh\nprintf '  10:\\tnop\\n'; exec sleep 600\n", 1,
		     "/some/file: objdump took too long");
	assert_fails("#!/bin/sh\nexec cat /dev/zero\n", 1, "");
	/* Endless output that is not code */
	assert_fails("#!/bin/sh\nexec yes\n", 1, "");
	assert_fails("#!/bin/sh\nkill -SEGV $$\n", 60, "ended by signal 11");
	assert_fails("#!/bin/sh\necho 'objdump: bad' >&2; exit 1\n", 60,
		     "/some/file: objdump: bad");
	assert_fails("#!/bin/sh\nuntil [ $(ulimit -v) = 4194304 ]; do :; done\n"
		     "echo 'objdump: out of memory allocating 5 bytes' >&2; exit 1\n",
		     10, "/some/file: objdump took more than 4 GiB of memory");
	assert_fails("#!/bin/sh\nexec yes complaint >&2\n", 60, "complaint");
	assert_fails("#!/bin/sh\nexec awk 'BEGIN { for (i = 1; ; i++) "
		     "printf \"  %x:\\tnop\\n\", i }'\n",
		     60, "more than 1000000 instructions");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_code_with_stacks),
		cmocka_unit_test(test_code_with_sources),
		cmocka_unit_test(test_colors),
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_source),
		cmocka_unit_test(test_choice_of_function),
		cmocka_unit_test(test_source_files),
		cmocka_unit_test(test_objdump),
	};
	int failed = cmocka_run_group_tests(tests, make_directory, remove_directory);

	free(printed);
	return failed;
}
