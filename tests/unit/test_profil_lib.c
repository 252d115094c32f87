// SPDX-License-Identifier: GPL-2.0-only
/* libprofil without a kernel: regions and their cells, counts written to buffers, the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/cell.h"
#include "lib/backend.h"
#include "lib/device_regions.h"
#include "lib/fold.h"
#include "lib/profil.h"
#include "lib/rate.h"
#include "lib/memory.h"
#include "lib/region.h"
#include "lib/session.h"
#include "lib/sessions.h"

#define NO_CELL (-1)

#define REGION(o, b, s, m)                                                        \
	{                                                                         \
		.offset = (o), .bufsiz = (b), .scale = (s), .buffer = (char *)(m) \
	}

/* Our own generator, so that failures can be repeated. */
static uint64_t random_state = 1;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Numbers of any magnitude, and the smallest and largest ones. */
static uint64_t random_size(void)
{
	uint64_t number = random_u64() >> random_u64() % 64;

	return random_u64() % 8 ? number : -number;
}

/* --- Cells --- */

/* The rule of profil(2), computed with wide numbers. */
static int64_t cell_of_rule(const struct region *region, uint64_t pc, bool wide)
{
	unsigned __int128 product = (unsigned __int128)(pc - region->offset) * region->scale;
	unsigned int width = wide ? 4 : 2;

	if (pc < region->offset || (product >> 16) / width * width + width > region->bufsiz)
		return NO_CELL;
	return (product >> 16) / width;
}

/* The kernel's use of the plan. */
static int64_t cell_of_plan(const struct plan *plan, uint64_t pc)
{
	for (size_t i = 0; i < plan->range_count; i++) {
		const struct profil_range *range = &plan->ranges[i];

		if (pc < range->first || pc > range->last)
			continue;
		return range->base + (cell_index(pc - range->offset, range->scale) >> range->wide);
	}
	return NO_CELL;
}

/* Ranges are sorted, do not overlap, and their cells exist. */
static void check_ranges(const struct plan *plan)
{
	for (size_t i = 0; i < plan->range_count; i++) {
		const struct profil_range *range = &plan->ranges[i];

		assert_true(range->first <= range->last);
		assert_true(range->offset <= range->first);
		assert_true(i == 0 || range[-1].last < range->first);
		assert_in_range(cell_of_plan(plan, range->first), 0, plan->cell_count - 1);
		assert_in_range(cell_of_plan(plan, range->last), 0, plan->cell_count - 1);
	}
}

static void check_cell(const struct plan *plan, const struct region *region, uint64_t pc)
{
	int64_t cell = cell_of_plan(plan, pc), expected = cell_of_rule(region, pc, plan->wide);

	if (cell != expected)
		fail_msg("pc %#lx, offset %#lx, bufsiz %#lx, scale %#x: cell %ld, not %ld", pc,
			 region->offset, region->bufsiz, region->scale, cell, expected);
}

/* Checks random addresses, and both sides of the ends of the region and of a cell. */
static void check_cells(const struct plan *plan, const struct region *region)
{
	for (int i = 0; i < 20; i++)
		check_cell(plan, region, region->offset + random_size());
	for (int i = -2; i <= 2; i++) {
		check_cell(plan, region, region->offset + i);
		check_cell(plan, region, i);
		if (plan->range_count)
			check_cell(plan, region, plan->ranges[0].last + i);
	}
}

/* Regions of all possible numbers of cells. */
static void test_cells(void **state)
{
	static const uint32_t scales[] = { 1,	    2,	     3,	      0x5555,	 0x8000,    0xffff,
					   0x10000, 0x10001, 0x20000, 0x1000000, 0xffffffff };
	size_t made = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct region region = {
			.offset = random_size(),
			.bufsiz = random_size(),
			.scale = i % 2 ? scales[random_u64() % 11] : random_u64() | 1,
		};
		struct plan plan;

		if (profil__plan_make(&plan, &region, 1, i % 3 == 0))
			continue;
		made++;
		check_ranges(&plan);
		check_cells(&plan, &region);
		profil__plan_free(&plan);
	}
	assert_true(made > 5000);
}

