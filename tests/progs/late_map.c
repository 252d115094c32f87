// SPDX-License-Identifier: GPL-2.0-only
/*
 * A runtime that compiles code while it runs: two pieces of code in anonymous memory, early_code
 * and late_code, which burn CPU in turn, a tenth of the time. Its perf map, /tmp/perf-PID.map, has
 * only the first until SIGUSR1, and is then replaced by rename(2). late_map [MIB]: so much of other
 * entries, too.
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIECE 256 /* bytes, more than burn_there has */

void burn_there(unsigned long turns);

/* Needs nothing but its argument, so that a copy runs anywhere. */
__attribute__((noinline)) void burn_there(unsigned long turns)
{
	volatile unsigned int x = 1;

	while (turns--)
		x = x * 1664525 + 1013904223;
}

static volatile sig_atomic_t named = 1, wanted = 1;

static void name_late(int signal)
{
	(void)signal;
	wanted = 2;
}

static void write_map(const char *code, long mib)
{
	char path[64], made[80];
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	snprintf(made, sizeof(made), "%s.new", path);
	file = fopen(made, "w");
	if (!file)
		err(1, "%s", made);
	for (long i = 0; i < mib * 16384; i++)
		fprintf(file, "%08lx 10 some_function_of_an_application_%027lx\n", 0x1000 + i * 16,
			i);
	fprintf(file, "%lx %x early_code\n", (unsigned long)code, PIECE);
	if (named > 1)
		fprintf(file, "%lx %x late_code\n", (unsigned long)code + PIECE, PIECE);
	if (fclose(file) || rename(made, path))
		err(1, "%s", path);
}

int main(int argc, char **argv)
{
	char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long mib = argc > 1 ? atol(argv[1]) : 0;

	if (code == MAP_FAILED)
		err(1, "mmap");
	memcpy(code, (void *)burn_there, PIECE);
	memcpy(code + PIECE, (void *)burn_there, PIECE);
	signal(SIGUSR1, name_late);
	write_map(code, mib);
	puts("ready");
	fflush(stdout);
	for (unsigned int n = 0;; n++) {
		if (named != wanted) {
			named = wanted;
			write_map(code, mib);
		}
		((void (*)(unsigned long))(code + n % 2 * PIECE))(1000000);
		usleep(20000);
	}
}
