// SPDX-License-Identifier: GPL-2.0-only
/*
 * chains KIND [MS]: runs along known call chains, with frame pointers:
 *
 *   set      main > set > outer > middle > inner, outer > inner, and set > inner
 *   deep     main > descend, 200 deep, then inner
 *   thread   threaded > inner in a thread that main waits for
 *   child    main > parent > inner, and a child that has executed "chains set"
 *   kernel   main > kernel > ask, mostly in system calls
 *   fault    main > touch > fault, which has no frame and whose first instruction faults
 *   last     main > calls_last > forever: the call is the last instruction of calls_last
 *   tree     two threads that walk each of 2^17 paths through a tree, 100 frames below their start
 *   random   main > returns_into_data: a frame pointer that does not lead to code
 *
 * It ends after a time limit, even if the test that started it is gone; with MS, when each of its
 * processes has used that many milliseconds of CPU time.
 */
#ifndef WITHOUT_FRAME_POINTERS
#pragma GCC optimize("no-omit-frame-pointer", "no-optimize-sibling-calls")
#endif
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine.h"

#define NOINLINE __attribute__((noinline, noclone))
#define LOOP	 20000
#define DEPTH	 200
#define BRANCHES 17
#define BELOW	 100
#define LONGEST	 600 /* seconds */

/* Behind a call, so that it does not become a jump. */
#define AFTER __asm__ volatile("")

static volatile bool going_on = true;

static unsigned int loop = LOOP;

NOINLINE static void inner(void)
{
	for (volatile unsigned int i = 0; i < loop; i++)
		;
}

NOINLINE static void middle(void)
{
	inner();
	AFTER;
}

NOINLINE static void outer(void)
{
	middle();
	inner();
	AFTER;
}

/* Ticks fall into step with rounds of equal length: not all callers have their share then. */
NOINLINE static void set(void)
{
	for (unsigned int random = 1;;) {
		outer();
		inner();
		random = random * 1664525 + 1013904223;
		loop = LOOP / 2 + (random >> 16) % LOOP;
	}
}

NOINLINE static void descend(int depth)
{
	if (depth > 1)
		descend(depth - 1);
	else
		while (going_on)
			inner();
	AFTER;
}

NOINLINE static void *threaded(void *unused)
{
	for (;;)
		inner();
	return unused;
}

static void thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, threaded, NULL) == 0)
		pthread_join(thread, NULL);
}

/* MS, or NULL. */
static char *cpu_ms;

static void wait_and_end(int signal)
{
	(void)signal;
	while (wait(NULL) > 0)
		;
	_exit(0);
}

static void end_after(int ms)
{
	struct itimerval timer = { .it_value = { ms / 1000, ms % 1000 * 1000 } };

	signal(SIGPROF, wait_and_end);
	setitimer(ITIMER_PROF, &timer, NULL);
}

NOINLINE static void parent(char *self)
{
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(self, self, "set", cpu_ms, NULL);
		_exit(1);
	}
	for (;;)
		inner();
}

/* Not through libc, whose functions have no frame. */
NOINLINE static void ask(void)
{
	static char bytes[1 << 20];
	volatile long result; /* in memory: so that there is a frame */

	SYSTEM_CALL(result, SYS_getrandom, bytes, sizeof(bytes), 0);
	(void)result;
}

NOINLINE static void kernel(void)
{
	for (;;)
		ask();
}

/* In assembly: the very first instruction faults, each time. */
void fault(char *page);
__asm__(".text\n.type before_fault, @function\nbefore_fault:\n\tret\n.size before_fault, 1\n"
	".type fault, @function\nfault:\n.cfi_startproc\n\t" WRITE_ARGUMENT "\n\tret\n"
	".cfi_endproc\n.size fault, . - fault\n");

NOINLINE static void touch(void)
{
	const size_t size = 1 << 24;
	char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (;;) {
		for (size_t i = 0; i < size; i += 4096)
			fault(pages + i);
		madvise(pages, size, MADV_DONTNEED);
	}
}

NOINLINE __attribute__((noreturn)) static void forever(void)
{
	for (;;)
		inner();
}

NOINLINE static void calls_last(void)
{
	forever();
}

/* --- The tree --- */

NOINLINE static void right(uint32_t path, int depth);

NOINLINE static void left(uint32_t path, int depth)
{
	if (depth == 0)
		for (volatile int i = 0; i < 200; i++)
			;
	else if (path & 1)
		right(path >> 1, depth - 1);
	else
		left(path >> 1, depth - 1);
	AFTER;
}

NOINLINE static void right(uint32_t path, int depth)
{
	if (depth == 0)
		for (volatile int i = 0; i < 200; i++)
			;
	else if (path & 1)
		right(path >> 1, depth - 1);
	else
		left(path >> 1, depth - 1);
	AFTER;
}

NOINLINE static void below(int depth)
{
	if (depth > 1)
		below(depth - 1);
	else
		for (uint32_t path = 0; going_on; path++)
			left(path, BRANCHES);
	AFTER;
}

static void *walk(void *unused)
{
	below(BELOW);
	return unused;
}

static void tree(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, walk, NULL) == 0)
		walk(NULL);
}

/* --- --- */

/* As code without frame pointers may leave it: rbp holds something else. */
NOINLINE static void returns_into_data(void)
{
	static uintptr_t frame[2];

	frame[1] = (uintptr_t)frame;
	for (;;)
		COUNT_WITH_FRAME_POINTER(frame);
}

static const struct kind {
	const char *name;
	void (*run)(void);
} kinds[] = {
	{ "set", set },
	{ "thread", thread },
	{ "kernel", kernel },
	{ "fault", touch },
	{ "tree", tree },
	{ "last", calls_last },
	{ "random", returns_into_data },
};

int main(int argc, char **argv)
{
	const char *name = argc >= 2 ? argv[1] : "";

	alarm(LONGEST);
	cpu_ms = argc >= 3 ? argv[2] : NULL;
	if (cpu_ms)
		end_after(atoi(cpu_ms));
	fprintf(stderr, "ready\n");
	if (strcmp(name, "deep") == 0)
		descend(DEPTH);
	if (strcmp(name, "child") == 0)
		parent(argv[0]);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(name, kinds[i].name) == 0)
			kinds[i].run();
	fprintf(stderr, "usage: chains set|deep|thread|child|kernel|fault|last|tree|random [MS]\n");
	return 2;
}