static void check_golden(const char *line)
{
	struct region region;
	int64_t delta, expected;
	struct plan plan;

	assert_int_equal(sscanf(line, "%li,%ld,%lu,%i,%ld", (long *)&region.offset, &delta,
				&region.bufsiz, (int *)&region.scale, &expected),
			 5);
	region.buffer = NULL;
	if (region.scale <= 1) /* off */
		return;
	if (region.bufsiz / 2 > PROFIL_CELLS) {
		assert_int_equal(profil__plan_make(&plan, &region, 1, false), -ENOMEM);
		assert_int_equal(cell_index(delta, region.scale), expected);
		return;
	}
	assert_int_equal(profil__plan_make(&plan, &region, 1, false), 0);
	assert_int_equal(cell_of_plan(&plan, region.offset + delta), expected);
	check_cell(&plan, &region, region.offset + delta);
	profil__plan_free(&plan);
}

static void test_golden(void **state)
{
	FILE *in = fopen(PROFIL_TESTS "/data/profil/golden-cells.csv", "r");
	char line[256];
	size_t lines = 0;

	(void)state;
	assert_non_null(in);
	assert_non_null(fgets(line, sizeof(line), in)); /* the names */
	for (; fgets(line, sizeof(line), in); lines++)
		check_golden(line);
	fclose(in);
	assert_true(lines > 40);
}

/* --- Regions --- */

/* Cells without an address take no memory. */
static void test_unreachable_cells(void **state)
{
	struct region region = { .offset = UINT64_MAX - 9, .bufsiz = UINT64_MAX, .scale = 0x10000 };
	struct plan plan;

	(void)state;
	assert_int_equal(profil__plan_make(&plan, &region, 1, false), 0);
	assert_int_equal(plan.cell_count, 5);
	assert_int_equal(plan.range_count, 1);
	assert_true(plan.ranges[0].last == UINT64_MAX);
	profil__plan_free(&plan);

	region.offset = 0;
	region.scale = 2;
	assert_int_equal(profil__plan_make(&plan, &region, 1, false), -ENOMEM);
	assert_non_null(strstr(profil_error(), "cells"));
}

/* bufsiz 1: there is no cell. */
static void test_no_cell(void **state)
{
	struct region regions[] = { { .bufsiz = 1, .scale = 0x10000 },
				    { .bufsiz = 3, .scale = 0x10000 } };
	struct plan plan;

	(void)state;
	assert_int_equal(profil__plan_make(&plan, regions, 1, false), 0);
	assert_int_equal(plan.range_count, 0);
	profil__plan_free(&plan);
	assert_int_equal(profil__plan_make(&plan, regions, 2, false), 0);
	assert_int_equal(plan.cell_count, 1);
	assert_ptr_equal(profil__plan_region(&plan, 0), &plan.regions[1]);
	profil__plan_free(&plan);
	assert_int_equal(profil__plan_make(&plan, regions, 2, true), 0);
	assert_int_equal(plan.cell_count, 0);
	profil__plan_free(&plan);
}

/* Checks that an address counts in the first region that it is in. */
static void check_overlaps(const struct plan *plan, const struct region *regions, size_t count)
{
	for (uint64_t pc = 0; pc < 300; pc++) {
		int64_t cell = cell_of_plan(plan, pc), expected = NO_CELL;

		for (size_t i = 0; i < count && expected == NO_CELL; i++) {
			expected = cell_of_rule(&regions[i], pc, plan->wide);
			if (expected != NO_CELL)
				expected += plan->regions[i].base;
		}
		assert_int_equal(cell, expected);
		if (cell != NO_CELL)
			assert_int_equal(profil__plan_region(plan, cell)->base +
						 cell_of_rule(profil__plan_region(plan, cell), pc,
							      plan->wide),
					 cell);
	}
}

