// SPDX-License-Identifier: GPL-2.0-only
/*
 * Failing allocations, wherever /dev/profil allocates: kmod_device.h. Only for a kernel that can
 * make a chosen allocation of a task fail (CONFIG_FAULT_INJECTION), and as root; guest.sh prepares
 * it.
 */
#include "kmod_device.h"

#include <sched.h>

/* For what always fails, or never ends. */
#define MOST 2000

/* A file that takes a number. It is opened before anything fails. */
static int open_number(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	need(fd >= 0, path);
	return fd;
}

static void write_number(int fd, int number)
{
	char text[16];
	int size = snprintf(text, sizeof(text), "%d", number);

	need(pwrite(fd, text, size, 0) == size, "a number of the fault injection");
}

/* --- One allocation that fails --- */

/* Counts down the allocations of this thread; the one that makes it 0 fails. */
static int fail_nth = -1;

/* Returns whether it came to that. */
static bool end_failure(void)
{
	char left[16] = "";

	need(pread(fail_nth, left, sizeof(left) - 1, 0) > 0, "fail-nth");
	write_number(fail_nth, 0);
	return atoi(left) == 0;
}

/* Does something with the first allocation failing, then the second, until none of it fails. */
static void fail_each(void (*run)(void), int least)
{
	bool failed = true;
	int nth = 0;

	device(); /* opens it */
	fail_nth = open_number("/proc/thread-self/fail-nth");
	while (failed && nth < MOST) {
		write_number(fail_nth, ++nth);
		run();
		failed = end_failure();
		query();
	}
	expect(!failed, "allocation %d of one call fails", nth);
	expect(nth > least, "it takes %d allocations", nth - 1);
	turn_off();
	expect_alive();
}

static void set_one(void)
{
	expect(set_cell(cells32) == 0 || errno == ENOMEM, "SET: %m, not ENOMEM");
}

static void set_from_off(void)
{
	turn_off();
	set_one();
}

/* All that it says is that some of them were not counted. */
static void set_many(void)
{
	static struct profil_device_region regions[1000];

	for (size_t i = 0; i < 1000; i++)
		regions[i] = (struct profil_device_region){
			.first = i,
			.last = i,
			.buffer = address(cells32),
			.bufsiz = sizeof(cells32),
		};
	expect(set_regions(PROFIL_WIDE, regions, 1000) == 0 || errno == ENOMEM,
	       "SET: %m, not ENOMEM");
}

static void fork_one(void)
{
	pid_t child = fork();

	if (child == 0) {
		query();
		_exit(wrong);
	}
	if (child > 0)
		expect_well(child, "the child");
}

static int count_in_thread(void *unused)
{
	(void)unused;
	spin_hot(1000);
	return 0;
}

static void clone_one(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t thread = clone(count_in_thread, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);

	if (thread > 0)
		expect_well(thread, "the clone");
}

static void each_of_set(void)
{
	fail_each(set_from_off, 2);
}

static void each_of_set_again(void)
{
	turn_on(cells32);
	fail_each(set_one, 2);
}

static void each_of_many_regions(void)
{
	fail_each(set_many, 2);
}

static void each_of_fork(void)
{
	turn_on(cells32);
	fail_each(fork_one, 10);
}

static void each_of_clone(void)
{
	turn_on(cells32);
	fail_each(clone_one, 5);
}

/* --- Any allocation, by chance, also those of who is new --- */

static void scarce_family(void)
{
	int may_fail = open_number("/proc/self/make-it-fail");

	turn_on(cells32);
	write_number(may_fail, 1);
	for (int i = 0; i < 300; i++) {
		if (i % 10 == 0)
			set_one();
		fork_one();
		clone_one();
	}
	write_number(may_fail, 0);
	turn_off();
	expect_alive();
}

static const struct row rows[] = {
	{ "root", "each allocation of SET fails", each_of_set },
	{ "root", "each allocation of SET fails while it is on", each_of_set_again },
	{ "root", "each allocation of SET with many regions fails", each_of_many_regions },
	{ "root", "each allocation of fork fails", each_of_fork },
	{ "root", "each allocation of clone fails", each_of_clone },
	{ "root", "any allocation of a family fails", scarce_family },
};

int main(int argc, char **argv)
{
	return run_kmod_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
