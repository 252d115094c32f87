// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "gperftools_fixture.h"

#include <errno.h>

#include "format/gperftools/address_space.h"

static const struct format *const gperftools = &format_gperftools;

static void round_trip(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct profile *p = small_profile(), *q;
		struct bytes b;

		p->bits = i & 1 ? 32 : 64;
		p->big_endian = i & 2;
		b = write_bytes(gperftools, p);
		q = read_good(gperftools, &b);
		assert_int_equal(q->warning_count, 0);
		assert_int_equal(q->comment_count, 0);
		assert_int_equal(q->bits, p->bits);
		assert_int_equal(q->big_endian, p->big_endian);
		assert_int_equal(profile_tick_ns(q), profile_tick_ns(p));
		/* Both threads' samples are of one stack, and there is none without a pc. */
		assert_int_equal(q->sample_count, 3);
		assert_int_equal(q->values[0], 11);
		assert_int_equal(q->values[2], 7);
		assert_int_equal(q->values[4], 8);
		assert_int_equal(q->mapping_count, 2);
		assert_memory_equal(q->mappings, p->mappings, 2 * sizeof(*q->mappings));
		assert_string_equal(q->images[1].path, "/lib/li b.so");
		assert_int_equal(q->location_count, 4);
		for (size_t j = 0; j < 4; j++) {
			assert_int_equal(q->locations[j].address, p->locations[j].address);
			assert_int_equal(q->locations[j].mapping, p->locations[j].mapping);
		}
		profile_free(q);
		profile_free(p);
		bytes_free(&b);
	}
}

/* The rules of gperftools' own validator: all readers accept a file that passes. */
static void written_bytes(void **state)
{
	struct profile *p = empty_profile(400);
	struct bytes b, want = { 0 };
	uint32_t exe = add_mapping(p, 0x400000, 0x500000, 0x1000, "/bin/prog");
	uint32_t frames[] = { add_location(p, 0x400010, exe), add_location(p, 0x40001f, exe) };
	uint32_t none = add_labels(p, 0, 0, "", false);

	(void)state;
	add_sample(p, frames, 2, none, 3);
	add_sample(p, frames, 1, none, 1);
	add_sample(p, frames + 1, 1, none, 0);
	b = write_bytes(gperftools, p);
	SLOTS(&want, 0, 3, 0, 1, 0, 3, 2, 0x400010, 0x400020, 1, 1, 0x400010, TRAILER);
	bytes_add_text(&want,
		       "00400000-00500000 r-xp 00001000 00:00 0                     /bin/prog"
		       "\n");
	assert_int_equal(b.size, want.size);
	assert_memory_equal(b.start, want.start, want.size);
	bytes_free(&b);
	bytes_free(&want);
	profile_free(p);
}

/* Our records as go's pprof and google-pprof interpret them. */
struct reader_view {
	size_t records;
	size_t most_with_same_second;
};

static void add_second(uint64_t *seconds, size_t *counts, size_t *used, uint64_t pc)
{
	size_t i = 0;

	while (i < *used && seconds[i] != pc)
		i++;
	if (i == *used)
		counts[(*used)++] = 0;
	seconds[i] = pc;
	counts[i]++;
}

static struct reader_view view_records(const struct bytes *b)
{
	const uint64_t *slots = (const uint64_t *)b->start;
	struct reader_view view = { 0 };
	uint64_t seconds[1024];
	size_t counts[1024], used = 0;

	for (size_t i = 5; slots[i] != 0; i += 2 + slots[i + 1]) {
		assert_true(slots[i + 1] >= 1 && slots[i + 1] <= 254);
		for (size_t j = 0; j < slots[i + 1]; j++)
			assert_true(slots[i + 2 + j] != 0);
		view.records++;
		if (slots[i + 1] > 1)
			add_second(seconds, counts, &used, slots[i + 3]);
	}
	for (size_t i = 0; i < used; i++)
		if (counts[i] > view.most_with_same_second)
			view.most_with_same_second = counts[i];
	return view;
}

/* n stacks with different leaves and the same caller, and `others` with another caller. */
static struct profile *hot_caller(uint32_t n, uint32_t others, int64_t count)
{
	struct profile *p = empty_profile(1000000);
	uint32_t none = add_labels(p, 0, 0, "", false);
	uint32_t exe = add_mapping(p, 0x400000, 0x500000, 0, "/bin/prog");

	for (uint32_t i = 0; i < n + others; i++) {
		uint32_t frames[] = {
			add_location(p, 0x400000 + 16 * (i + 1), exe),
			add_location(p, i < n ? 0x410000 : 0x420000 + i, exe),
			add_location(p, 0x430000, exe),
		};

		add_sample(p, frames, 3, none, count);
	}
	return p;
}