static void test_overlaps(void **state)
{
	(void)state;
	for (int i = 0; i < 3000; i++) {
		struct region regions[12] = { 0 };
		size_t count = 1 + random_u64() % 12;
		struct plan plan;

		for (size_t k = 0; k < count; k++) {
			regions[k].offset = random_u64() % 256;
			regions[k].bufsiz = random_u64() % 64;
			regions[k].scale = 0x1000 << random_u64() % 6;
		}
		assert_int_equal(profil__plan_make(&plan, regions, count, i % 2), 0);
		check_ranges(&plan);
		check_overlaps(&plan, regions, count);
		profil__plan_free(&plan);
	}
}

/* The largest number of regions, each in the gaps of one that covers all. */
static void test_most_regions(void **state)
{
	static struct region regions[MOST_REGIONS + 1];
	struct plan plan;

	(void)state;
	for (size_t i = 0; i < MOST_REGIONS; i++)
		regions[i] = (struct region)REGION(i * 100 + 50, 10, 0x10000, NULL);
	regions[MOST_REGIONS - 1] = (struct region)REGION(0, 1 << 20, 0x10000, NULL);
	assert_int_equal(profil__plan_make(&plan, regions, MOST_REGIONS, false), 0);
	assert_int_equal(plan.range_count, 2 * MOST_REGIONS - 1);
	check_ranges(&plan);
	profil__plan_free(&plan);
	assert_int_equal(profil__plan_make(&plan, regions, MOST_REGIONS + 1, false), -EINVAL);
	assert_int_equal(profil__plan_make(&plan, regions, 0, false), -EINVAL);
}

/* The overflow region of sprofil(): all other addresses, in one cell. */
static void test_overflow_region(void **state)
{
	const struct region regions[] = { REGION(0x1000, 0x10, 0x10000, NULL),
					  REGION(0, 4, 0, NULL) };
	struct plan plan;

	(void)state;
	assert_int_equal(profil__plan_make(&plan, regions, 2, true), 0);
	check_ranges(&plan);
	assert_int_equal(plan.cell_count, 5);
	assert_int_equal(cell_of_plan(&plan, 0), 4);
	assert_int_equal(cell_of_plan(&plan, 0xfff), 4);
	assert_int_equal(cell_of_plan(&plan, 0x1000), 0);
	assert_int_equal(cell_of_plan(&plan, 0x100f), 3);
	assert_int_equal(cell_of_plan(&plan, 0x1010), 4);
	assert_int_equal(cell_of_plan(&plan, UINT64_MAX), 4);
	profil__plan_free(&plan);
}

/* --- The regions of /dev/profil --- */

/* The module's use of the regions. Returns the address of the cell; 0: it does not count. */
static uintptr_t cell_of_device(const struct device_regions *made, uint64_t pc)
{
	unsigned int width = made->wide ? 4 : 2;

	for (uint32_t i = 0; i < made->count; i++) {
		const struct profil_device_region *region = &made->regions[i];
		uint64_t cell;

		if (pc < region->first || pc > region->last)
			continue;
		cell = cell_index(pc - region->offset, region->scale) >> made->wide;
		return cell < region->bufsiz / width ? region->buffer + cell * width : 0;
	}
	return 0;
}

/* Checks the contract of kmod/device.h; no region counts outside of its own cells. */
static void check_device_regions(const struct device_regions *made, const char *memory)
{
	const struct profil_device_region *last = &made->regions[made->count - 1];

	for (uint32_t i = 0; i < made->count; i++) {
		const struct profil_device_region *region = &made->regions[i];

		assert_true(region->offset <= region->first && region->first <= region->last);
		assert_true(i == 0 || region[-1].last < region->first);
		assert_int_equal(region->unused, 0);
	}
	assert_true(last->buffer == (uintptr_t)memory && last->bufsiz > 0);
	assert_int_equal(cell_of_device(made, last->first), 0);
}

