// SPDX-License-Identifier: GPL-2.0-only
/* What /dev/profil counts, when, and in which cell: kmod_device.h. */
#include "bpf/cell.h"
#include "kmod_device.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

/* --- Counts are there at once --- */

/* Looks in vain if no tick ever comes between two looks. */
static void look(int looks, volatile uint32_t *cell, void (*between)(void))
{
	int still = 0, moved = 0;
	uint32_t before = 0;

	for (int i = 0; i < looks; i++) {
		between();
		expect_exact("at a look", cell, 0);
		moved += *cell != before;
		before = *cell;
		still += query().counted == *cell;
	}
	expect(moved > looks / 20, "only %d of %d looks saw a tick", moved, looks);
	expect(still > looks / 2, "only %d of %d looks saw the same", still, looks);
}

static void burn_little(void)
{
	burn(0.2);
}

static void reads_itself(void)
{
	turn_on(cells32);
	look(500, cells32, burn_little);
}

static void *burn_on(void *unused)
{
	while (go_on)
		spin_hot(1000);
	return unused;
}

static void reads_threads(void)
{
	pthread_t threads[4];

	turn_on(cells32);
	start_threads(threads, 4, burn_on);
	for (int i = 0; i < 500; i++) {
		spin_hot(100);
		expect_exact("at a look", cells32, 0);
	}
	burn_counted(2);
	go_on = false;
	join_threads(threads, 4);
	look(200, cells32, burn_little);
	expect(cells32[0] > 20, "%u ticks in all", cells32[0]);
}

/* Ticks of all kinds, in many cells: those without a cell are reported. */
static void reads_regions(void)
{
	struct profil_device_region region = hot_region(cells, sizeof(cells));
	struct profil_device_query now;
	unsigned int before, after;

	need(set_regions(0, &region, 1) == 0, "SET");
	for (int i = 0; i < 300; i++) {
		burn(0.1);
		before = sum();
		now = query();
		after = sum();
		expect(before <= now.counted && now.counted <= after,
		       "%llu counted, of cells %u to %u", now.counted, before, after);
	}
	expect(now.counted > now.out_of_range, "%llu counted, %llu out of range", now.counted,
	       now.out_of_range);
}

/* Another process reads, as from a file. */
static void read_by_another(void)
{
	volatile uint32_t *cell = shared_memory(PAGE);
	uint32_t before = 0, now;
	pid_t child = fork();

	if (child == 0) {
		turn_on(cell);
		burn_counted(20);
		_exit(wrong);
	}
	for (int i = 0; i < 5000 && *cell < 15; i++) {
		now = *cell;
		expect(now >= before, "%u became %u", before, now);
		before = now;
		sleep_ms(1);
	}
	expect_well(child, "child");
	expect(*cell >= 20, "%u at the end", *cell);
}

/* --- As many as there is CPU time --- */

/* The clock is the CPU's, which does not begin a period here, and not end one. */
static void expect_share(const char *what, double got, double due)
{
	expect(got >= due * 0.99 - 2 && got <= due * 1.01 + 2, "%s: %.0f ticks of %.1f", what, got,
	       due);
}

static void at_rate(unsigned int hz)
{
	char rate[16];
	uint64_t begin;
	double used;

	snprintf(rate, sizeof(rate), "%u", hz);
	setenv("PROFIL_HZ", rate, 1);
	turn_on(cells32);
	begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin < 500000000)
		spin_hot(1000);
	used = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / 1e9;
	expect_share(rate, query().ticks, used * hz);
}

static void rates(void)
{
	static const unsigned int some_rates[] = { 1, 7, 100, 250, 997, 1000, 4000, 10000 };

	for (size_t i = 0; i < sizeof(some_rates) / sizeof(*some_rates); i++)
		at_rate(some_rates[i]);
}

static void *burn_part(void *unused)
{
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < 100000000)
		spin_hot(1000);
	return unused;
}

