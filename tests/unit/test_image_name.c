// SPDX-License-Identifier: GPL-2.0-only
/* Names of images, from path and build ID. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "profile/build_id.h"
#include "profile/image_name.h"
#include "util/proc_maps.h"

static void test_kind(void **state)
{
	static const struct {
		const char *path;
		enum image_kind kind;
	} cases[] = {
		{ "", IMAGE_UNNAMED },
		{ "prog", IMAGE_FILE },
		{ "/usr/bin/prog", IMAGE_FILE },
		{ "/usr/bin/prog (deleted)", IMAGE_FILE },
		{ "//usr/bin/prog", IMAGE_FILE },
		{ "[kernel.kallsyms]", IMAGE_IN_KERNEL },
		{ "[kernel.kallsyms]_text", IMAGE_IN_KERNEL },
		{ "[kernel]", IMAGE_IN_KERNEL },
		{ "[vdso]", IMAGE_VDSO },
		{ "[vdso32]", IMAGE_VDSO },
		{ "[vsyscall]", IMAGE_VSYSCALL },
		{ "[vvar]", IMAGE_BRACKETED },
		{ "[anon]", IMAGE_BRACKETED },
		{ "[jit 612]", IMAGE_JIT },
		{ "[nf_tables]", IMAGE_BRACKETED },
		{ "//anon", IMAGE_ANON },
		{ "/memfd:jit (deleted)", IMAGE_SHARED },
		{ "/SYSV00000000", IMAGE_SHARED },
		{ "/dev/zero", IMAGE_SHARED },
		{ "/anon_hugepage", IMAGE_SHARED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(image_kind(cases[i].path), cases[i].kind);
}

static void test_kernel(void **state)
{
	(void)state;
	assert_true(image_is_kernel("[kernel.kallsyms]"));
	assert_true(image_is_kernel("[kernel.kallsyms]_text"));
	assert_false(image_is_kernel("[kernel]"));
	assert_true(image_is_in_kernel("[kernel]"));
	assert_false(image_is_in_kernel("/boot/[kernel]"));
}

static void test_path(void **state)
{
	(void)state;
	assert_int_equal(proc_path_size("/a"), 2);
	assert_int_equal(proc_path_size("/a (deleted)"), 2);
	assert_int_equal(proc_path_size("/a (deleted) (deleted)"), strlen("/a (deleted)"));
	assert_int_equal(proc_path_size(" (deleted)"), strlen(" (deleted)"));
	assert_int_equal(proc_path_size(""), 0);
	assert_true(image_has_no_directory("prog"));
	assert_true(image_has_no_directory(""));
	assert_false(image_has_no_directory("./prog"));
	assert_false(image_has_no_directory("[vdso]"));
}

static void test_build_id(void **state)
{
	uint8_t bytes[PROFILE_BUILD_ID_MAX];
	char text[BUILD_ID_TEXT_SIZE], most[BUILD_ID_TEXT_SIZE + 2];

	(void)state;
	assert_int_equal(build_id_parse("00fFA9", 6, bytes), 3);
	assert_memory_equal(bytes, "\x00\xff\xa9", 3);
	build_id_format(bytes, 3, text);
	assert_string_equal(text, "00ffa9");
	build_id_format(bytes, 0, text);
	assert_string_equal(text, "");
	assert_int_equal(build_id_parse("", 0, bytes), 0);
	assert_int_equal(build_id_parse("123", 3, bytes), 0);
	assert_int_equal(build_id_parse("1g", 2, bytes), 0);
	assert_int_equal(build_id_parse("g1", 2, bytes), 0);
	memset(most, '7', sizeof(most));
	assert_int_equal(build_id_parse(most, BUILD_ID_TEXT_SIZE - 1, bytes), PROFILE_BUILD_ID_MAX);
	build_id_format(bytes, PROFILE_BUILD_ID_MAX, text);
	assert_int_equal(strlen(text), BUILD_ID_TEXT_SIZE - 1);
	assert_memory_equal(text, most, BUILD_ID_TEXT_SIZE - 1);
	assert_int_equal(build_id_parse(most, BUILD_ID_TEXT_SIZE + 1, bytes), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kind),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_build_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