static void callers_are_guarded(void **state)
{
	(void)state;
	for (uint32_t n = 1; n < 200; n++) {
		for (uint32_t others = 0; others < 5; others++) {
			struct profile *p = hot_caller(n, others, 2);
			struct bytes b = write_bytes(gperftools, p);
			struct reader_view view = view_records(&b);

			if (n + others > 1)
				assert_int_equal(view.records, n + others);
			assert_true(view.most_with_same_second < view.records - view.records / 32);
			bytes_free(&b);
			profile_free(p);
		}
	}
}

/* One stack of many threads is as many records, which google-pprof sums up first. */
static void threads_are_guarded(void **state)
{
	struct profile *p = hot_caller(1, 0, 1);
	uint32_t frames[] = { p->frames[0], p->frames[1], p->frames[2] };
	struct bytes b;
	struct reader_view view;

	(void)state;
	for (uint32_t i = 1; i < 100; i++)
		add_sample(p, frames, 3, add_labels(p, 1, i, "", false), 1);
	b = write_bytes(gperftools, p);
	view = view_records(&b);
	assert_int_equal(view.records, 100);
	assert_int_equal(view.most_with_same_second, 100 - 100 / 32 - 1);
	bytes_free(&b);
	profile_free(p);
}

static void only_stack_is_split(void **state)
{
	struct profile *p = hot_caller(1, 0, 10);
	struct bytes b = write_bytes(gperftools, p), want = { 0 };

	(void)state;
	SLOTS(&want, 0, 3, 0, 1000, 0, 9, 3, 0x400010, 0x410001, 0x430001, 1, 4, 0x400010, 0x400010,
	      0x410001, 0x430001, TRAILER);
	assert_memory_equal(b.start, want.start, want.size);
	profile_free(p);
	bytes_free(&b);
	bytes_free(&want);
	/* A single tick cannot be split: after two passes of go's pprof the caller remains. */
	p = hot_caller(1, 0, 1);
	b = write_bytes(gperftools, p);
	SLOTS(&want, 0, 3, 0, 1000, 0, 1, 5, 0x400010, 0x400010, 0x400010, 0x410001, 0x430001,
	      TRAILER);
	assert_memory_equal(b.start, want.start, want.size);
	profile_free(p);
	bytes_free(&b);
	bytes_free(&want);
}

static void deep_stacks_are_cut_at_the_root(void **state)
{
	struct profile *p = empty_profile(1000000), *q;
	uint32_t none = add_labels(p, 0, 0, "", false);
	uint32_t frames[300];
	struct bytes b;

	(void)state;
	for (uint32_t i = 0; i < 300; i++)
		frames[i] = add_location(p, 0x1000 + i, PROFILE_NONE);
	add_sample(p, frames, 300, none, 5);
	add_sample(p, frames, 1, none, 5);
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->samples[0].depth, 254);
	assert_int_equal(q->locations[q->frames[0]].address, 0x1000);
	assert_int_equal(q->locations[q->frames[253]].address, 0x1000 + 253);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static void big_counts_are_split(void **state)
{
	struct profile *p = small_profile(), *q;
	struct bytes b;

	(void)state;
	p->bits = 32;
	p->values[2 * 2] = 3LL * UINT32_MAX + 5;
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->bits, 32);
	assert_true(q->values[2] == 3LL * UINT32_MAX + 5);
	profile_free(q);
	bytes_free(&b);
	/* So many records would be of no use. */
	p->values[2 * 2] = INT64_MAX;
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->bits, 64);
	assert_true(q->values[2] == INT64_MAX);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static void zero_pcs_are_not_written(void **state)
{
	struct profile *p = empty_profile(1000000), *q;
	uint32_t none = add_labels(p, 0, 0, "", false);
	uint32_t f[] = { add_location(p, 0, PROFILE_NONE), add_location(p, 0x1000, PROFILE_NONE),
			 add_location(p, UINT64_MAX, PROFILE_NONE) };
	struct bytes b;

	(void)state;
	p->bits = 32;
	add_sample(p, f, 3, none, 2);
	add_sample(p, f, 1, none, 2);
	add_sample(p, f + 1, 2, none, 3);
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->bits, 32);
	assert_int_equal(q->sample_count, 1);
	assert_int_equal(q->values[0], 5);
	assert_int_equal(q->locations[0].address, 0x1000);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