/* The cell of the first region with this address, in its buffer or in the memory. */
static uintptr_t cell_of_regions(const struct plan *plan, uint64_t pc, const char *memory)
{
	for (size_t i = 0; i < plan->region_count; i++) {
		const struct region *region = &plan->regions[i];
		int64_t cell = cell_of_rule(region, pc, plan->wide);

		if (cell == NO_CELL)
			continue;
		if (region->buffer)
			return (uintptr_t)region->buffer + cell * (plan->wide ? 4 : 2);
		return (uintptr_t)memory + (region->base + cell) * 4;
	}
	return 0;
}

static void check_device_cell(const struct device_regions *made, const struct plan *plan,
			      uint64_t pc, const char *memory)
{
	if (pc < UINT64_MAX) /* there is no code */
		assert_int_equal(cell_of_device(made, pc), cell_of_regions(plan, pc, memory));
}

static void test_device_regions(void **state)
{
	static char memory[4];
	size_t made_count = 0;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		struct region regions[4] = { 0 };
		size_t count = 1 + random_u64() % 4;
		struct device_regions made;
		struct plan plan;

		for (size_t k = 0; k < count; k++) {
			regions[k].offset = random_size();
			regions[k].bufsiz = random_u64() >> (40 + random_u64() % 24);
			regions[k].scale = random_u64() % UINT32_MAX >> 1 >> random_u64() % 31;
			if (i % 3)
				regions[k].buffer = (char *)(k << 60);
		}
		regions[0].buffer = i % 3 ? (char *)0x1001 : NULL;
		if (profil__plan_make(&plan, regions, count, i % 3 == 1))
			continue;
		made_count++;
		assert_true(profil__device_memory_size(&plan) >= (i % 3 ? 1 : plan.cell_count * 4));
		assert_int_equal(profil__device_regions_make(&made, &plan, memory), 0);
		check_device_regions(&made, memory);
		for (size_t k = 0; k < 4 * count; k++)
			check_device_cell(&made, &plan, regions[k / 4].offset + random_size(),
					  memory);
		for (size_t k = 0; k < plan.range_count; k++)
			for (int delta = -2; delta <= 2; delta++)
				check_device_cell(&made, &plan, plan.ranges[k].last + delta,
						  memory);
		profil__memory_free(made.regions);
		profil__plan_free(&plan);
	}
	assert_true(made_count > 1000);
}

/* Scale 0 is that of the overflow region; sessions cannot have it. */
static void test_device_overflow(void **state)
{
	static char memory[1];
	const struct region regions[] = { REGION(0x1000, 0x10, 0x10000, 0x5000),
					  REGION(0, 4, 0, 0x6000) };
	struct device_regions made;
	struct plan plan;

	(void)state;
	assert_int_equal(profil__plan_make(&plan, regions, 2, true), 0);
	assert_int_equal(profil__device_regions_make(&made, &plan, memory), 0);
	check_device_regions(&made, memory);
	assert_true(made.wide);
	assert_int_equal(made.count, 4);
	assert_int_equal(cell_of_device(&made, 0x100f), 0x5000 + 3 * 4);
	assert_int_equal(cell_of_device(&made, 0), 0x6000);
	assert_int_equal(cell_of_device(&made, UINT64_MAX - 1), 0x6000);
	profil__memory_free(made.regions);
	profil__plan_free(&plan);
}

static void test_device_scale(void **state)
{
	struct region region = REGION(0x1000, 0x10, 0x80000000, NULL);
	struct device_regions made;
	struct plan plan;

	(void)state;
	assert_int_equal(profil__plan_make(&plan, &region, 1, false), 0);
	assert_int_equal(profil__device_regions_make(&made, &plan, NULL), -EBUSY);
	assert_non_null(strstr(profil_error(), "0x7fffffff"));
	profil__plan_free(&plan);
}

/* --- Counts --- */