/* Those of threads that were there, that come, and that have ended. */
static void rate_of_threads(void)
{
	uint64_t begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	pthread_t threads[4];
	double used;

	turn_on(cells32);
	start_threads(threads, 4, burn_part);
	join_threads(threads, 4);
	used = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / 1e9;
	expect_share("threads", query().ticks, used * 1000);
}

/* What one burns that the other does not: asleep, no tick comes. */
static void asleep(void)
{
	__u64 before;

	turn_on(cells32);
	burn_counted(2);
	before = query().ticks;
	for (int i = 0; i < 5; i++)
		sleep_ms(100);
	expect(query().ticks <= before + 20, "%llu ticks while it slept", query().ticks - before);
	burn_counted(2);
}

/* In the kernel, the program counter is where it will go on. */
static void in_kernel(void)
{
	size_t size = 1 << 20;
	char *memory = make_memory(size);
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	double end = seconds(CLOCK_THREAD_CPUTIME_ID) + 5;

	need(zero >= 0, "/dev/zero");
	turn_on(cells32);
	while (query().kernel < 20)
		if (read(zero, memory, size) < 0 ||
		    !expect(seconds(CLOCK_THREAD_CPUTIME_ID) < end, "no tick in the kernel"))
			break;
	expect_exact("in the kernel", cells32, 0);
}

/* --- Cells --- */

/* The loop alone, where ticks are, but for very few. Found by a cell for each byte. */
static void find_loop(unsigned int *first, unsigned int *last)
{
	struct profil_device_region region = hot_region(cells, sizeof(cells));

	region.scale = 0x20000;
	memset(cells, 0, sizeof(cells));
	need(set_regions(0, &region, 1) == 0, "SET");
	burn_counted(30);
	turn_off();
	for (*first = 0; *first < CELLS - 1 && !cells[*first]; ++*first)
		;
	for (*last = CELLS - 1; *last && !cells[*last]; --*last)
		;
	expect(sum() >= 30 && *first <= *last, "%u ticks in no cell", sum());
}

/* The cells of the arithmetic count, and no others. */
static void at_scale(unsigned int scale, unsigned int flags, __u64 before, unsigned int first,
		     unsigned int last)
{
	struct profil_device_region region = hot_region(cells, sizeof(cells));
	unsigned int elsewhere = 0; /* a tick may come before the loop, or behind it */
	unsigned long long from, to;

	region.scale = scale;
	region.offset -= before;
	from = cell_index(before + first, scale) >> flags;
	to = cell_index(before + last, scale) >> flags;
	memset(cells, 0, sizeof(cells));
	need(set_regions(flags, &region, 1) == 0, "SET");
	burn(5);
	turn_off();
	for (unsigned int i = 0; i < CELLS; i++) {
		unsigned int cell = flags ? i / 2 : i;

		if (cell < from || cell > to)
			elsewhere += cells[i];
	}
	expect(elsewhere <= 1 + sum() / 10,
	       "scale 0x%x, flags %u, %llu before it: %u of %u not in cells %llu to %llu", scale,
	       flags, before, elsewhere, sum(), from, to);
	expect(sum() > 0 || to >= (flags ? CELLS / 2 : CELLS),
	       "scale 0x%x, flags %u, %llu before it: no tick", scale, flags, before);
}

static void arithmetic(void)
{
	static const unsigned int scales[] = { 0,	1,	 2,	  0x100,   0xfff,   0x1000,
					       0x5555,	0x8000,	 0xffff,  0x10000, 0x10001, 0x1ffff,
					       0x20000, 0x20001, 0x30000, 0x40000, ~0U };
	static const __u64 before[] = { 0, 1, 2, 3, 100, 1 << 20 };
	unsigned int first, last;

	find_loop(&first, &last);
	for (size_t i = 0; i < sizeof(scales) / sizeof(*scales); i++)
		for (size_t j = 0; j < sizeof(before) / sizeof(*before); j++)
			for (unsigned int flags = 0; flags <= PROFIL_WIDE; flags++)
				at_scale(scales[i], flags, before[j], first, last);
}