/* Files that name functions may have no addresses: frames without one are omitted. */
static void frames_without_addresses(void **state)
{
	struct profile *p = empty_profile(1000000), *q;
	struct profile_line line = { .function = add_function(p, "f", "", 0) };
	uint32_t none = add_labels(p, 0, 0, "", false);
	uint32_t named, pc = add_location(p, 0x1000, PROFILE_NONE);
	struct bytes b = { 0 };
	struct error e = { 0 };

	(void)state;
	assert_int_equal(profile_add_line_location(p, 0, PROFILE_NONE, &line, 1, &named), 0);
	add_sample(p, (uint32_t[]){ named, named }, 2, none, 3);
	assert_int_equal(try_write(gperftools, p, &b, &e), -EINVAL);
	assert_non_null(strstr(e.what, "has no addresses"));
	assert_non_null(strstr(e.hint, "callgrind"));
	assert_int_equal(b.size, 0);
	bytes_free(&b);
	add_sample(p, (uint32_t[]){ pc, named }, 2, none, 4);
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->sample_count, 1);
	assert_int_equal(q->samples[0].depth, 1);
	assert_int_equal(q->values[0], 4);
	assert_int_equal(q->locations[0].address, 0x1000);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

/* Several images that were read without a process may have the same addresses. */
static void linked_mappings(void **state)
{
	static const char *const paths[] = { "/bin/a", "/bin/a", "/bin/b", "/bin/fixed" };
	struct profile *p = empty_profile(1000000), *q;
	uint32_t none = add_labels(p, 0, 0, "", false);
	uint32_t a = add_mapping(p, 0x1000, 0x5000, 0, "/bin/a");
	uint32_t c = add_mapping(p, 0x6000, 0xa000, 0, "/bin/a");
	uint32_t b = add_mapping(p, 0x1000, 0x5000, 0, "/bin/b");
	uint32_t d = add_mapping(p, 0x401000, 0x405000, 0, "/bin/fixed");
	uint32_t f[4];
	struct bytes bytes;

	(void)state;
	for (int i = 0; i < 4; i++)
		p->mappings[i].linked = true;
	f[0] = add_location(p, 0x1234, a);
	f[1] = add_location(p, 0x6234, c);
	f[2] = add_location(p, 0x1234, b);
	f[3] = add_location(p, 0x401234, d);
	for (int i = 0; i < 4; i++)
		add_sample(p, &f[i], 1, none, i + 1);
	bytes = write_bytes(gperftools, p);
	q = read_good(gperftools, &bytes);
	assert_int_equal(q->mapping_count, 4);
	assert_int_equal(q->mappings[3].offset, 0x1000);
	assert_int_equal(q->mappings[0].start, 0x1000);
	assert_int_equal(q->mappings[0].limit, 0x5000);
	assert_true(q->mappings[2].start >= 0xa000);
	for (int i = 0; i < 4; i++) {
		uint32_t location = q->frames[q->samples[i].first_frame];

		assert_int_equal(q->values[2 * i], i + 1);
		assert_string_equal(profile_location_image(q, location)->path, paths[i]);
		assert_int_equal(q->locations[location].image_address, i == 1 ? 0x6234 : 0x1234);
	}
	profile_free(q);
	profile_free(p);
	bytes_free(&bytes);
}

static void kernel_has_a_map_line(void **state)
{
	struct profile *p = small_profile(), *q;
	uint32_t kernel =
		add_mapping(p, 0xffffffff81000000, 0xffffffff82000000, 0, "[kernel.kallsyms]");
	uint32_t frame = add_location(p, 0xffffffff81000100, kernel);
	struct bytes b;

	(void)state;
	add_sample(p, &frame, 1, 0, 2);
	b = write_bytes(gperftools, p);
	assert_non_null(memmem(b.start, b.size, " [kernel.kallsyms]_text\n", 24));
	q = read_good(gperftools, &b);
	assert_int_equal(q->mapping_count, 3);
	assert_string_equal(q->images[2].path, "[kernel.kallsyms]");
	profile_free(q);
	bytes_free(&b);
	/* Below 4 GiB in a 32-bit program. */
	p->bits = 32;
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->bits, 32);
	assert_true(q->mappings[2].limit <= 1ULL << 32);
	assert_int_equal(q->mappings[q->locations[4].mapping].start, q->mappings[2].start);
	assert_int_equal(q->locations[4].address, q->mappings[2].start + 0x100);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static void narrow_slots_become_wide(void **state)
{
	struct profile *p = small_profile(), *q;
	uint32_t frame = add_location(p, 0x123456789a, PROFILE_NONE);
	struct bytes b;

	(void)state;
	p->bits = 32;
	add_sample(p, &frame, 1, 0, 2);
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->bits, 64);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static void newline_in_a_path(void **state)
{
	struct profile *p = empty_profile(1000000), *q;
	struct bytes b;

	(void)state;
	add_mapping(p, 0x1000, 0x2000, 0, "/a\nb");
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->mapping_count, 1);
	assert_string_equal(q->images[0].path, "/a\nb");
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

