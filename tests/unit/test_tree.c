// SPDX-License-Identifier: GPL-2.0-only
/* Call trees, callers and callees as printed: in a pipe, at 80 columns, as JSON. */
#include "print_fixture.h"
#include "stack_fixture.h"

#include <locale.h>
#include <stdlib.h>

#include "report/calls/call_view.h"

static const char *print(const struct profile *p, const struct call_view_options *o,
			 const struct call_view_style *style)
{
	FILE *out = print_begin();
	struct call_view v;
	struct error e;

	assert_int_equal(call_view_make(&v, p, o, &e), 0);
	print_end(out, call_view_print(&v, style, out));
	call_view_free(&v);
	return printed;
}

static const char *pipe_text(const struct profile *p, const struct call_view_options *o)
{
	return print(p, o, &(struct call_view_style){ 0 });
}

static const char *json(const struct profile *p, const struct call_view_options *o)
{
	FILE *out = print_begin();
	struct call_view v;
	struct error e;

	assert_int_equal(call_view_make(&v, p, o, &e), 0);
	print_end(out, call_view_json(&v, p, out));
	call_view_free(&v);
	return printed;
}

/* A server that reads requests, with a thread that does little. */
static struct profile *server(void)
{
	struct profile *p = new_profile();

	add(p, "_start main serve parse scan", 400);
	add(p, "_start main serve parse scan /lib/libc.so.6@memchr", 200);
	add(p, "_start main serve parse", 50);
	add(p, "_start main serve reply /lib/libc.so.6@write [kernel.kallsyms]@vfs_write", 220);
	add(p, "_start main serve reply format", 60);
	add(p, "_start main serve log", 4);
	add(p, "_start main serve count<check", 6);
	add(p, "/lib/libc.so.6@start_thread flush scan", 30);
	add(p, "/lib/libc.so.6@start_thread flush /lib/libz.so@", 25);
	add(p, "main", 5);
	return p;
}

static void test_tree(void **state)
{
	struct profile *p = server();

	(void)state;
	assert_string_equal(pipe_text(p, &(struct call_view_options){ .percent = 1 }),
			    "total%   self%  function, what it calls below\n"
			    " 94.00          + _start  exe\n"
			    "                | main\n"
			    "                | serve\n"
			    " 65.00    5.00  | + parse\n"
			    " 60.00   40.00  | | scan\n"
			    " 20.00   20.00  | | memchr  libc.so.6\n"
			    " 28.00          | + reply\n"
			    " 22.00          | | + write  libc.so.6\n"
			    "         22.00  | | | vfs_write  [kernel.kallsyms]\n"
			    "  6.00    6.00  | | ` format\n"
			    "  1.00          | ` ... 2 more\n"
			    "  5.50          ` start_thread  libc.so.6\n"
			    "                  flush  exe\n"
			    "  3.00    3.00    + scan\n"
			    "  2.50    2.50    ` [libz.so]\n"
			    "... 3 more, each below 1.00 %\n");
	assert_string_equal(pipe_text(p, &(struct call_view_options){ .percent = 30 }),
			    "total%   self%  function, what it calls below\n"
			    " 94.00          _start  exe\n"
			    "                main\n"
			    "                serve\n"
			    " 65.00    5.00  parse\n"
			    " 60.00   40.00  scan\n"
			    "... 6 more, each below 30.00 %\n");
	profile_free(p);
}

static void test_callers(void **state)
{
	struct profile *p = server();

	(void)state;
	assert_string_equal(
		pipe_text(p, &(struct call_view_options){ .function = "scan", .callers = true }),
		"samples  total%   root%  function, its callers below\n"
		"    630   63.00  100.00  scan  exe\n"
		"    600   60.00   95.24  + parse\n"
		"                         | serve\n"
		"                         | main\n"
		"                         | _start\n"
		"     30    3.00    4.76  ` flush\n"
		"                           start_thread  libc.so.6\n");
	profile_free(p);
}