/* The region that a pc lies in counts it, up to its last byte, and no other. */
static void borders(void)
{
	struct profil_device_region two[2];
	unsigned int first, last;

	find_loop(&first, &last);
	for (unsigned int at = first ? first - 1 : 0; at <= last + 1; at++) {
		two[0] = everywhere(cells, 2);
		two[0].last = address(__start_hot) + at;
		two[1] = everywhere(cells + 1, 2);
		two[1].first = two[1].offset = two[0].last + 1;
		two[1].last = address(__stop_hot) - 1;
		cells[0] = cells[1] = 0;
		need(set_regions(0, two, 2) == 0, "SET");
		burn(3);
		turn_off();
		/* What is before the spinner, as in a library below it, is in the first as well. */
		expect(at < last || !cells[1], "up to byte %u: %u behind it", at, cells[1]);
		expect(at >= first || cells[1] > 0, "up to byte %u: none behind it", at);
	}
}

/* As many regions as there may be, each of them a byte of code. */
static void many_regions(void)
{
	unsigned int most = query().max_regions, first, last, behind;
	struct profil_device_region *many = calloc(most + 1, sizeof(*many));
	uint16_t *counts = calloc(most + 1, sizeof(*counts));

	need(many && counts, "calloc");
	find_loop(&first, &last);
	behind = most - (last + 2 < most ? last + 2 : most);
	for (unsigned int i = 0; i <= most; i++) {
		many[i] = everywhere(&counts[i], sizeof(*counts));
		many[i].first = many[i].last = many[i].offset = address(__start_hot) - behind + i;
	}
	expect(set_regions(0, many, most + 1) == -1 && errno == E2BIG, "one too many: %m");
	need(set_regions(0, many, most) == 0, "SET");
	burn(20);
	turn_off();
	for (unsigned int i = 0; i <= most; i++)
		expect(!counts[i] || (i >= behind + first && i <= behind + last),
		       "%u in that of byte %d of the spinner, not %u to %u", counts[i],
		       (int)(i - behind), first, last);
	expect(counts[behind + first] > 0, "none in that of byte %u", first);
}

/* Two cells that overlap: what overflows in the one is never carried into a byte behind it. */
static void wraps(unsigned int flags, size_t width)
{
	unsigned char memory[32];

	memset(memory, 0xff, sizeof(memory));
	for (size_t at = 8; at < 17; at++) {
		struct profil_device_region region = everywhere(memory + at, width);

		need(set_regions(flags, &region, 1) == 0, "SET");
		burn_counted(2);
		turn_off();
		for (size_t i = 0; i < sizeof(memory); i++)
			expect(memory[i] == 0xff || (i >= at && i < at + width),
			       "%zu bytes at byte %zu: byte %zu became %u", width, at, i,
			       memory[i]);
		expect(memory[at] < 0xff, "%zu bytes at byte %zu: did not wrap", width, at);
		memset(memory, 0xff, sizeof(memory));
	}
}

static void overflow(void)
{
	wraps(0, 2);
	wraps(PROFIL_WIDE, 4);
}

/* Of a cell that lies not whole in the buffer, nothing is written. */
static void short_buffers(void)
{
	unsigned char memory[16];

	for (unsigned int flags = 0; flags <= PROFIL_WIDE; flags++) {
		for (unsigned int bufsiz = 0; bufsiz < (flags ? 4 : 2); bufsiz++) {
			struct profil_device_region region = everywhere(memory + 8, bufsiz);

			memset(memory, GUARD, sizeof(memory));
			if (set_regions(flags, &region, 1) == -1) {
				expect(errno == EINVAL, "%u bytes: %m", bufsiz);
				continue;
			}
			burn(5);
			expect(query().counted == 0, "%llu counted in %u bytes", query().counted,
			       bufsiz);
			expect_guarded("a short buffer", memory, sizeof(memory));
		}
	}
}

