// SPDX-License-Identifier: GPL-2.0-only
/* Arguments and results of profil(): profil_row.h. */
#include "profil_row.h"

SPINNER(warm)

/* --- Off --- */

static void expect_off(unsigned short *buffer, size_t bufsiz, unsigned int scale)
{
	unsigned int before;

	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	expect(profil(buffer, bufsiz, (size_t)__start_hot, scale) == 0, "off: %m");
	before = sum();
	expect_about("while on", before, some());
	burn(some());
	sleep_ms(20);
	expect(sum() == before, "%u ticks when off", sum() - before);
}

static void scale_0(void)
{
	expect_off(cells, sizeof(cells), 0);
}

static void scale_1(void)
{
	expect_off(cells, sizeof(cells), 1);
}

static void no_buffer(void)
{
	unsigned short *volatile none = NULL;

	expect_off(none, sizeof(cells), 0x10000);
}

static void no_size(void)
{
	expect_off(cells, 0, 0x10000);
}

static void off_when_off(void)
{
	for (int i = 0; i < 3; i++)
		expect(profil_off() == 0, "off: %m");
	expect(profil_hot(cells) == 0 && profil_off() == 0 && profil_off() == 0, "off: %m");
}

/* --- Buffers of few bytes --- */

/* With all of `hot` in the first cell. */
static void count_in_first(size_t bufsiz)
{
	memset(cells, 0x55, 16);
	cells[0] = 0;
	expect(profil(cells, bufsiz, (size_t)__start_hot, 2) == 0, "on: %m");
	burn(some());
	profil_off();
	for (int i = 1; i < 8; i++)
		expect(cells[i] == 0x5555, "cell %d was written", i);
}

static void bytes_1(void)
{
	count_in_first(1);
	expect(cells[0] == 0, "%u ticks", cells[0]);
}

static void bytes_2(void)
{
	count_in_first(2);
	expect_about("bufsiz 2", cells[0], some());
}

static void bytes_3(void)
{
	count_in_first(3);
	expect_about("bufsiz 3", cells[0], some());
}

/* Nothing is at the last addresses; they must not wrap around to the first. */
static void ends_of_memory(void)
{
	static const size_t offsets[] = { 0, 1, SIZE_MAX, SIZE_MAX - 0x10000, SIZE_MAX / 2 };
	static const unsigned int scales[] = { 3, 0x8000, 0x10000, 0xffffffff };

	for (int i = 0; i < 20; i++) {
		unsigned int scale = scales[i % 4];

		expect(profil(cells, sizeof(cells), offsets[i / 4], scale) == 0, "offset %zx: %m",
		       offsets[i / 4]);
		burn(some() / 5);
		profil_off();
		expect(sum() == 0, "offset %zx, scale %x: %u ticks", offsets[i / 4], scale, sum());
	}
}

/* --- What is in the buffer --- */

static void keeps_presets(void)
{
	for (int i = 0; i < CELLS; i++)
		cells[i] = 1000;
	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	profil_off();
	for (int i = 0; i < CELLS; i++)
		expect(cells[i] >= 1000, "cell %d became %u", i, cells[i]);
	expect_about("added", sum() - 1000 * CELLS, some());
}

static void wraps(void)
{
	double burnt = 0;

	cells[0] = 65530;
	expect(profil(cells, sizeof(cells), (size_t)__start_hot, 2) == 0, "on: %m");
	do
		burnt += burn(some());
	while (cells[0] >= 65530 && burnt < 20 * some());
	profil_off();
	expect(cells[0] < 65530, "it became %u", cells[0]);
	expect_about("modulo 65536", (unsigned short)(cells[0] + 6), burnt);
	expect(cells[1] == 0, "the cell behind became %u", cells[1]);
}

/* Until all that was counted is there: whoever brings it may wait for a CPU. */
static void wait_for_rest(void)
{
	unsigned int before;
	int times = 0;

	do {
		before = sum();
		sleep_ms(200);
	} while (++times < 25 && (sum() != before || !is_about(before, some(), some(), 1)));
}

