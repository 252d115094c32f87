// SPDX-License-Identifier: GPL-2.0-only
/* Rows by each field, of several columns and by calls; tables that do not fit; listings. */
#include "print_fixture.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/columns.h"
#include "report/disassembly.h"
#include "report/flat/flat.h"
#include "report/report.h"
#include "report/rows.h"

/* ---- profiles ---- */

static struct profile *new_profile(const char *first, const char *second)
{
	struct profile *p = profile_new();

	assert_non_null(p);
	assert_int_equal(profile_add_value_type(p, first, "count"), 0);
	if (second)
		assert_int_equal(profile_add_value_type(p, second, "count"), 0);
	return p;
}

static uint32_t add_mapping(struct profile *p, const char *path, uint64_t start)
{
	uint32_t image, mapping;

	assert_int_equal(profile_add_image(p, path, NULL, 0, &image), 0);
	assert_int_equal(profile_add_mapping(p, start, start + 0x1000, 0, image, &mapping), 0);
	return mapping;
}

/* A line of a function in a file; NULL: the function's own file, or none. */
static struct profile_line line_of(struct profile *p, const char *name, const char *file,
				   uint32_t number)
{
	struct profile_function f = { .name = name, .system_name = name, .file = "own.c" };
	struct profile_line line = { .line = number, .file = file };

	assert_int_equal(profile_add_function(p, &f, &line.function), 0);
	return line;
}

/* A pc in a function, or in the first with that inlined into the second. */
static uint32_t add_pc(struct profile *p, uint64_t address, uint32_t mapping, const char *name,
		       const char *outer)
{
	struct profile_line lines[2];
	uint32_t location;

	assert_int_equal(profile_add_location(p, address, mapping, &location), 0);
	if (!name)
		return location;
	lines[0] = line_of(p, name, outer ? "inline.h" : NULL, address & 0xff);
	if (outer)
		lines[1] = line_of(p, outer, NULL, 99);
	assert_int_equal(profile_set_lines(p, location, lines, outer ? 2 : 1), 0);
	return location;
}

static void add_sample(struct profile *p, const struct profile_labels *l, const uint32_t *frames,
		       uint32_t depth, int64_t first, int64_t second)
{
	struct profile_labels none = { .comm = "" };
	int64_t values[] = { first, second };
	uint32_t labels;

	assert_int_equal(profile_add_labels(p, l ? l : &none, &labels), 0);
	assert_int_equal(profile_add_sample(p, frames, depth, labels, values), 0);
}

static void add_leaf(struct profile *p, uint32_t location, int64_t first, int64_t second)
{
	add_sample(p, NULL, &location, 1, first, second);
}

static void add_call(struct profile *p, uint32_t from, uint32_t to, uint64_t count, int64_t cost)
{
	struct profile_arc arc = { .from = from, .to = to, .kind = PROFILE_CALL, .count = count };
	struct profile_labels none = { .comm = "" };
	int64_t values[] = { cost, 0 };

	assert_int_equal(profile_add_labels(p, &none, &arc.labels), 0);
	assert_int_equal(profile_add_arc(p, &arc, values), 0);
}

/* ---- printed text, each valid until the next ---- */

static const char *print(const struct profile *p, const struct report_table_options *o)
{
	FILE *out = print_begin();

	return print_end(out, report_table(p, o, out));
}

static const char *by(const struct profile *p, const char *view)
{
	const struct report_table_options o = { .rows.view = row_view_by_name(view) };

	assert_non_null(o.rows.view);
	return print(p, &o);
}

/* ---- the views ---- */

static struct profile *mixed_profile(void)
{
	struct profile *p = new_profile("samples", NULL);
	uint32_t exe = add_mapping(p, "/bin/exe", 0x1000), lib = add_mapping(p, "/lib/x", 0x8000);

	add_leaf(p, add_pc(p, 0x1010, exe, "work", NULL), 4, 0);
	add_leaf(p, add_pc(p, 0x1011, exe, "work", NULL), 2, 0);
	add_leaf(p, add_pc(p, 0x8020, lib, "inner", "outer"), 2, 0);
	add_leaf(p, add_pc(p, 0x8030, lib, NULL, NULL), 1, 0);
	add_sample(p, NULL, NULL, 0, 1, 0);
	return p;
}