/* Each mapping has its own addresses, and each copy those of its original. */
static void assert_no_overlap(const struct address_space *s)
{
	const struct profile *p = s->p;

	for (size_t i = 0; i < p->mapping_count; i++) {
		uint64_t size = p->mappings[i].limit - p->mappings[i].start;

		assert_int_equal(s->start[i], s->start[s->home[i]]);
		for (size_t j = 0; j < i; j++)
			if (s->home[i] != s->home[j])
				assert_true(s->start[i] + size <= s->start[j] ||
					    s->start[j] + (p->mappings[j].limit -
							   p->mappings[j].start) <=
						    s->start[i]);
	}
}

static void mappings_that_overlap_move(void **state)
{
	struct profile *p = empty_profile(1000000);
	struct address_space s;

	(void)state;
	add_mapping(p, 0x400000, 0x500000, 0, "/bin/a");
	add_mapping(p, 0x7f0000000, 0x7f0010000, 0, "/lib/c");
	add_mapping(p, 0x480000, 0x580000, 0, "/bin/b");
	add_mapping(p, 0x7e0000000, 0x7e0010000, 0, "/lib/c");
	add_mapping(p, 0x900000, 0x910000, 0, "[anon]");
	add_mapping(p, 0xa00000, 0xa10000, 0, "[anon]");
	add_mapping(p, 0x500000, 0x501000, 0, "/bin/next");
	add_mapping(p, 0x900000, 0x910000, 0, "[anon]");
	for (unsigned int bits = 32; bits <= 64; bits += 32) {
		assert_int_equal(address_space_init(&s, p, bits), 0);
		assert_no_overlap(&s);
		assert_int_equal(s.start[0], 0x400000);
		assert_int_equal(s.home[2], 2);
		assert_true(s.start[2] != 0x480000);
		assert_int_equal(s.home[3], 1);
		assert_int_equal(s.home[5], 5);
		assert_int_equal(s.start[5], 0xa00000);
		assert_int_equal(s.start[6], 0x500000);
		assert_int_equal(s.home[7], 4);
		if (bits == 64)
			assert_true(s.start[1] == 0x7f0000000);
		else
			for (size_t i = 0; i < p->mapping_count; i++)
				assert_true(s.start[i] + 0x100000 <= 1ULL << 32);
		address_space_free(&s);
	}
	profile_free(p);
}

static void addresses_move_with_their_mapping(void **state)
{
	struct profile *p = empty_profile(1000000);
	uint32_t other, lost;
	struct address_space s;

	(void)state;
	add_mapping(p, 0x400000, 0x500000, 0, "/bin/a");
	other = add_location(p, 0x400123, add_mapping(p, 0x400000, 0x410000, 0, "/bin/b"));
	lost = add_location(p, 0x400123, PROFILE_NONE);
	assert_int_equal(address_space_init(&s, p, 64), 0);
	assert_int_equal(address_space_address(&s, other), s.start[1] + 0x123);
	/* It would get the name of other code. */
	assert_true(address_space_address(&s, lost) == (0x400123 | 1ULL << 62));
	address_space_free(&s);
	profile_free(p);
}

/*
 * Adjacent mappings do not overlap; a mapping is moved to the first gap that is large enough,
 * exactly.
 */
static void gaps_are_filled(void **state)
{
	struct profile *p = empty_profile(1000000);
	struct address_space s;

	(void)state;
	add_mapping(p, 0x8000000, 0xfffd0000, 0, "/most");
	/* One page and a free one after it, before and after the mappings that stay. */
	add_mapping(p, 0x30000, 0x7fe0000, 0, "/low");
	add_mapping(p, 0x30000, 0x40000, 0, "/before");
	add_mapping(p, 0x30000, 0x40000, 0x1000, "/behind");
	add_mapping(p, 0x7fe0000, 0x8000000, 0, "/between");
	assert_int_equal(address_space_init(&s, p, 32), 0);
	assert_no_overlap(&s);
	for (size_t i = 0; i < p->mapping_count; i++)
		assert_int_equal(s.start[i], i == 2   ? 0x10000
					     : i == 3 ? 0xfffd0000
						      : p->mappings[i].start);
	address_space_free(&s);
	add_mapping(p, 0x30000, 0x30001, 0x2000, "/one more");
	assert_int_equal(address_space_init(&s, p, 32), -ENOSPC);
	profile_free(p);
}

