// SPDX-License-Identifier: GPL-2.0-only
/* Files whose symbols took too much: they are tried again, as their debug files may be others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "util/clock.h"

static uint64_t test_now_ns = NS_PER_S;
#define now_ns() test_now_ns

/* With its private functions. */
#include "symbol/file_cache.c"

static void test_refused(void **state)
{
	const struct file_key key = { .inode = 5, .size = 7 };
	struct file_cache *cache = file_cache_new();
	uint64_t wait_ns = KEEP_NS;

	(void)state;
	assert_non_null(cache);
	for (int time = 0; time < 12; time++) {
		uint64_t end_ns = test_now_ns + wait_ns;

		file_cache_refuse(file_cache_get(cache, &key));
		/* It is asked for in each window. */
		for (; test_now_ns + 60 * NS_PER_S < end_ns; test_now_ns += 60 * NS_PER_S)
			assert_true(file_cache_get(cache, &key)->is_refused);
		test_now_ns = end_ns;
		assert_false(file_cache_get(cache, &key)->is_refused);
		wait_ns = 2 * wait_ns < REFUSED_NS_MAX ? 2 * wait_ns : REFUSED_NS_MAX;
	}
	file_cache_free(cache);
}

/* What was read stays as long as it is used, and for some windows after. */
static void test_windows(void **state)
{
	const struct file_key used = { .inode = 5 }, unused = { .inode = 6, .user = 1000 };
	struct file_cache *cache = file_cache_new();

	(void)state;
	assert_non_null(cache);
	file_cache_get(cache, &used)->exports_only = true;
	file_cache_get(cache, &unused)->exports_only = true;
	for (int window = 1; window < CAPTURE_KEEP_WINDOWS; window++) {
		file_cache_begin_window(cache);
		assert_true(file_cache_get(cache, &used)->exports_only);
		assert_int_equal(file_cache_users_bytes(cache), FILE_LEAST);
	}
	file_cache_begin_window(cache);
	assert_int_equal(file_cache_users_bytes(cache), 0);
	assert_true(file_cache_get(cache, &used)->exports_only);
	assert_false(file_cache_get(cache, &unused)->exports_only);
	file_cache_free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