static void test_fields(void **state)
{
	struct profile *p = mixed_profile();

	(void)state;
	assert_string_equal(by(p, "image"), "samples      %    cum%  image\n"
					    "      6  60.00   60.00  /bin/exe\n"
					    "      3  30.00   90.00  /lib/x\n"
					    "      1  10.00  100.00  [unknown]\n");
	assert_string_equal(by(p, "address"),
			    "samples      %    cum%  address  function  image\n"
			    "      4  40.00   40.00     0x10  work      exe\n"
			    "      2  20.00   60.00     0x20  inner     x\n"
			    "      2  20.00   80.00     0x11  work      exe\n"
			    "      1  10.00   90.00      0x0  [no pc]   [unknown]\n"
			    "      1  10.00  100.00     0x30  x+0x30    x\n");
	assert_string_equal(by(p, "source"), "self  self%  total  total%  source     image\n"
					     "   6  60.00      6   60.00  own.c      exe\n"
					     "   2  20.00      2   20.00  inline.h   x\n"
					     "   1  10.00      1   10.00  [unknown]  x\n"
					     "   1  10.00      1   10.00  [unknown]  [unknown]\n"
					     "   0   0.00      2   20.00  own.c      x\n");
	assert_string_equal(by(p, "line"),
			    "self  self%  total  total%  source     line  function  image\n"
			    "   4  40.00      4   40.00  own.c        16  work      exe\n"
			    "   2  20.00      2   20.00  inline.h     32  inner     x\n"
			    "   2  20.00      2   20.00  own.c        17  work      exe\n"
			    "   1  10.00      1   10.00  [unknown]     -  [no pc]   [unknown]\n"
			    "   1  10.00      1   10.00  [unknown]     -  x+0x30    x\n"
			    "   0   0.00      2   20.00  own.c        99  outer     x\n");
	assert_string_equal(by(p, "thread"), "samples       %    cum%  pid  tid  comm\n"
					     "     10  100.00  100.00    -    -  [unknown]\n");
	profile_free(p);
}

/* Offsets are from where functions begin; not of inlined code, whose function has no beginning. */
static void test_offsets(void **state)
{
	struct profile *p = mixed_profile();
	struct symbol_extent extents[] = { { 0x8, 0x20 }, { 0x8, 0x20 }, { 0x18, 0x28 }, { 0, 0 } };
	const struct report_table_options o = {
		.rows = { .view = row_view_by_name("address"), .extents = extents, .image = "exe" }
	};

	(void)state;
	assert_string_equal(print(p, &o), "samples      %   cum%  address  function  image\n"
					  "      4  40.00  40.00     0x10  work+0x8  exe\n"
					  "      2  20.00  60.00     0x11  work+0x9  exe\n");
	assert_non_null(
		strstr(print(p, &(struct report_table_options){ .rows = { .view = o.rows.view,
									  .extents = extents,
									  .image = "/lib/x" } }),
		       "0x20  inner     x\n"));
	profile_free(p);
}

/* A process has the name of its main thread; without a pid, the name identifies it. */
static void test_labels(void **state)
{
	struct profile *p = new_profile("samples", NULL);
	const struct profile_labels labels[] = {
		{ .pid = 7, .tid = 8, .comm = "worker" },
		{ .pid = 7, .tid = 7, .comm = "main" },
		{ .pid = 7, .tid = 8, .comm = "idle" },
		{ .comm = "a" },
		{ .comm = "b" },
		{ .pid = 9, .comm = "other" },
	};
	uint32_t pc = add_pc(p, 0x10, PROFILE_NONE, "f", NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(labels) / sizeof(*labels); i++)
		add_sample(p, &labels[i], (const uint32_t[]){ pc, pc }, 2, 10 - i, 0);
	assert_string_equal(by(p, "process"), "samples      %    cum%  pid  comm\n"
					      "     27  60.00   60.00    7  main\n"
					      "      7  15.56   75.56    -  a\n"
					      "      6  13.33   88.89    -  b\n"
					      "      5  11.11  100.00    9  other\n");
	assert_string_equal(by(p, "thread"), "samples      %    cum%  pid  tid  comm\n"
					     "     10  22.22   22.22    7    8  worker\n"
					     "      9  20.00   42.22    7    7  main\n"
					     "      8  17.78   60.00    7    8  idle\n"
					     "      7  15.56   75.56    -    -  a\n"
					     "      6  13.33   88.89    -    -  b\n"
					     "      5  11.11  100.00    9    -  other\n");
	profile_free(p);
}

/*
 * A process has the name under which it has most samples. In our recordings a tag says it where the
 * thread has a name of its own.
 */
