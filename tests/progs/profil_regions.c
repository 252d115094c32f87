// SPDX-License-Identifier: GPL-2.0-only
/* sprofil(): several regions, wide cells, the overflow region, the period: profil_row.h. */
#include "profil_loop.h"

#include <math.h>

/*
 * Where the loops are, a page each: below all other code, and so low that the cell which the C
 * library takes for the first tick of another region than the last is one of the region.
 */
#define PLACE	    0x30000UL
#define PLACE_OF(i) (PLACE + (i)*0x10000UL)

static unsigned int wide_cells[CELLS];

static int sprofil_off(void)
{
	return sprofil(NULL, 0, NULL, 0);
}

static void start(struct prof *regions, int count, unsigned int flags)
{
	expect(sprofil(regions, count, NULL, flags) == 0, "sprofil(): %m");
}

static void make(struct loop *loop, uintptr_t pc)
{
	need(loop_make(loop, pc), "mmap of a loop");
}

/*
 * Lets a loop begin, run for that many ticks, and until there is one in the cell, and end while
 * profiling is on. Returns how many. cell: of 16 bits, or the low half of one of 32; NULL: none.
 */
static double run(struct loop *loop, double ticks, const void *cell)
{
	loop_start(loop);
	loop_wait_counted(loop, ticks, cell);
	return loop_stop(loop);
}

/* --- One region --- */

static void one_region(void)
{
	struct prof region = { cells, sizeof(cells), (size_t)__start_hot, 0x10000 };

	start(&region, 1, PROF_USHORT);
	burn(some());
	sprofil_off();
	expect_about("16 bits", sum(), some());
}

static void wide(void)
{
	struct prof region = { wide_cells, sizeof(wide_cells), (size_t)__start_hot, 2 };

	wide_cells[0] = 65530;
	wide_cells[1] = 12345;
	start(&region, 1, PROF_UINT);
	burn(some());
	sprofil_off();
	expect_about("beyond 16 bits", wide_cells[0] - 65530.0, some());
	expect(wide_cells[1] == 12345, "the cell behind became %u", wide_cells[1]);
}

/* A cell of 32 bits stands for as much code as two of 16. */
static void wide_places(void)
{
	struct loop loop;
	struct prof region = { wide_cells, 80, PLACE, 0x10000 };
	double due;

	make(&loop, PLACE + (39 & -LOOP_ALIGN));
	start(&region, 1, PROF_UINT);
	due = run(&loop, some(), &wide_cells[9]);
	sprofil_off();
	for (int i = 0; i < CELLS; i++)
		if (i != 9)
			expect(wide_cells[i] == 0 || i == 10, "%u ticks in cell %d", wide_cells[i],
			       i);
	expect_some("cell 9", wide_cells[9], due);
}

static void wide_end(void)
{
	struct loop loop;
	struct prof region = { wide_cells, 43, PLACE, 0x10000 };

	make(&loop, PLACE + 40);
	start(&region, 1, PROF_UINT);
	run(&loop, some(), NULL);
	sprofil_off();
	expect(wide_cells[10] == 0, "%u ticks in a cell that is not whole", wide_cells[10]);
}

static void fast(void)
{
	struct prof region = { cells, sizeof(cells), (size_t)__start_hot, 0x10000 };

	start(&region, 1, PROF_FAST);
	burn(some());
	sprofil_off();
	expect_least("in all", sum(), some());
}

static void period(void)
{
	struct prof region = { cells, sizeof(cells), (size_t)__start_hot, 0x10000 };
	struct timeval told = { -1, -1 };
	double burnt, nominal_us = tick_ns() / 1e3;

	expect(sprofil(&region, 1, &told, PROF_USHORT) == 0, "sprofil(): %m");
	burnt = burn(some()) * tick_ns() / 1e3;
	sprofil_off();
	/* So far it may be from the rate that was asked for: profil(3). */
	expect(told.tv_sec == 0 && fabs(told.tv_usec - nominal_us) < 1 + nominal_us * 0.005,
	       "period %ld.%06ld s", (long)told.tv_sec, (long)told.tv_usec);
	expect_about("times the period told", sum(), burnt / told.tv_usec);
}

static void calls(void)
{
	struct prof region = { cells, sizeof(cells), (size_t)__start_hot, 0x10000 };

	expect(sprofil_off() == 0, "off at first: %m");
	for (int i = 0; i < 3; i++) {
		start(&region, 1, PROF_USHORT);
		burn(some());
		expect(sprofil_off() == 0, "off: %m");
	}
	expect_about("three times", sum(), 3 * some());
	burn(some());
	expect_about("when off", sum(), 3 * some());
}

static void with_profil(void)
{
	static unsigned short others[CELLS];
	struct prof region = { others, sizeof(others), (size_t)__start_hot, 0x10000 };

	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	start(&region, 1, PROF_USHORT);
	burn(some());
	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	sprofil_off();
	burn(some());
	expect_about("profil", sum(), 2 * some());
	expect_about("sprofil", sum_of(others), some());
}

