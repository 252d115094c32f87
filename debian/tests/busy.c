// SPDX-License-Identifier: GPL-2.0-only
/*
 * busy SECONDS [count]: uses that much CPU time in two functions, of which busy_most makes nine of
 * ten rounds. Prints "ready" first. With "count", profil(2) counts it, and it prints "most N least
 * N by BACKEND" at its end or at SIGTERM.
 *
 * With -DLIBPROFIL it is written for libprofil; without, it knows the C library's profil() alone,
 * which libprofil can take the place of.
 */
#ifdef LIBPROFIL
#include <profil.h>
#define BACKEND	    profil_backend()
#define EXPLANATION profil_error()
#else
#include <errno.h>
#include <string.h>
#include <unistd.h>
#define BACKEND	    "the library"
#define EXPLANATION strerror(errno)
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned short cells[65536];
static volatile sig_atomic_t ended;
volatile unsigned long sink;
extern char __executable_start[];

/*
 * Each round takes what a multiplication takes. What processors do about memory is different from
 * loop to loop: two that were alike had rounds that took three times as long as the other's.
 */
#define BUSY(name)                                   \
	__attribute__((noinline)) void name(long n)  \
	{                                            \
		unsigned long value = sink;          \
                                                     \
		for (long i = 0; i < n; i++)         \
			value = value * 1664525 + i; \
		sink = value;                        \
	}

BUSY(busy_least)
BUSY(busy_most)

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static int start_counting(void)
{
	signal(SIGTERM, end);
	if (profil(cells, sizeof(cells), (size_t)__executable_start, 0x10000) == 0)
		return 0;
	fprintf(stderr, "%s\n", EXPLANATION);
	return -1;
}

/* A cell is for two bytes. */
static unsigned long ticks_in(void *function)
{
	size_t first = ((size_t)function - (size_t)__executable_start) / 2;
	unsigned long ticks = 0;

	for (size_t i = first; i < first + 32; i++)
		ticks += cells[i];
	return ticks;
}

static void print_counts(void)
{
	const char *backend = BACKEND;

	profil(NULL, 0, 0, 0);
	printf("most %lu least %lu by %s\n", ticks_in(busy_most), ticks_in(busy_least), backend);
}

int main(int argc, char **argv)
{
	clock_t until = clock() + (argc > 1 ? atoi(argv[1]) : 1) * CLOCKS_PER_SEC;

	if (argc > 2 && start_counting())
		return 1;
	puts("ready");
	fflush(stdout);
	while (!ended && clock() < until) {
		/* Rounds of one length would drift against the ticks, and few of these hit one
		 * part. */
		long n = 5000 + random() % 10000;

		busy_least(n);
		busy_most(9 * n);
	}
	if (argc > 2)
		print_counts();
	return 0;
}