static void test_process_names(void **state)
{
	struct profile *p = new_profile("samples", NULL);
	const struct profile_tag java = { "process", "java", 0, "" };
	const struct profile_labels labels[] = {
		{ .pid = 7, .tid = 7, .comm = "env" },
		{ .pid = 7, .tid = 7, .comm = "setarch" },
		{ .pid = 7, .tid = 8, .comm = "program" },
		{ .pid = 9, .tid = 9, .comm = "sh" },
		{ .pid = 9, .tid = 10, .comm = "collector", .tags = &java, .tag_count = 1 },
	};
	uint32_t pc = add_pc(p, 0x10, PROFILE_NONE, "f", NULL);

	(void)state;
	p->totals.known = true;
	for (size_t i = 0; i < sizeof(labels) / sizeof(*labels); i++)
		add_sample(p, &labels[i], &pc, 1, 1 + i, 0);
	assert_string_equal(by(p, "process"), "samples      %    cum%  pid  comm\n"
					      "      9  60.00   60.00    9  java\n"
					      "      6  40.00  100.00    7  program\n");
	profile_free(p);
}

static const char *by_fields(const struct profile *p, unsigned int fields, const char *image)
{
	const struct report_table_options o = {
		.rows = { .view = row_view_by_fields(fields), .image = image },
	};

	assert_non_null(o.rows.view);
	return print(p, &o);
}

/* Rows of code by who ran it: totals are once for each stack of the threads of one name. */
static void test_code_by_labels(void **state)
{
	struct profile *p = new_profile("samples", NULL);
	uint32_t exe = add_mapping(p, "/bin/exe", 0x1000), lib = add_mapping(p, "/lib/x", 0x8000);
	uint32_t main_pc = add_pc(p, 0x1010, exe, "main", NULL);
	uint32_t f = add_pc(p, 0x8010, lib, "f", NULL);
	const struct profile_labels a = { .pid = 7, .tid = 7, .comm = "a" };
	const struct profile_labels worker = { .pid = 7, .tid = 8, .comm = "w" };
	const struct profile_labels b = { .pid = 9, .tid = 9, .comm = "a" };

	(void)state;
	add_sample(p, &a, (const uint32_t[]){ f, main_pc, main_pc }, 3, 4, 0);
	add_sample(p, &worker, (const uint32_t[]){ f, main_pc }, 2, 3, 0);
	add_sample(p, &b, (const uint32_t[]){ f }, 1, 2, 0);
	add_sample(p, NULL, NULL, 0, 1, 0);
	assert_string_equal(by_fields(p, ROW_COMM | ROW_FUNCTION | ROW_IMAGE, NULL),
			    "self  self%  total  total%  comm       function  image\n"
			    "   6  60.00      6   60.00  a          f         x\n"
			    "   3  30.00      3   30.00  w          f         x\n"
			    "   1  10.00      1   10.00  [unknown]  [no pc]   [unknown]\n"
			    "   0   0.00      4   40.00  a          main      exe\n"
			    "   0   0.00      3   30.00  w          main      exe\n");
	assert_string_equal(by_fields(p, ROW_PROCESS | ROW_COMM | ROW_IMAGE, NULL),
			    "self  self%  total  total%  pid  comm       image\n"
			    "   7  70.00      7   70.00    7  a          x\n"
			    "   2  20.00      2   20.00    9  a          x\n"
			    "   1  10.00      1   10.00    -  [unknown]  [unknown]\n"
			    "   0   0.00      7   70.00    7  a          exe\n");
	assert_string_equal(by_fields(p, ROW_COMM | ROW_FUNCTION | ROW_IMAGE, "exe"),
			    "self  self%  total  total%  comm  function  image\n"
			    "   0   0.00      4   40.00  a     main      exe\n"
			    "   0   0.00      3   30.00  w     main      exe\n");
	assert_string_equal(by(p, "comm"), "samples      %    cum%  comm\n"
					   "      6  60.00   60.00  a\n"
					   "      3  30.00   90.00  w\n"
					   "      1  10.00  100.00  [unknown]\n");
	profile_free(p);
}