/* A session for which the test does the kernel's part. */
struct fake {
	struct profil_session session;
	struct profil_state state;
	uint64_t cells[64];
};

static void begin(struct fake *fake, const struct region *regions, size_t count, bool wide)
{
	*fake = (struct fake){ 0 };
	assert_int_equal(profil__plan_make(&fake->session.plan, regions, count, wide), 0);
	assert_in_range(fake->session.plan.cell_count, 1, 64);
	fake->session.state = &fake->state;
	fake->session.cells = fake->cells;
}

static void tick(struct fake *fake, uint32_t cell, uint64_t times)
{
	fake->cells[cell] += times;
	fake->state.dirty[(cell >> fake->state.dirty_shift) / 64] |=
		1ULL << (cell >> fake->state.dirty_shift) % 64;
}

static void end(struct fake *fake)
{
	profil__plan_free(&fake->session.plan);
}

static void test_fold(void **state)
{
	uint16_t buffer[8] = { 1, 0xffff, 0, 7, 0, 0, 0, 9 };
	const struct region region = REGION(0x1000, 15, 0x10000, buffer);
	const uint16_t expected[8] = { 4, 0, 2, 7, 0, 0, 0, 9 };
	struct fake fake;

	(void)state;
	begin(&fake, &region, 1, false);
	tick(&fake, 0, 3);
	tick(&fake, 1, 0x30001);
	tick(&fake, 2, 2);
	fake.cells[6] = 5; /* its dirty bit is set later */
	assert_int_equal(profil__fold(&fake.session), 0);
	assert_memory_equal(buffer, expected, sizeof(buffer));
	assert_int_equal(fake.cells[0], 0);
	assert_int_equal(fake.state.dirty[0], 0);
	tick(&fake, 6, 1);
	assert_int_equal(profil__fold(&fake.session), 0);
	assert_int_equal(buffer[6], 6);
	assert_int_equal(buffer[7], 9);
	end(&fake);
}

/* A dirty bit stands for several cells, the last one also for cells that do not exist. */
static void test_fold_shifted(void **state)
{
	uint16_t buffer[22] = { 0 };
	const struct region region = REGION(0, 2 * 21, 0x10000, buffer);
	struct fake fake;

	(void)state;
	begin(&fake, &region, 1, false);
	fake.state.dirty_shift = 3;
	tick(&fake, 20, 4);
	tick(&fake, 7, 1);
	tick(&fake, 0, 2);
	fake.cells[21] = 1;
	assert_int_equal(profil__fold(&fake.session), 0);
	assert_int_equal(buffer[20], 4);
	assert_int_equal(buffer[7], 1);
	assert_int_equal(buffer[0], 2);
	assert_int_equal(buffer[21], 0);
	end(&fake);
}

/* More cells than are written in one step; misaligned; 32 bits. */
static void test_fold_wide(void **state)
{
	char memory[1 + 64 * sizeof(uint32_t)] = { 0 };
	const struct region region = REGION(0, 256, 0x20000, memory + 1);
	struct fake fake;
	uint32_t cell;

	(void)state;
	begin(&fake, &region, 1, true);
	for (uint32_t i = 0; i < 64; i++)
		tick(&fake, i, 0x10000 + i);
	assert_int_equal(profil__fold(&fake.session), 0);
	assert_int_equal(memory[0], 0);
	for (uint32_t i = 0; i < 64; i++) {
		memcpy(&cell, memory + 1 + i * sizeof(cell), sizeof(cell));
		assert_int_equal(cell, 0x10000 + i);
	}
	end(&fake);
}