/* --- Several regions --- */

#define REGIONS 512

static unsigned short counts[REGIONS + 1][8];

static struct prof regions_of[REGIONS + 1];

static struct prof *make_regions(int count)
{
	/* Not in order: profil(3) does not ask for it. */
	for (int i = 0; i < count; i++)
		regions_of[i] = (struct prof){ counts[i], sizeof(counts[i]),
					       PLACE_OF((i * 7) % count), 0x10000 };
	return regions_of;
}

/* Runs a loop in cell 2 of each `step`th region, one after the other and often. */
static void count_in_regions(int count, int step)
{
	static double due[REGIONS];
	struct loop loop;

	start(make_regions(count), count, PROF_USHORT);
	for (int i = 0; i < count; i += step) {
		make(&loop, regions_of[i].pr_off + 4);
		for (int j = 0; j < 3; j++)
			due[i] += run(&loop, some() / 5, &counts[i][2]);
		loop_unmap(&loop);
	}
	sprofil_off();
	for (int i = 0; i < count; i++) {
		unsigned int all = 0;

		for (int j = 0; j < 8; j++)
			all += counts[i][j];
		if (due[i])
			expect_some("region", counts[i][2], due[i]);
		else
			expect(counts[i][2] == 0, "region %d: %u ticks", i, counts[i][2]);
		/* One tick each time where it leaves the loop. */
		expect(all - counts[i][2] <= (due[i] ? 3 : 0) && counts[i][3] == all - counts[i][2],
		       "region %d: %u ticks, %u of them in cell 2", i, all, counts[i][2]);
	}
}

static void two_regions(void)
{
	count_in_regions(2, 1);
}

static void regions_64(void)
{
	count_in_regions(64, 15);
}

static void regions_512(void)
{
	count_in_regions(512, 127);
}

static void regions_513(void)
{
	int got = sprofil(make_regions(513), 513, NULL, PROF_USHORT);

	expect(got == -1 && errno == EINVAL, "sprofil(): %d, %m", got);
}

/* Two loops in two threads: each tick of either comes from another region than the one before. */
static void switches(void)
{
	struct loop loops[2];
	unsigned int strays = 0;

	for (int i = 0; i < 2; i++) {
		make_regions(2);
		make(&loops[i], PLACE_OF(i) + 4);
		loop_start(&loops[i]);
	}
	start(regions_of, 2, PROF_USHORT);
	for (int i = 0; i < 2; i++)
		loop_wait_counted(&loops[i], some(), &counts[i][2]);
	sprofil_off();
	for (int i = 0; i < 2; i++) {
		loop_stop(&loops[i]);
		expect(counts[i][2] > 0, "region %d: no tick", i);
		for (int j = 0; j < 8; j++)
			strays += j != 2 ? counts[i][j] : 0;
	}
	expect(strays == 0, "%u ticks in cells without code", strays);
}

/* Below the lowest region, between two, above the highest. */
static void outside(void)
{
	static const uintptr_t places[] = { PLACE - 0x10000, PLACE + 0x8000, PLACE_OF(100) };
	struct loop loop;

	start(make_regions(4), 4, PROF_USHORT);
	for (int i = 0; i < 3; i++) {
		make(&loop, places[i]);
		run(&loop, some(), NULL);
	}
	burn(some());
	sprofil_off();
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 8; j++)
			expect(counts[i][j] == 0, "%u ticks in region %d", counts[i][j], i);
}

static void overflow(void)
{
	struct loop loops[2];
	unsigned short outside_ticks[2] = { 0, 4321 };
	struct prof regions[] = {
		{ counts[0], sizeof(counts[0]), PLACE, 0x10000 },
		{ outside_ticks, 2, 0, 2 },
	};
	double inside, all;
	uint64_t begin;

	make(&loops[0], PLACE + 4);
	make(&loops[1], PLACE_OF(2));
	start(regions, 2, PROF_USHORT);
	begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	inside = run(&loops[0], some(), &counts[0][2]);
	run(&loops[1], some(), &outside_ticks[0]);
	all = ticks_in(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin);
	sprofil_off();
	expect_some("in the region", counts[0][2], inside);
	/* With what the first thread does meanwhile. */
	expect_some("overflow", outside_ticks[0], all - inside);
	expect(outside_ticks[1] == 4321, "the cell behind became %u", outside_ticks[1]);
}

static void wide_overflow(void)
{
	unsigned int outside_ticks[2] = { 65535, 4321 };
	struct prof regions[] = {
		{ wide_cells, 64, PLACE, 0x10000 },
		{ outside_ticks, 4, 0, 2 },
	};

	start(regions, 2, PROF_UINT);
	burn(some());
	sprofil_off();
	expect_about("overflow", outside_ticks[0] - 65535.0, some());
	expect(outside_ticks[1] == 4321, "the cell behind became %u", outside_ticks[1]);
}