/* --- Again and again --- */

static void replaced(void)
{
	uint32_t first;

	turn_on(cells32);
	burn_counted(5);
	turn_on(cells32 + 1);
	first = cells32[0];
	burn_counted(5);
	expect(first >= 5 && cells32[0] == first, "%u in the first became %u", first, cells32[0]);
	expect_exact("in the second", cells32 + 1, 0);
}

static void exact_after_off(void)
{
	uint32_t before;

	for (int i = 0; i < 50; i++) {
		cells32[0] = 0;
		turn_on(cells32);
		burn_counted(1);
		turn_off();
		before = cells32[0];
		burn(2);
		expect(cells32[0] == before, "%u ticks after OFF", cells32[0] - before);
	}
}

/* So often that few ticks come: each call restarts the period. */
static void very_often(void)
{
	for (int i = 0; i < 5000; i++) {
		turn_on(cells32 + i % 4);
		if (i % 3 == 0)
			turn_off();
	}
	expect_alive();
}

/* --- Ticks that wait --- */

#define SLEEPERS 600
#define POLLED	 1000 /* descriptors: so long does a thread look at them before it sleeps */

static struct pollfd polled[POLLED];

static void *sleep_in_kernel(void *unused)
{
	syscall(SYS_ppoll, polled, POLLED, NULL, NULL, 0);
	return unused;
}

/*
 * Threads that are ticked in a system call in which they then sleep, while the page of the cell is
 * not present: their ticks wait for them, but for no more than some.
 */
static void ticks_wait(void)
{
	struct profil_device_region region = everywhere(make_memory(PAGE), PAGE);
	/* The only code whose ticks have a cell. */
	void *call = dlsym(RTLD_DEFAULT, "syscall");
	static pthread_t threads[SLEEPERS];
	struct profil_device_query now;
	int event = eventfd(0, EFD_CLOEXEC);

	need(event >= 0 && call, "eventfd");
	for (int i = 0; i < POLLED; i++)
		polled[i] = (struct pollfd){ event, POLLIN, 0 };
	setenv("PROFIL_HZ", "10000", 1);
	region.first = address(call);
	region.last = region.first + 64;
	need(set_regions(PROFIL_WIDE, &region, 1) == 0, "SET");
	start_threads(threads, SLEEPERS, sleep_in_kernel);
	for (int i = 0; i < 100 && query().lost == 0; i++)
		sleep_ms(100);
	now = query();
	printf("%llu ticks, %llu counted, %llu lost\n", now.ticks, now.counted, now.lost);
	expect(now.lost > 0, "nothing is lost of %d threads that sleep", SLEEPERS);
	need(write(event, &(uint64_t){ 1 }, sizeof(uint64_t)) == sizeof(uint64_t), "write");
	join_threads(threads, SLEEPERS);
	expect(query().counted > 100, "%llu counted once they go on", query().counted);
}

static const struct row rows[] = {
	{ "any", "live: a thread reads its own", reads_itself },
	{ "any", "live: four threads", reads_threads },
	{ "any", "live: in and out of regions", reads_regions },
	{ "any", "live: another process reads", read_by_another },
	{ "exact", "rate: of CPU time", rates },
	{ "exact", "rate: of threads", rate_of_threads },
	{ "any", "rate: none while it sleeps", asleep },
	{ "any", "in the kernel", in_kernel },
	{ "any", "cells: at every scale", arithmetic },
	{ "any", "cells: at the border of two regions", borders },
	{ "any", "cells: as many regions as there may be", many_regions },
	{ "any", "cells: wrap alone", overflow },
	{ "any", "cells: not in a shorter buffer", short_buffers },
	{ "any", "late: those of many threads that sleep", ticks_wait },
	{ "any", "again: another buffer", replaced },
	{ "any", "again: no tick after OFF", exact_after_off },
	{ "any", "again: SET and OFF very often", very_often },
};

int main(int argc, char **argv)
{
	return run_kmod_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
