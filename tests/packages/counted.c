// SPDX-License-Identifier: GPL-2.0-only
/* counted SECONDS: uses that much CPU time, in two functions, and prints its own counts: "most N
 * least N by BACKEND". Also at SIGTERM. */
#include <profil.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned short cells[65536];
static volatile sig_atomic_t ended;
volatile unsigned long sink;
extern char __executable_start[];

__attribute__((noinline)) void least(long n)
{
	for (long i = 0; i < n; i++)
		sink += i;
}

__attribute__((noinline)) void most(long n)
{
	for (long i = 0; i < n; i++)
		sink += i;
}

static void end(int signal)
{
	(void)signal;
	ended = 1;
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

int main(int argc, char **argv)
{
	const char *backend;
	clock_t until;

	signal(SIGTERM, end);
	if (profil(cells, sizeof(cells), (size_t)__executable_start, 0x10000)) {
		fprintf(stderr, "%s\n", profil_error());
		return 1;
	}
	until = clock() + (argc > 1 ? atoi(argv[1]) : 1) * CLOCKS_PER_SEC;
	while (!ended && clock() < until) {
		least(10000);
		most(90000);
	}
	backend = profil_backend();
	profil(NULL, 0, 0, 0);
	printf("most %lu least %lu by %s\n", ticks_in(most), ticks_in(least), backend);
	return 0;
}
