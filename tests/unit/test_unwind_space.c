// SPDX-License-Identifier: GPL-2.0-only
/* The resulting mappings of a process, after a sequence of mmap() and munmap(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/unwind/unwind_space.h"

#define ADDRESSES 256

static struct unwind_mapping mapping_of(uint64_t start, uint64_t limit, uint32_t image)
{
	return (struct unwind_mapping){ .start = start, .limit = limit, .image = image };
}

/* Sorted, and at each address the latest mapping; 0: none. */
static void assert_space(const struct unwind_space *space, const uint32_t *images)
{
	uint32_t found[ADDRESSES] = { 0 };
	uint64_t end = 0;

	for (size_t i = 0; i < space->count; i++) {
		const struct unwind_mapping *m = &space->mappings[i];

		assert_true(m->start >= end && m->start < m->limit && m->limit <= ADDRESSES);
		for (uint64_t at = m->start; at < m->limit; at++)
			found[at] = m->image;
		end = m->limit;
	}
	assert_memory_equal(found, images, sizeof(found));
}

/* Any number in one step. */
static void test_random(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 3000; round++) {
		struct unwind_space space = { 0 };
		uint32_t images[ADDRESSES] = { 0 }, image = 0;

		for (int batch = 0; batch < 4; batch++) {
			struct unwind_mapping mappings[16];
			size_t count = rand() % 16;

			for (size_t i = 0; i < count; i++) {
				uint64_t start = rand() % ADDRESSES, size = rand() % 40;
				uint64_t limit =
					start + size < ADDRESSES ? start + size : ADDRESSES;

				mappings[i] = mapping_of(start, limit, ++image);
				for (uint64_t at = start; at < limit; at++)
					images[at] = image;
			}
			assert_int_equal(unwind_space_map(&space, mappings, count), 0);
			assert_space(&space, images);
		}
		free(space.mappings);
	}
}

/* Of too many the first are kept; there are never more than the BPF program searches. */
static void test_too_many(void **state)
{
	size_t count = 4 * UNWIND_PROCESS_MAPPINGS_MAX;
	struct unwind_mapping *mappings = calloc(count, sizeof(*mappings)), one;
	struct unwind_space space = { 0 };

	(void)state;
	assert_non_null(mappings);
	for (size_t i = 0; i < count; i++)
		mappings[i] = mapping_of(i * 4, i * 4 + 4, i);
	assert_int_equal(unwind_space_map(&space, mappings, count), -ENOSPC);
	assert_in_range(space.count, UNWIND_PROCESS_MAPPINGS_MAX * 9 / 10,
			UNWIND_PROCESS_MAPPINGS_MAX);
	for (size_t i = 0; i < space.count; i++)
		assert_int_equal(space.mappings[i].image, i);
	one = mapping_of(1, 3, 7);
	count = space.count;
	assert_int_equal(unwind_space_map(&space, &one, 1), -ENOSPC);
	assert_int_equal(space.count, count);
	free(space.mappings);
	free(mappings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
