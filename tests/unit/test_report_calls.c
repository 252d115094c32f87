// SPDX-License-Identifier: GPL-2.0-only
/* Totals of calls that were recorded apart from the samples, as in Callgrind files. */
#include "format_fixture.h"

#include "report/flat/flat.h"
#include "report/report.h"

static struct profile *new_profile(void)
{
	struct profile *p = profile_new();

	assert_non_null(p);
	assert_int_equal(profile_add_value_type(p, "samples", "count"), 0);
	assert_int_equal(add_labels(p, 0, 0, "", false), 0);
	add_mapping(p, 0x1000, 0x2000, 0, "/a");
	return p;
}

/* A location in a function, or in one that is inlined there. */
static uint32_t add_inlined(struct profile *p, uint64_t address, const char *name,
			    const char *outer)
{
	struct profile_line lines[2] = { { .function = add_function(p, name, "", 0) } };
	uint32_t location = add_location(p, address, 0);

	if (outer)
		lines[1].function = add_function(p, outer, "", 0);
	assert_int_equal(profile_set_lines(p, location, lines, outer ? 2 : 1), 0);
	return location;
}

static uint32_t add_named(struct profile *p, uint64_t address, const char *name)
{
	return add_inlined(p, address, name, NULL);
}

static void add_cost(struct profile *p, uint32_t location, int64_t cost)
{
	assert_int_equal(profile_add_sample(p, &location, 1, 0, &cost), 0);
}

static void add_arc(struct profile *p, enum profile_arc_kind kind, uint32_t from, uint32_t to,
		    uint64_t count, int64_t cost)
{
	struct profile_arc arc = { from, to, 0, kind, count, 0 };

	assert_int_equal(profile_add_arc(p, &arc, &cost), 0);
}

static void add_call(struct profile *p, uint32_t from, uint32_t to, uint64_t count, int64_t cost)
{
	add_arc(p, PROFILE_CALL, from, to, count, cost);
}

static void assert_table(const struct profile *p, const char *expected)
{
	struct report_table_options options = { 0 };
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(report_table(p, &options, out), 0);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, expected);
	free(text);
}

static void test_calls(void **state)
{
	struct profile *p = new_profile();
	uint32_t main_pc = add_named(p, 0x1000, "main"), f = add_named(p, 0x1010, "f");
	uint32_t g = add_named(p, 0x1020, "g"), uncounted = add_named(p, 0x1030, "uncounted");

	(void)state;
	add_cost(p, f, 10);
	add_cost(p, g, 90);
	add_call(p, main_pc, f, 5, 70);
	add_call(p, f, g, 1, 60);
	add_call(p, g, g, 9, 500); /* of itself: not counted again */
	add_call(p, uncounted, g, 0, 30);
	add_call(p, main_pc, add_named(p, 0x1040, "idle"), 3, 0);
	add_arc(p, PROFILE_JUMP, g, f, 1, 7);
	assert_table(p, "self  self%  total  total%  function   image\n"
			"  90  90.00     90   90.00  g          a\n"
			"  10  10.00     70   70.00  f          a\n"
			"   0   0.00     70   70.00  main       a\n"
			"   0   0.00     30   30.00  uncounted  a\n");
	profile_free(p);
}

/* Calls with a count and without a cost: gmon.out. Then there are no totals. */
static void test_counted_calls(void **state)
{
	struct profile *p = new_profile();
	uint32_t main_pc = add_named(p, 0x1000, "main"), f = add_named(p, 0x1010, "f");

	(void)state;
	add_cost(p, f, 10);
	add_call(p, main_pc, f, 5, 0);
	assert_table(p, "samples       %    cum%  function  image\n"
			"     10  100.00  100.00  f         a\n");
	profile_free(p);
}

/*
 * Without counts of its calls, a function's total is its self cost and that of the calls that it
 * made.
 */
static void test_uncounted_calls(void **state)
{
	struct profile *p = new_profile();
	uint32_t main_pc = add_named(p, 0x1000, "main"), f = add_named(p, 0x1010, "f");

	(void)state;
	add_cost(p, f, 80);
	add_call(p, main_pc, f, 0, 50);
	assert_table(p, "self   self%  total  total%  function  image\n"
			"  80  100.00     80  100.00  f         a\n"
			"   0    0.00     50   62.50  main      a\n");
	profile_free(p);
}

/* Functions that call each other: no total is more than all samples. */
static void test_circular_calls(void **state)
{
	struct profile *p = new_profile();
	uint32_t even = add_named(p, 0x1000, "even"), odd = add_named(p, 0x1010, "odd");

	(void)state;
	add_cost(p, even, 4);
	add_cost(p, odd, 6);
	add_call(p, even, add_inlined(p, 0x1020, "entry", "odd"), 5, 9);
	add_call(p, odd, even, 5, 8);
	add_call(p, add_named(p, 0x1030, "main"), even, 1, 10);
	assert_table(p, "self  self%  total  total%  function  image\n"
			"   6  60.00      9   90.00  odd       a\n"
			"   4  40.00     10  100.00  even      a\n"
			"   0   0.00     10  100.00  main      a\n");
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_counted_calls),
		cmocka_unit_test(test_uncounted_calls),
		cmocka_unit_test(test_circular_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
