// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stacks that reach the program's start, and the causes that end the others, as text and JSON.
 */
#include <json-c/json.h>
#include <string.h>

#include "print_fixture.h"
#include "report/totals.h"

/* So many of 1000 stacks in user space are complete. */
static struct profile *new_profile(const char *stacks, uint64_t complete)
{
	struct profile *p = profile_new();

	assert_non_null(p);
	assert_int_equal(profile_string(p, stacks, &p->stacks), 0);
	p->totals.known = true;
	p->totals.stacks_user = 1000;
	p->totals.stacks_complete = complete;
	return p;
}

static void add_end(struct profile *p, const char *cause, const char *image, uint64_t count)
{
	assert_int_equal(profile_add_stack_end(p, cause, image, count), 0);
}

/* Returns the text, which is valid until the next call; frees the profile. */
static const char *print(struct profile *p)
{
	FILE *out = print_begin();

	stack_ends_print(p, "tool: ", out);
	profile_free(p);
	return print_end(out, 0);
}

static void test_complete(void **state)
{
	(void)state;
	assert_string_equal(print(new_profile("cfi", 1000)),
			    "tool: 100.00 % of the user stacks reach the program's start\n");
}

/* If the kernel followed frame pointers, or the method is unknown, the ends are unknown. */
static void test_unknown(void **state)
{
	struct profile *p = new_profile("cfi", 0);

	(void)state;
	assert_string_equal(print(new_profile("fp", 0)), "");
	assert_string_equal(print(new_profile("", 0)), "");
	p->totals.stacks_user = 0;
	assert_string_equal(print(p), "");
}

/* A cause is a line with the first of its images; those below half a percent have none. */
static void test_causes(void **state)
{
	struct profile *p = new_profile("cfi", 900);

	(void)state;
	add_end(p, "gap", "/lib/libfast.so", 50);
	add_end(p, "no_frame_information", "[anon]", 20);
	add_end(p, "gap", "/bin/other", 10);
	add_end(p, "gap", "/bin/third", 6);
	add_end(p, "unreadable", "", 5);
	add_end(p, "unsupported", "/bin/other", 4);
	add_end(p, "32_bit", "/bin/old", 5);
	add_end(p, "gap", "/lib/libfast.so", 1); /* is added to the first */
	assert_string_equal(
		print(p),
		"tool: 90.00 % of the user stacks reach the program's start\n"
		"tool:   6.70 %: code without call frame information in libfast.so and 2 others: "
		"C code needs -fasynchronous-unwind-tables, assembly .cfi directives\n"
		"tool:   2.00 %: no call frame information in [anon]: build it with "
		"-fasynchronous-unwind-tables or -fno-omit-frame-pointer; code that is made at "
		"run time needs frame pointers\n"
		"tool:   0.50 %: the stack could not be read\n"
		"tool:   0.50 %: 32-bit processes are walked by frame pointers in old: build them "
		"with -fno-omit-frame-pointer\n");
	p = new_profile("cfi", 900);
	add_end(p, "gap", "/bin/one", 50);
	add_end(p, "gap", "/bin/two", 50);
	assert_non_null(strstr(print(p), " in one and 1 other: "));
}

/* Contents of files: causes of a later version, names that act on a terminal, too large sums. */
static void test_hostile(void **state)
{
	struct profile *p = new_profile("cfi", UINT64_MAX);

	(void)state;
	add_end(p, "later\033", "/bin/a\nb\033[31m", 7);
	add_end(p, "gap", "/1", UINT64_MAX);
	add_end(p, "gap", "/2", UINT64_MAX);
	p->totals.stacks_user = 1;
	assert_string_equal(
		print(p), "tool: 10000000000000000.00 % of the user stacks reach the program's "
			  "start\n"
			  "tool:   700.00 %: later\\x1b in a\\x0ab\\x1b[31m\n"
			  "tool:   10000000000000000.00 %: code without call frame information in "
			  "1 and 1 other: C code needs -fasynchronous-unwind-tables, assembly "
			  ".cfi directives\n");
}

static struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *value;

	assert_true(json_object_object_get_ex(object, key, &value));
	return value;
}

static void test_json(void **state)
{
	struct profile *p = new_profile("cfi", 0);
	struct json_object *array = stack_ends_json(p), *end;

	(void)state;
	assert_string_equal(json_object_to_json_string(array), "[ ]");
	json_object_put(array);
	add_end(p, "32_bit", "/bin/old", 3);
	add_end(p, "later", "\xff\"\n", UINT64_MAX);
	array = stack_ends_json(p);
	assert_int_equal(json_object_array_length(array), 2);
	end = json_object_array_get_idx(array, 0);
	assert_string_equal(json_object_get_string(member(end, "cause")), "32_bit");
	assert_string_equal(json_object_get_string(member(end, "image")), "/bin/old");
	assert_int_equal(json_object_get_uint64(member(end, "count")), 3);
	assert_string_equal(json_object_get_string(member(end, "hint")),
			    "build them with -fno-omit-frame-pointer");
	end = json_object_array_get_idx(array, 1);
	assert_string_equal(json_object_get_string(member(end, "image")), "\xef\xbf\xbd\"\n");
	assert_true(json_object_get_uint64(member(end, "count")) == UINT64_MAX);
	assert_string_equal(json_object_get_string(member(end, "hint")), "");
	json_object_put(array);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_complete), cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_causes),	 cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_json),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(printed);
	return failed;
}