static void program_resets_it(void)
{
	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	wait_for_rest();
	memset(cells, 0, sizeof(cells));
	burn(some());
	profil_off();
	expect_about("since then", sum(), some());
}

static void guarded(void)
{
	static unsigned char memory[256 + 2 * 64];
	bool clean = true;

	memset(memory, 0xa5, sizeof(memory));
	memset(memory + 64, 0, 255);
	/* All ticks are in cell 127, of which the first byte is in the buffer. */
	expect(profil((unsigned short *)(memory + 64), 255, (size_t)__start_hot - 127 * 65536, 2) ==
		       0,
	       "on: %m");
	burn(some());
	profil_off();
	for (size_t i = 0; i < sizeof(memory); i++)
		if (i < 64 || i >= 64 + 254)
			clean = clean && memory[i] == (i == 64 + 254 ? 0 : 0xa5);
	expect(clean, "bytes around the buffer were written");
}

static void odd_address(void)
{
	static unsigned char memory[CELLS * 2 + 1];
	unsigned int got = 0;

	expect(profil_hot((unsigned short *)(memory + 1)) == 0, "on: %m");
	burn(some());
	profil_off();
	for (int i = 0; i < CELLS; i++)
		got += memory[1 + 2 * i] | memory[2 + 2 * i] << 8;
	expect_about("at an odd address", got, some());
}

/* --- Calls --- */

static void second_call(void)
{
	static unsigned short others[CELLS];
	unsigned int before;

	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	expect(profil_hot(others) == 0, "on: %m");
	before = sum();
	burn(2 * some());
	profil_off();
	expect_about("first buffer", before, some());
	expect(sum() == before, "the first buffer got %u ticks more", sum() - before);
	expect_about("second buffer", sum_of(others), 2 * some());
}

static void other_offset(void)
{
	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	expect(profil(cells, sizeof(cells), (size_t)__start_warm, 0x10000) == 0, "on: %m");
	burn_in(spin_warm, some());
	burn(some());
	profil_off();
	expect_about("in the same buffer", sum(), 2 * some());
}

static void many_calls(void)
{
	double burnt = 0;

	for (int i = 0; i < 50; i++) {
		expect(profil_hot(cells) == 0, "on: %m");
		burnt += burn(some() / 4);
		if (i % 2)
			profil_off();
	}
	profil_off();
	/* What is counted of a tick begun is lost at each call: up to one of five. */
	expect(is_about(sum(), burnt, burnt, 50), "%u ticks, due were %.0f", sum(), burnt);
}

static void keeps_errno(void)
{
	errno = 12345;
	expect(profil_hot(cells) == 0, "on: %d", errno);
	expect(errno == 12345, "errno after on: %d", errno);
	burn(some());
	expect(errno == 12345, "errno while on: %d", errno);
	expect(profil_off() == 0, "off: %d", errno);
	expect(errno == 12345, "errno after off: %d", errno);
	expect(profil(cells, sizeof(cells), 0, 0) == 0, "off again: %d", errno);
	expect(errno == 12345, "errno after off again: %d", errno);
}

static void *call_and_burn(void *buffer)
{
	double *burnt = malloc(sizeof(*burnt));

	need(burnt, "malloc");
	for (*burnt = 0; go_on;) {
		if (profil_hot(buffer))
			expect(false, "on: %m");
		*burnt += burn(5);
		if (profil_off())
			expect(false, "off: %m");
	}
	return burnt;
}

static void two_callers(void)
{
	static unsigned short others[CELLS];
	pthread_t threads[2];
	double due = 0;
	unsigned int got;

	for (int i = 0; i < 2; i++)
		need(pthread_create(&threads[i], NULL, call_and_burn, i ? others : cells) == 0,
		     "pthread_create");
	sleep_ms(900);
	go_on = false;
	for (int i = 0; i < 2; i++) {
		void *burnt;

		pthread_join(threads[i], &burnt);
		due += *(double *)burnt;
		free(burnt);
	}
	got = sum() + sum_of(others);
	expect(is_about(got, 0, due, 2), "%u ticks, at most %.0f were due", got, due);
	burn(some());
	sleep_ms(20);
	expect(sum() + sum_of(others) == got, "on after both turned it off");
}