static void test_callees(void **state)
{
	struct profile *p = server();

	(void)state;
	assert_string_equal(
		pipe_text(p, &(struct call_view_options){ .function = "serve", .percent = 1 }),
		"samples  total%   root%   self%  function, what it calls below\n"
		"    940   94.00  100.00          serve  exe\n"
		"    650   65.00   69.15    5.00  + parse\n"
		"    600   60.00   63.83   40.00  | scan\n"
		"    200   20.00   21.28   20.00  | memchr  libc.so.6\n"
		"    280   28.00   29.79          + reply\n"
		"    220   22.00   23.40          | + write  libc.so.6\n"
		"                          22.00  | | vfs_write  [kernel.kallsyms]\n"
		"     60    6.00    6.38    6.00  | ` format\n"
		"     10    1.00    1.06          ` ... 2 more\n"
		"... 2 more, each below 1.00 %\n");
	assert_string_equal(pipe_text(p, &(struct call_view_options){ .function = "check" }),
			    "samples  total%   root%   self%  function, what it calls below\n"
			    "      6    0.60  100.00          check  exe\n"
			    "                           0.60  count (inlined)\n");
	profile_free(p);
}

/* The nodes with most samples stay, whatever their parents. */
static void test_limit(void **state)
{
	struct profile *p = server();

	(void)state;
	assert_string_equal(pipe_text(p, &(struct call_view_options){ .limit = 6 }),
			    "total%   self%  function, what it calls below\n"
			    " 94.00          + _start  exe\n"
			    "                | main\n"
			    "                | serve\n"
			    " 65.00    5.00  | + parse\n"
			    " 60.00   40.00  | | scan\n"
			    " 20.00          | | ` ... 1 more\n"
			    " 28.00          | + reply\n"
			    " 28.00          | | ` ... 2 more\n"
			    "  1.00          | ` ... 2 more\n"
			    "  6.00          ` ... 2 more\n"
			    "... 12 more\n");
	profile_free(p);
}

static void test_terminal(void **state)
{
	const struct call_view_style utf8 = { .width = 80, .utf8 = true };
	const struct call_view_style color = { .width = 50, .color = true };
	struct profile *p = new_profile();

	(void)state;
	add(p, "main very_long_name_of_a_function_that_does_not_fit_into_so_few_columns", 60);
	add(p, "main other /usr/lib/a_library_whose_name_is_quite_long_too.so.6@short", 36);
	add(p, "main other \033[31mred", 4);
	assert_string_equal(
		print(p, &(struct call_view_options){ 0 }, &utf8),
		"total%   self%  function, what it calls below\n"
		"100.00          main  exe\n"
		" 60.00   60.00  ├ very_long_name_of_a_function_t...s_not_fit_into_so_few_columns\n"
		" 40.00          └ other\n"
		" 36.00   36.00    ├ short  a_library...too.so.6\n"
		"  4.00    4.00    └ \\x1b[31mred\n");
	assert_string_equal(
		print(p, &(struct call_view_options){ .limit = 3 }, &color),
		"\033[1mtotal%   self%  function, what it calls below\033[0m\n"
		"100.00          \033[2m\033[0mmain  \033[2mexe\033[0m\n"
		" 60.00  \033[31m 60.00\033[0m  \033[2m+ \033[0mvery_long_name_...so_few_columns\n"
		" 40.00          \033[2m` \033[0mother\n"
		" 40.00          \033[2m  ` \033[0m... 2 more\n"
		"... 2 more\n");
	profile_free(p);
}

/* Every frame calls two others: the indentation is limited. */
static void test_deep(void **state)
{
	enum {
		DEPTH = 30
	};
	struct profile *p = new_profile();
	char stack[256] = "";
	const char *line;
	size_t longest = 0;

	(void)state;
	for (int i = 0; i < DEPTH; i++) {
		snprintf(stack + strlen(stack), sizeof(stack) - strlen(stack), "%sf", i ? " " : "");
		add(p, stack, 1);
		snprintf(stack + strlen(stack), sizeof(stack) - strlen(stack), " g");
		add(p, stack, 1);
		stack[strlen(stack) - 2] = '\0';
	}
	print(p, &(struct call_view_options){ 0 }, &(struct call_view_style){ .width = 60 });
	for (line = printed; *line; line = strchr(line, '\n') + 1) {
		size_t length = strchr(line, '\n') - line;

		longest = length > longest ? length : longest;
	}
	assert_true(longest < 60);
	assert_non_null(strstr(printed, "+19 "));
	profile_free(p);
}