/* Recorded calls count for the threads that made them. */
static void test_calls_by_labels(void **state)
{
	struct profile *p = new_profile("Ir", NULL);
	uint32_t exe = add_mapping(p, "/bin/exe", 0x1000);
	uint32_t main_pc = add_pc(p, 0x1010, exe, "main", NULL);
	uint32_t f = add_pc(p, 0x1020, exe, "f", NULL);
	const struct profile_labels a = { .comm = "a" }, b = { .comm = "b" };
	struct profile_arc arc = { .from = main_pc, .to = f, .kind = PROFILE_CALL, .count = 1 };
	int64_t cost = 30;

	(void)state;
	add_sample(p, &a, &main_pc, 1, 10, 0);
	add_sample(p, &a, &f, 1, 30, 0);
	add_sample(p, &b, &f, 1, 60, 0);
	assert_int_equal(profile_add_labels(p, &a, &arc.labels), 0);
	assert_int_equal(profile_add_arc(p, &arc, &cost), 0);
	assert_string_equal(by_fields(p, ROW_COMM | ROW_FUNCTION | ROW_IMAGE, NULL),
			    "self  self%  total  total%  comm  function  image\n"
			    "  60  60.00     60   60.00  b     f         exe\n"
			    "  30  30.00     30   30.00  a     f         exe\n"
			    "  10  10.00     40   40.00  a     main      exe\n");
	profile_free(p);
}

/* With stacks, whatever rows are has its total once for each stack. */
static void test_stacks(void **state)
{
	struct profile *p = new_profile("samples", NULL);
	uint32_t exe = add_mapping(p, "/bin/exe", 0x1000), lib = add_mapping(p, "/lib/x", 0x8000);
	uint32_t main_pc = add_pc(p, 0x1010, exe, "main", NULL);
	uint32_t inlined = add_pc(p, 0x8020, lib, "inner", "outer");

	(void)state;
	add_sample(p, NULL, (const uint32_t[]){ inlined, main_pc, main_pc }, 3, 3, 0);
	add_sample(p, NULL, (const uint32_t[]){ main_pc }, 1, 1, 0);
	assert_string_equal(by(p, "image"), "self  self%  total  total%  image\n"
					    "   3  75.00      3   75.00  /lib/x\n"
					    "   1  25.00      4  100.00  /bin/exe\n");
	assert_string_equal(by(p, "function"), "self  self%  total  total%  function  image\n"
					       "   3  75.00      3   75.00  inner     x\n"
					       "   1  25.00      4  100.00  main      exe\n"
					       "   0   0.00      3   75.00  outer     x\n");
	assert_string_equal(by(p, "address"),
			    "self  self%  total  total%  address  function  image\n"
			    "   3  75.00      3   75.00     0x20  inner     x\n"
			    "   1  25.00      4  100.00     0x10  main      exe\n");
	profile_free(p);
}

/* ---- columns ---- */

static void test_events(void **state)
{
	struct profile *p = new_profile("cycles", "imiss");

	(void)state;
	add_leaf(p, add_pc(p, 0x10, PROFILE_NONE, "f", NULL), 30, 1);
	add_leaf(p, add_pc(p, 0x20, PROFILE_NONE, "g", NULL), 10, 0);
	add_leaf(p, add_pc(p, 0x30, PROFILE_NONE, "h", NULL), 0, 3);
	add_leaf(p, add_pc(p, 0x40, PROFILE_NONE, "none", NULL), 0, -3);
	assert_string_equal(by(p, "function"),
			    "cycles      %    cum%  imiss       %  function  image\n"
			    "    30  75.00   75.00      1   14.29  f         [unknown]\n"
			    "    10  25.00  100.00      0    0.00  g         [unknown]\n"
			    "     0   0.00  100.00      3   42.86  h         [unknown]\n"
			    "     0   0.00  100.00     -3  -42.86  none      [unknown]\n");
	assert_non_null(strstr(print(p, &(struct report_table_options){ .rows.value = "imiss" }),
			       "    3   42.86  42.86       0   0.00  h"));
	/* Sums of other events, and values that are no counts, have no column. */
	p->value_types[1].formula = "a + b";
	assert_int_equal(strncmp(by(p, "function"), "cycles      %    cum%  function", 31), 0);
	profile_free(p);
}

static void test_saturation(void **state)
{
	struct profile *p = new_profile("cycles", NULL);
	struct rows r;

	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		add_leaf(p, add_pc(p, i, PROFILE_NONE, "f", NULL), INT64_MAX, 0);
	assert_int_equal(rows_collect(&r, p, &(struct rows_options){ 0 }), 0);
	assert_int_equal(r.count, 1);
	assert_true(r.rows[0].counts[0].self == INT64_MAX);
	assert_true(r.columns[0].samples == 3 * (magnitude_sum)INT64_MAX);
	rows_free(&r);
	profile_free(p);
}