/*
 * The thread that brings the counts gives way to all others here, so that this one goes on before
 * it has ended, unless it waits for that. CLONE_THREAD asks whether there is another thread.
 */
static void single_again(void)
{
	struct sched_param none = { 0 };
	cpu_set_t one;
	struct dirent *entry;
	DIR *tasks;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	need(sched_setaffinity(0, sizeof(one), &one) == 0, "sched_setaffinity");
	expect(unshare(CLONE_THREAD) == 0, "before it is on: %m");
	for (int i = 0; i < 20; i++) {
		expect(profil_hot(cells) == 0, "on: %m");
		tasks = opendir("/proc/self/task");
		need(tasks, "/proc/self/task");
		while ((entry = readdir(tasks)))
			if (atoi(entry->d_name) > 0 && atoi(entry->d_name) != getpid())
				need(sched_setscheduler(atoi(entry->d_name), SCHED_IDLE, &none) ==
					     0,
				     "sched_setscheduler");
		closedir(tasks);
		profil_off();
		profil_off(); /* the second time ends the thread */
		expect(unshare(CLONE_THREAD) == 0, "off, time %d: %m", i);
	}
}

/* --- Before main() and after exit() --- */

static const char *row_name = "";

static __attribute__((constructor)) void begin_early(int argc, char **argv)
{
	static const char name[] = "profil in a constructor";

	if (argc == 2 && strcmp(argv[1], name) == 0) {
		row_name = name;
		expect(profil_hot(cells) == 0, "on: %m");
	}
}

static void in_constructor(void)
{
	burn(some());
	profil_off();
	expect_about(row_name, sum(), some());
}

static void at_exit(void)
{
	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	profil_off();
	expect_about("in the handler", sum(), some());
	fflush(stdout);
	if (wrong)
		_exit(wrong);
	/* Leaves it on for the end of the process. */
	expect(profil_hot(cells) == 0, "on: %m");
}

static void in_atexit(void)
{
	need(atexit(at_exit) == 0, "atexit");
}

static void on_and_in_atexit(void)
{
	in_atexit();
	expect(profil_hot(cells) == 0, "on: %m");
}

static const struct row rows[] = {
	{ "any", "scale 0 is off", scale_0 },
	{ "any", "scale 1 is off", scale_1 },
	{ "any", "buffer NULL is off", no_buffer },
	{ "any", "bufsiz 0 is off", no_size },
	{ "any", "off when it is off", off_when_off },
	{ "any", "bufsiz 1 has no cell", bytes_1 },
	{ "any", "bufsiz 2 has one cell", bytes_2 },
	{ "any", "bufsiz 3 has one cell", bytes_3 },
	{ "any", "offsets at the ends of memory", ends_of_memory },
	{ "any", "what is in the buffer stays", keeps_presets },
	{ "any", "cells wrap modulo 65536", wraps },
	{ "any", "the program may reset cells", program_resets_it },
	{ "any", "nothing is written outside the buffer", guarded },
	{ "any", "a buffer at an odd address", odd_address },
	{ "any", "a second call replaces the first", second_call },
	{ "any", "a second call for other code", other_offset },
	{ "kernel", "many calls", many_calls },
	{ "any", "errno stays when all is well", keeps_errno },
	{ "any", "two threads call it at once", two_callers },
	{ "any", "off twice: no thread is left", single_again },
	{ "any", "profil in a constructor", in_constructor },
	{ "any", "profil in an atexit handler", in_atexit },
	{ "any", "profil on, and again in an atexit handler", on_and_in_atexit },
};

int main(int argc, char **argv)
{
	return run_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