static void test_json(void **state)
{
	struct profile *p = server();

	(void)state;
	assert_string_equal(
		json(p, &(struct call_view_options){ .percent = 25 }),
		"{\n"
		"  \"value\": \"samples\",\n"
		"  \"samples\": 1000,\n"
		"  \"tree\": [\n"
		"    { \"depth\": 0, \"name\": \"_start\", \"image\": \"/bin/exe\", \"total\": "
		"940, "
		"\"total_percent\": 94.00, \"self\": 0 },\n"
		"    { \"depth\": 1, \"name\": \"main\", \"image\": \"/bin/exe\", \"total\": 940, "
		"\"total_percent\": 94.00, \"self\": 0 },\n"
		"    { \"depth\": 2, \"name\": \"serve\", \"image\": \"/bin/exe\", \"total\": 940, "
		"\"total_percent\": 94.00, \"self\": 0, \"omitted\": 2, "
		"\"omitted_total\": 10 },\n"
		"    { \"depth\": 3, \"name\": \"parse\", \"image\": \"/bin/exe\", \"total\": 650, "
		"\"total_percent\": 65.00, \"self\": 50 },\n"
		"    { \"depth\": 4, \"name\": \"scan\", \"image\": \"/bin/exe\", \"total\": 600, "
		"\"total_percent\": 60.00, \"self\": 400, \"omitted\": 1, "
		"\"omitted_total\": 200 },\n"
		"    { \"depth\": 3, \"name\": \"reply\", \"image\": \"/bin/exe\", \"total\": 280, "
		"\"total_percent\": 28.00, \"self\": 0, \"omitted\": 2, "
		"\"omitted_total\": 280 }\n"
		"  ]\n"
		"}\n");
	assert_string_equal(
		json(p, &(struct call_view_options){ .function = "count",
						     .callers = true,
						     .limit = 2 }),
		"{\n"
		"  \"value\": \"samples\",\n"
		"  \"samples\": 1000,\n"
		"  \"callers\": [\n"
		"    { \"depth\": 0, \"name\": \"count\", \"image\": \"/bin/exe\", \"inlined\": "
		"true, "
		"\"total\": 6, \"total_percent\": 0.60, \"root_percent\": 100.00 },\n"
		"    { \"depth\": 1, \"name\": \"check\", \"image\": \"/bin/exe\", \"total\": 6, "
		"\"total_percent\": 0.60, \"root_percent\": 100.00, \"omitted\": 1, "
		"\"omitted_total\": 6 }\n"
		"  ]\n"
		"}\n");
	profile_free(p);
}

/* ---- recorded calls ---- */

static void add_calls(struct profile *p, const char *from, const char *to, uint64_t count,
		      int64_t cost)
{
	struct profile_arc arc = { .from = location_of(p, from),
				   .to = location_of(p, to),
				   .count = count };

	assert_int_equal(profile_add_labels(p, &(struct profile_labels){ .comm = "" }, &arc.labels),
			 0);
	assert_int_equal(profile_add_arc(p, &arc, &cost), 0);
}

static struct profile *counted(bool costs)
{
	struct profile *p = new_profile();

	add(p, "main", 10);
	add(p, "work", 50);
	add(p, "part", 40);
	add_calls(p, "main", "work", 3, costs * 85);
	add_calls(p, "other", "work", 1, costs * 5);
	add_calls(p, "work", "work", 7, costs * 20);
	add_calls(p, "work", "part", 100, costs * 40);
	add_calls(p, "main", "part", 1, 0);
	return p;
}

