/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TESTS_GPERFTOOLS_FIXTURE_H
#define PROFIL_TESTS_GPERFTOOLS_FIXTURE_H

/* Shared by the tests of gperftools' format: files of slots, and a small profile. */

#include "format/gperftools/gperftools.h"
#include "format_fixture.h"

#define MAP "00400000-00500000 r-xp 00001000 08:01 77          /bin/prog\n"

/* Appends slots of this width and byte order. */
static inline void add_slots(struct bytes *b, unsigned int bits, bool big, const uint64_t *slots,
			     size_t count)
{
	size_t size = bits / 8;
	uint8_t *bytes = malloc(count * size);

	assert_non_null(bytes);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < size; j++)
			bytes[i * size + (big ? size - 1 - j : j)] = slots[i] >> 8 * j;
	bytes_add(b, bytes, count * size);
	free(bytes);
}

#define SLOTS(b, ...)                                              \
	add_slots(b, 64, false, (const uint64_t[]){ __VA_ARGS__ }, \
		  sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

#define HEADER	0, 3, 0, 10000, 0
#define TRAILER 0, 1, 0

/* main at the root, three leaves in two mappings, two threads. */
static inline struct profile *small_profile(void)
{
	struct profile *p = empty_profile(10000000);
	uint32_t exe = add_mapping(p, 0x400000, 0x500000, 0x1000, "/bin/prog");
	uint32_t lib = add_mapping(p, 0x7f0000, 0x800000, 0x2000, "/lib/li b.so");
	uint32_t f[] = { add_location(p, 0x400100, exe), add_location(p, 0x400200, exe),
			 add_location(p, 0x400300, exe), add_location(p, 0x7f0100, lib) };
	uint32_t a = add_labels(p, 1, 1, "a", false), b = add_labels(p, 1, 2, "b", false);

	add_sample(p, (uint32_t[]){ f[0], f[1], f[2] }, 3, a, 5);
	add_sample(p, (uint32_t[]){ f[0], f[1], f[2] }, 3, b, 6);
	add_sample(p, (uint32_t[]){ f[3], f[2] }, 2, a, 7);
	add_sample(p, (uint32_t[]){ f[3] }, 1, a, 8);
	add_sample(p, (uint32_t[]){ f[2] }, 0, a, 9);
	return p;
}

#endif