/* Two regions share a part of their memory. */
static void test_fold_shared(void **state)
{
	uint16_t buffer[5] = { 0 };
	const struct region regions[] = {
		REGION(0x1000, 8, 0x10000, buffer),
		REGION(0x2000, 8, 0x10000, buffer + 1),
	};
	const uint16_t expected[5] = { 1, 11, 11, 11, 10 };
	struct fake fake;

	(void)state;
	begin(&fake, regions, 2, false);
	for (uint32_t i = 0; i < 8; i++)
		tick(&fake, i, i < 4 ? 1 : 10);
	assert_int_equal(profil__fold(&fake.session), 0);
	assert_memory_equal(buffer, expected, sizeof(buffer));
	end(&fake);
}

/* A buffer that is not mapped in part, and one that is read-only. */
static void test_fold_fault(void **state)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *memory =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct region region = REGION(0, 8, 0x10000, memory + page - 4);
	struct fake fake;

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	begin(&fake, &region, 1, false);
	assert_int_equal(munmap(memory + page, page), 0); /* what begin() maps could lie there */
	tick(&fake, 0, 1);
	assert_int_equal(profil__fold(&fake.session), 0);
	assert_int_equal(memory[page - 4], 1);
	tick(&fake, 2, 1);
	assert_int_equal(profil__fold(&fake.session), -EFAULT);
	assert_int_equal(mprotect(memory, page, PROT_READ), 0);
	tick(&fake, 0, 1);
	assert_int_equal(profil__fold(&fake.session), -EFAULT);
	assert_int_equal(memory[page - 4], 1);
	munmap(memory, page);
	end(&fake);
}

/* A session's own counts do not wrap, and all ticks are in the account. */
static void test_session_counts(void **state)
{
	const struct region regions[] = { REGION(0x1000, 8, 0x10000, NULL),
					  REGION(0x2000, 4, 0x8000, NULL) };
	struct profil_session *s;
	struct profil_state kernel = { 0 };
	struct profil_totals totals;
	uint64_t cells[6] = { 0 }, counts[4] = { 0, 0, 0, 9 };

	(void)state;
	assert_int_equal(profil__session_make(&s, regions, 2, false), 0);
	s->counting.tick_ns = 10000000;
	s->state = &kernel;
	s->cells = cells;
	cells[4] = 0x100000000;
	cells[5] = 3;
	kernel.dirty[0] = 0x3f;
	kernel.out_of_range = 2;
	kernel.lost = 1;
	assert_int_equal(profil_read(s, 1, counts, 4), 0);
	assert_int_equal(counts[0], 0x100000000);
	assert_int_equal(counts[1], 3);
	assert_int_equal(counts[3], 9); /* the region has no such cell */
	assert_int_equal(profil_read(s, 2, counts, 4), -EINVAL);
	cells[5] = 1;
	kernel.dirty[0] = 0x20;
	assert_int_equal(profil_read_totals(s, &totals, sizeof(totals)), 0);
	assert_int_equal(totals.in_range, 0x100000004);
	assert_int_equal(totals.ticks, 0x100000007);
	assert_int_equal(totals.out_of_range, 2);
	assert_int_equal(totals.lost, 1);
	assert_int_equal(totals.period_ns, 10000000);
	assert_int_equal(profil_read(s, 1, counts, 1), 0);
	assert_int_equal(profil_read(s, 1, counts + 1, 1), 0);
	s->state = NULL;
	profil_session_free(s);
	profil_session_free(NULL);
}

/* The module's cells have 32 bits; the session's counts do not wrap with them. */
static void test_device_counts(void **state)
{
	const struct region region = REGION(0x1000, 6, 0x10000, NULL);
	uint32_t cells[3] = { 5, 0xfffffffe, 0 };
	struct profil_session *s;

	(void)state;
	assert_int_equal(profil__session_make(&s, &region, 1, false), 0);
	s->handle = cells;
	profil__backend_kmod.update(s);
	profil__backend_kmod.update(s);
	assert_int_equal(s->counts[0], 5);
	assert_int_equal(s->counts[1], 0xfffffffe);
	assert_int_equal(s->in_range, 0x100000003);
	cells[1] += 5;
	cells[2] += 1;
	profil__backend_kmod.update(s);
	assert_int_equal(s->counts[0], 5);
	assert_int_equal(s->counts[1], 0x100000003);
	assert_int_equal(s->counts[2], 1);
	assert_int_equal(s->in_range, 0x100000009);
	profil__session_free(s);
}