/* Recorded calls: inclusive costs are never more than all samples. */
static void test_calls(void **state)
{
	struct profile *p = new_profile("Ir", NULL);
	uint32_t exe = add_mapping(p, "/bin/exe", 0x1000), lib = add_mapping(p, "/lib/x", 0x8000);
	uint32_t main_pc = add_pc(p, 0x1010, exe, "main", NULL);
	uint32_t a = add_pc(p, 0x8010, lib, "a", NULL), b = add_pc(p, 0x8020, lib, "b", NULL);
	uint32_t quiet = add_pc(p, 0x8030, lib, "quiet", NULL);

	(void)state;
	add_leaf(p, main_pc, 10, 0);
	add_leaf(p, a, 60, 0);
	add_leaf(p, b, 30, 0);
	add_call(p, main_pc, a, 1, 90);
	add_call(p, a, b, 2, 80);
	add_call(p, b, a, 1, 50);
	add_call(p, a, a, 9, 70);
	add_call(p, main_pc, quiet, 1, 0);
	assert_string_equal(by(p, "function"), "self  self%  total  total%  function  image\n"
					       "  60  60.00    100  100.00  a         x\n"
					       "  30  30.00     80   80.00  b         x\n"
					       "  10  10.00    100  100.00  main      exe\n");
	assert_string_equal(by(p, "image"), "self  self%  total  total%  image\n"
					    "  90  90.00     90   90.00  /lib/x\n"
					    "  10  10.00    100  100.00  /bin/exe\n");
	assert_string_equal(print(p, &(struct report_table_options){ .rows.image = "exe" }),
			    "self  self%  total  total%  function  image\n"
			    "  10  10.00    100  100.00  main      exe\n");
	profile_free(p);
}

/* Columns of two profiles: rows are equal by their texts. */
static void test_two_profiles(void **state)
{
	struct profile *a = mixed_profile(), *b = mixed_profile();
	const struct rows_options o = { .base_names = true };
	struct rows r;

	(void)state;
	b->images[0].path = "/elsewhere/exe";
	a->images[1].path = "[jit 612]";
	b->images[1].path = "[jit 845]";
	assert_int_equal(rows_begin(&r, &o, 2), 0);
	assert_int_equal(rows_add(&r, a, &o, 0, 0), 0);
	assert_int_equal(rows_add(&r, b, &o, 0, 1), 0);
	assert_int_equal(rows_finish(&r), 0);
	assert_int_equal(r.count, 5);
	for (size_t i = 0; i < r.count; i++)
		assert_int_equal(r.rows[i].counts[0].self, r.rows[i].counts[1].self);
	rows_free(&r);
	profile_free(a);
	profile_free(b);
}

/* Numbers of processes and threads are those of one run; their names are the same in all. */
static void test_names_of_runs(void **state)
{
	const struct profile_labels labels[][4] = {
		{ { .pid = 7, .tid = 8, .comm = "worker" },
		  { .pid = 7, .tid = 7, .comm = "main" },
		  { .pid = 9, .tid = 10, .comm = "worker" },
		  { .comm = "a" } },
		{ { .pid = 5, .tid = 5, .comm = "main" },
		  { .pid = 6, .tid = 6, .comm = "main" },
		  { .pid = 6, .tid = 8, .comm = "worker" },
		  { .comm = "a" } },
	};
	struct rows_options o = { .base_names = true, .view = row_view_by_name("process") };
	struct profile *profiles[2];
	struct rows r;

	(void)state;
	for (size_t side = 0; side < 2; side++) {
		profiles[side] = new_profile("samples", NULL);
		for (size_t i = 0; i < 4; i++)
			add_sample(profiles[side], &labels[side][i], NULL, 0, 1 << i, 0);
	}
	for (size_t k = 0; k < 2; k++) {
		assert_int_equal(rows_begin(&r, &o, 2), 0);
		for (size_t side = 0; side < 2; side++)
			assert_int_equal(rows_add(&r, profiles[side], &o, 0, side), 0);
		assert_int_equal(rows_finish(&r), 0);
		assert_string_equal(r.view->name, o.view->name);
		assert_int_equal(r.count, 3);
		assert_string_equal(r.rows[0].comm, "a");
		assert_int_equal(r.rows[0].counts[0].self, 8);
		assert_int_equal(r.rows[0].counts[1].self, 8);
		/* The second process has its thread's name: no other is known. */
		assert_string_equal(r.rows[1].comm, "worker");
		assert_int_equal(r.rows[1].counts[0].self, k ? 5 : 4);
		assert_int_equal(r.rows[1].counts[1].self, k ? 4 : 0);
		assert_string_equal(r.rows[2].comm, "main");
		assert_int_equal(r.rows[2].counts[0].self, k ? 2 : 3);
		assert_int_equal(r.rows[2].counts[1].self, k ? 3 : 7);
		assert_int_equal(r.rows[2].key->pid, 0);
		rows_free(&r);
		o.view = row_view_by_name("thread");
	}
	profile_free(profiles[0]);
	profile_free(profiles[1]);
}