static void test_counted_calls(void **state)
{
	struct profile *p = counted(true);

	(void)state;
	assert_string_equal(
		pipe_text(p, &(struct call_view_options){ .function = "work", .callers = true }),
		"calls  samples  total%   root%  function, its callers below\n"
		"            90   90.00  100.00  work  exe\n"
		"    3       85   85.00   94.44  + main\n"
		"    7       20   20.00   22.22  + work\n"
		"    1        5    5.00    5.56  ` other\n");
	assert_string_equal(pipe_text(p, &(struct call_view_options){ .function = "work" }),
			    "calls  samples  total%   root%  function, what it calls below\n"
			    "            90   90.00  100.00  work  exe\n"
			    "  100       40   40.00   44.44  + part\n"
			    "    7       20   20.00   22.22  ` work\n");
	assert_string_equal(pipe_text(p, &(struct call_view_options){ .function = "main" }),
			    "calls  samples  total%   root%  function, what it calls below\n"
			    "            95   95.00  100.00  main  exe\n"
			    "    3       85   85.00   89.47  + work\n"
			    "    1        0    0.00    0.00  ` part\n");
	assert_string_equal(json(p, &(struct call_view_options){ .function = "part",
								 .callers = true,
								 .percent = 1 }),
			    "{\n"
			    "  \"value\": \"samples\",\n"
			    "  \"samples\": 100,\n"
			    "  \"callers\": [\n"
			    "    { \"depth\": 0, \"name\": \"part\", \"image\": \"/bin/exe\", "
			    "\"total\": 40, \"total_percent\": 40.00, \"root_percent\": 100.00, "
			    "\"omitted\": 1, \"omitted_total\": 0 },\n"
			    "    { \"depth\": 1, \"name\": \"work\", \"image\": \"/bin/exe\", "
			    "\"calls\": 100, \"total\": 40, \"total_percent\": 40.00, "
			    "\"root_percent\": 100.00 }\n"
			    "  ]\n"
			    "}\n");
	profile_free(p);
}

/* As in the table of functions: the total is self and the calls that it made. */
static void test_costs_without_counts(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add(p, "work", 80);
	add_calls(p, "main", "work", 0, 50);
	assert_string_equal(
		pipe_text(p, &(struct call_view_options){ .function = "work", .callers = true }),
		"calls  samples  total%   root%  function, its callers below\n"
		"            80  100.00  100.00  work  exe\n"
		"    0       50   62.50   62.50  main\n");
	profile_free(p);
}

static void test_calls_without_cost(void **state)
{
	struct profile *p = counted(false);

	(void)state;
	assert_string_equal(
		pipe_text(p, &(struct call_view_options){ .function = "work", .callers = true }),
		"calls  total%   root%  function, its callers below\n"
		"   11    9.82  100.00  work  exe\n"
		"    7    6.25   63.64  + work\n"
		"    3    2.68   27.27  + main\n"
		"    1    0.89    9.09  ` other\n");
	profile_free(p);
}

/* ---- errors ---- */

static void fails(const struct profile *p, const struct call_view_options *o, const char *what,
		  const char *hint)
{
	struct call_view v;
	struct error e;

	assert_true(call_view_make(&v, p, o, &e) < 0);
	assert_string_equal(e.what, what);
	assert_string_equal(e.hint, hint);
	call_view_free(&v);
}

static void test_errors(void **state)
{
	struct profile *flat = new_profile(), *calls = counted(true), *p = server();

	(void)state;
	add(flat, "main", 1);
	fails(flat, &(struct call_view_options){ 0 }, "the profile has no call stacks",
	      "profiltool record -g records call stacks");
	fails(flat, &(struct call_view_options){ .function = "main" },
	      "the profile has no call stacks", "profiltool record -g records call stacks");
	fails(calls, &(struct call_view_options){ 0 }, "the profile has no call stacks",
	      "it has counted calls: --callers FUNCTION and --callees FUNCTION show those of one "
	      "function");
	fails(calls, &(struct call_view_options){ .function = "x" }, "no sample has x in its stack",
	      "profiltool report -E 0 lists the functions that have samples");
	fails(p, &(struct call_view_options){ .function = "R", .callers = true },
	      "no sample has R in its stack",
	      "functions with similar names: _start, serve, parse, ...");
	fails(p, &(struct call_view_options){ .function = "main", .image = "libc.so.6" },
	      "no sample has main of libc.so.6 in its stack", "functions with similar names: main");
	profile_free(flat);
	profile_free(calls);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_callers),
		cmocka_unit_test(test_callees),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_counted_calls),
		cmocka_unit_test(test_costs_without_counts),
		cmocka_unit_test(test_calls_without_cost),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