/* --- The file --- */

static size_t read_file(const char *path, void *data, size_t size)
{
	FILE *in = fopen(path, "r");

	assert_non_null(in);
	size = fread(data, 1, size, in);
	fclose(in);
	return size;
}

static void test_gperftools(void **state)
{
	const struct region regions[] = { REGION(0, 8, 0x10000, NULL),
					  REGION(0x2000, 8, 0x5555, NULL) };
	const uintptr_t expected[] = { 0, 3, 0, 10000, 0, 7, 1, 1, 1, 1, 6, 5, 1, 0x2007, 0, 1, 0 };
	char directory[] = "/tmp/profil-unit.XXXXXX", path[64];
	uintptr_t words[8192];
	struct profil_session *s;
	size_t size;
	char *maps;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/file", directory);
	assert_int_equal(profil__session_make(&s, regions, 2, false), 0);
	s->counting.tick_ns = 10000000;
	s->counts[0] = 7;
	s->counts[3] = 1;
	s->counts[4 + 1] = 5; /* begins after 0x2006 */
	assert_int_equal(profil_write_gperftools(s, path), 0);
	size = read_file(path, words, sizeof(words) - 1);
	assert_true(size > sizeof(expected));
	assert_memory_equal(words, expected, sizeof(expected));
	maps = (char *)words + sizeof(expected);
	((char *)words)[size] = '\0';
	assert_non_null(strstr(maps, " r-xp "));
	assert_true(strstr(maps, " r-xp ") < strchr(maps, '\n'));
	assert_non_null(strstr(maps, "test_profil_lib\n"));
	assert_true(strstr(maps, "test_profil_lib\n") < strchr(maps, '\n'));
	assert_int_equal(profil_write_gperftools(s, "/nowhere/file"), -ENOENT);
	assert_int_equal(profil_write_gperftools(s, directory), -EISDIR);
	assert_int_equal(profil_write_gperftools(s, "/dev/null"), 0);
	profil_session_free(s);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(directory), 0);
}

/* --- The rate --- */

static void test_rate(void **state)
{
	static const char *const wrong[] = { "0", "-1", "100001", "1x", " 5", "x" };
	unsigned int hz;

	(void)state;
	unsetenv("PROFIL_HZ");
	assert_int_equal(profil__rate(false, &hz), 0);
	assert_int_equal(hz, 100);
	assert_int_equal(profil__rate(true, &hz), 0);
	assert_int_equal(hz, 1000);
	setenv("PROFIL_HZ", "250", 1);
	assert_int_equal(profil__rate(true, &hz), 0);
	assert_int_equal(hz, 250);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		setenv("PROFIL_HZ", wrong[i], 1);
		assert_int_equal(profil__rate(false, &hz), -EINVAL);
		assert_non_null(strstr(profil_error(), "PROFIL_HZ"));
	}
	unsetenv("PROFIL_HZ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cells),
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_unreachable_cells),
		cmocka_unit_test(test_no_cell),
		cmocka_unit_test(test_overlaps),
		cmocka_unit_test(test_most_regions),
		cmocka_unit_test(test_overflow_region),
		cmocka_unit_test(test_device_regions),
		cmocka_unit_test(test_device_overflow),
		cmocka_unit_test(test_device_scale),
		cmocka_unit_test(test_fold),
		cmocka_unit_test(test_fold_shifted),
		cmocka_unit_test(test_fold_wide),
		cmocka_unit_test(test_fold_shared),
		cmocka_unit_test(test_fold_fault),
		cmocka_unit_test(test_session_counts),
		cmocka_unit_test(test_device_counts),
		cmocka_unit_test(test_gperftools),
		cmocka_unit_test(test_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