/* With 32 bits the last address is 0xffffffff. */
static void mappings_beyond_32_bits_move(void **state)
{
	struct profile *p = empty_profile(1000000);
	struct address_space s;

	(void)state;
	add_mapping(p, 0xffff0000, 1ULL << 32, 0, "/end");
	add_mapping(p, 0xfffe0001, (1ULL << 32) + 1, 0, "/beyond");
	assert_int_equal(address_space_init(&s, p, 32), 0);
	assert_int_equal(s.start[0], 0xffff0000);
	assert_int_equal(s.start[1], 0x10001); /* its offset in the page stays */
	address_space_free(&s);
	profile_free(p);
}

static void address_space_is_too_small(void **state)
{
	struct profile *p = empty_profile(1000000);
	struct address_space s;

	(void)state;
	add_mapping(p, 0x10000000, 0xd0000000, 0, "/a");
	add_mapping(p, 0x10000000, 0xd0000001, 0, "/b");
	assert_int_equal(address_space_init(&s, p, 32), -ENOSPC);
	assert_int_equal(address_space_init(&s, p, 64), 0);
	assert_no_overlap(&s);
	address_space_free(&s);
	/* A mapping of all addresses, which go's pprof adds if there is none, cannot be moved. */
	add_mapping(p, 0, UINT64_MAX, 0, "/all");
	add_mapping(p, 5, 5, 0, "/nothing");
	assert_int_equal(address_space_init(&s, p, 64), 0);
	assert_int_equal(s.start[2], 0);
	assert_int_equal(s.start[3], 5);
	address_space_free(&s);
	profile_free(p);
}

static void many_mappings(void **state)
{
	struct profile *p = empty_profile(1000000);
	struct address_space s;
	uint64_t random = 1;

	(void)state;
	for (int i = 0; i < 400; i++) {
		char path[32];

		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		snprintf(path, sizeof(path), "/bin/%d", i % 300);
		add_mapping(p, random >> 40 << 12,
			    (random >> 40 << 12) + ((random & 0xff) << 12) + 0x1000, 0, path);
	}
	assert_int_equal(address_space_init(&s, p, 64), 0);
	assert_no_overlap(&s);
	address_space_free(&s);
	profile_free(p);
}

static void two_processes(void **state)
{
	struct profile *p = small_profile(), *q;
	uint32_t other = add_mapping(p, 0x400000, 0x480000, 0, "/bin/other");
	uint32_t again = add_mapping(p, 0x10400000, 0x10500000, 0x1000, "/bin/prog");
	uint32_t frames[] = { add_location(p, 0x400100, other),
			      add_location(p, 0x10400100, again) };
	struct bytes b;

	(void)state;
	add_sample(p, frames, 1, 0, 20);
	add_sample(p, frames + 1, 1, 0, 30);
	b = write_bytes(gperftools, p);
	q = read_good(gperftools, &b);
	assert_int_equal(q->mapping_count, 3);
	assert_int_equal(q->sample_count, 5);
	assert_int_equal(q->values[2 * 3], 20);
	assert_string_equal(profile_location_image(q, q->frames[q->samples[3].first_frame])->path,
			    "/bin/other");
	assert_int_equal(q->locations[q->frames[q->samples[4].first_frame]].address, 0x400100);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(written_bytes),
		cmocka_unit_test(callers_are_guarded),
		cmocka_unit_test(threads_are_guarded),
		cmocka_unit_test(only_stack_is_split),
		cmocka_unit_test(deep_stacks_are_cut_at_the_root),
		cmocka_unit_test(big_counts_are_split),
		cmocka_unit_test(zero_pcs_are_not_written),
		cmocka_unit_test(frames_without_addresses),
		cmocka_unit_test(linked_mappings),
		cmocka_unit_test(kernel_has_a_map_line),
		cmocka_unit_test(narrow_slots_become_wide),
		cmocka_unit_test(newline_in_a_path),
		cmocka_unit_test(mappings_that_overlap_move),
		cmocka_unit_test(addresses_move_with_their_mapping),
		cmocka_unit_test(gaps_are_filled),
		cmocka_unit_test(mappings_beyond_32_bits_move),
		cmocka_unit_test(address_space_is_too_small),
		cmocka_unit_test(many_mappings),
		cmocka_unit_test(two_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