/* ---- tables ---- */

static void some_columns(struct columns *c, const void *view, size_t row)
{
	const char *const *cells = view;

	cells += row * 4;
	COLUMN(c, "n", NULL, 0, cells[0]);
	COLUMN(c, "more", NULL, COLUMN_OPTIONAL, cells[1]);
	COLUMN(c, "name", NULL, COLUMN_TEXT, cells[2]);
	COLUMN(c, "place", NULL, COLUMN_TEXT, cells[3]);
}

static void test_table_fits(void **state)
{
	const char *cells[] = { "1", "2",     "a_name_that_goes_on_and_on", "x", "100",
				"",  "short", "a_place_that_does, too" };
	FILE *out = print_begin();

	(void)state;
	assert_string_equal(print_end(out, table_print(some_columns, cells, 2, 0, 0, out)),
			    "  n  more  name                        place\n"
			    "  1     2  a_name_that_goes_on_and_on  x\n"
			    "100        short                       a_place_that_does, too\n");
	out = print_begin();
	assert_string_equal(print_end(out, table_print(some_columns, cells, 2, 40, 0, out)),
			    "  n  name                   place\n"
			    "  1  a_name_th...on_and_on  x\n"
			    "100  short                  a_pla... too\n");
	out = print_begin();
	assert_string_equal(print_end(out, table_print(some_columns, cells, 2, 31, 0, out)),
			    "  n  name          place\n"
			    "  1  a_nam...d_on  x\n"
			    "100  short         a_pla... too\n");
	out = print_begin();
	assert_string_equal(print_end(out, table_print(some_columns, cells, 2, 30, 0, out)),
			    "  n  name\n"
			    "  1  a_name_that...s_on_and_on\n"
			    "100  short\n");
	out = print_begin();
	assert_string_equal(print_end(out, table_print(some_columns, cells, 2, 1, 0, out)),
			    "  n  name\n"
			    "  1  a_nam...d_on\n"
			    "100  short\n");
}

/* ---- disassembly ---- */

extern const char __executable_start[];
void listed_function(void);

__attribute__((noinline)) void listed_function(void)
{
	__asm__ volatile("");
}

static void test_disassembly(void **state)
{
	uint64_t start = (uintptr_t)listed_function - (uintptr_t)__executable_start;
	char self[PATH_MAX] = "";
	struct disassembly d;
	struct error e;

	(void)state;
	if (access("/usr/bin/objdump", X_OK))
		skip();
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	if (disassemble(&d, self, start, start + 1, 60, &e) && d.count == 0) {
		disassembly_free(&d);
		fail_msg("%s", e.what);
	}
	assert_int_equal(d.instructions[0].address, start);
	assert_int_equal(disassembly_find(&d, start - 1), SIZE_MAX);
	assert_int_equal(disassembly_find(&d, start), 0);
	disassembly_free(&d);

	assert_true(disassemble(&d, "/nowhere", 0, 16, 60, &e) < 0);
	assert_non_null(strstr(e.what, "/nowhere"));
	disassembly_free(&d);
	assert_true(disassemble(&d, "/dev/null", 0, 16, 60, &e) < 0);
	disassembly_free(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),	       cmocka_unit_test(test_offsets),
		cmocka_unit_test(test_labels),	       cmocka_unit_test(test_process_names),
		cmocka_unit_test(test_code_by_labels), cmocka_unit_test(test_calls_by_labels),
		cmocka_unit_test(test_stacks),	       cmocka_unit_test(test_events),
		cmocka_unit_test(test_saturation),     cmocka_unit_test(test_calls),
		cmocka_unit_test(test_two_profiles),   cmocka_unit_test(test_table_fits),
		cmocka_unit_test(test_disassembly),    cmocka_unit_test(test_names_of_runs),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(printed);
	return failed;
}