/* No cell has room in it, but it is a region: another beside it goes on counting. */
static void small_overflow(void)
{
	unsigned short outside_ticks[2] = { 1234, 4321 };
	struct prof regions[] = {
		{ outside_ticks, 1, 0, 2 },
		{ counts[0], sizeof(counts[0]), PLACE, 0x10000 },
	};
	struct loop loop;

	make(&loop, PLACE + 4);
	start(regions, 2, PROF_USHORT);
	burn(some());
	run(&loop, some(), &counts[0][2]);
	sprofil_off();
	expect(counts[0][2] > 0, "no tick in the region");
	expect(outside_ticks[0] == 1234 && outside_ticks[1] == 4321, "counted: %u, %u",
	       outside_ticks[0], outside_ticks[1]);
}

/* The first of those that an address is in. */
static void overlap(void)
{
	struct loop loop;
	struct prof regions[] = {
		{ counts[0], sizeof(counts[0]), PLACE + 0x100, 0x10000 },
		{ wide_cells, sizeof(wide_cells), PLACE, 0x10000 },
	};
	const unsigned short *second = (unsigned short *)wide_cells;
	double in_both, in_second;

	start(regions, 2, PROF_USHORT);
	make(&loop, PLACE + 0x104);
	in_both = run(&loop, some(), &counts[0][2]);
	loop_unmap(&loop);
	make(&loop, PLACE + 0x110);
	in_second = run(&loop, some(), &second[0x110 / 2]);
	sprofil_off();
	expect_some("in both: the first", counts[0][2], in_both);
	expect(second[0x104 / 2] == 0, "in both: %u ticks in the second", second[0x104 / 2]);
	expect_some("in the second alone", second[0x110 / 2], in_second);
}

/* A region of scale 0 or 1, without cells or without a buffer counts nothing. */
static void empty_regions(void)
{
	struct prof regions[] = {
		{ counts[0], sizeof(counts[0]), (size_t)__start_hot, 0 },
		{ counts[1], sizeof(counts[1]), (size_t)__start_hot, 1 },
		{ counts[2], 0, (size_t)__start_hot, 0x10000 },
		{ cells, sizeof(cells), (size_t)__start_hot, 0x10000 },
	};

	start(regions, 4, PROF_USHORT);
	burn(some());
	sprofil_off();
	expect_about("the last region", sum(), some());
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 8; j++)
			expect(counts[i][j] == 0, "%u ticks in region %d", counts[i][j], i);
}

static void forks(void)
{
	struct prof region = { wide_cells, sizeof(wide_cells), (size_t)__start_hot, 2 };
	pid_t child;

	start(&region, 1, PROF_UINT);
	burn(some());
	child = fork();
	burn(long_time());
	sprofil_off();
	expect_about("child", wide_cells[0], some() + long_time());
	if (child == 0)
		_exit(wrong);
	expect_well(child, "child");
}

/* What was called with is copied: the array may be gone. */
static void array_gone(void)
{
	struct prof *regions = malloc(2 * sizeof(*regions));

	need(regions, "malloc");
	regions[0] = (struct prof){ cells, sizeof(cells), (size_t)__start_hot, 0x10000 };
	regions[1] = (struct prof){ counts[0], sizeof(counts[0]), PLACE, 0x10000 };
	start(regions, 2, PROF_USHORT);
	memset(regions, 0xff, 2 * sizeof(*regions));
	free(regions);
	burn(some());
	sprofil_off();
	expect_about("counted", sum(), some());
}

static const struct row rows[] = {
	{ "kernel", "sprofil: PROF_USHORT", one_region },
	{ "kernel", "sprofil: PROF_UINT", wide },
	{ "kernel", "sprofil: which cell with PROF_UINT", wide_places },
	{ "kernel", "sprofil: a last cell that is not whole", wide_end },
	{ "kernel", "sprofil: PROF_FAST", fast },
	{ "kernel", "sprofil: the period told is the true one", period },
	{ "kernel", "sprofil: on and off, again and again", calls },
	{ "kernel", "sprofil: in turns with profil", with_profil },
	{ "kernel", "sprofil: two regions", two_regions },
	{ "kernel", "sprofil: 64 regions", regions_64 },
	{ "kernel", "sprofil: 512 regions", regions_512 },
	{ "kernel", "sprofil: 513 regions are refused", regions_513 },
	{ "kernel", "sprofil: a tick in another region than the last", switches },
	{ "kernel", "sprofil: pcs outside of all regions", outside },
	{ "kernel", "sprofil: the overflow region", overflow },
	{ "kernel", "sprofil: a wide overflow region", wide_overflow },
	{ "kernel", "sprofil: an overflow region without room for a cell", small_overflow },
	{ "kernel", "sprofil: of overlapping regions the first counts", overlap },
	{ "kernel", "sprofil: regions that cannot count", empty_regions },
	{ "kernel", "sprofil: fork", forks },
	{ "kernel", "sprofil: the array may go", array_gone },
};

int main(int argc, char **argv)
{
	return run_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
