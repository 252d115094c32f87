// SPDX-License-Identifier: GPL-2.0-only
/*
 * An old program: it knows profil(2) from <unistd.h>, and nothing of libprofil. Counts itself while
 * it burns argv[1] seconds of CPU time (0.3), and prints
 *
 *   counts N      the sum of its cells
 *   cpu_ns N      the CPU time that they cover, but for what the machine stood still
 *   profil FILE   the library that profil() is from
 *   SIGPROF WORD  "default", or "taken" if profil() uses the signal
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BYTES 4096 /* of program, from burn() on */

static unsigned short cells[BYTES / 2];
static volatile unsigned long sink;

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static __attribute__((noinline)) void burn(double end)
{
	while (cpu_seconds() < end)
		for (int i = 0; i < 100000; i++)
			sink += i;
}

static const char *provider(void)
{
	Dl_info info;

	return dladdr((void *)profil, &info) ? info.dli_fname : "?";
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0.3, begin, end;
	struct sigaction action;
	unsigned long sum = 0;

	if (profil(cells, sizeof(cells), (size_t)burn, 0x10000)) {
		perror("profil");
		return 1;
	}
	begin = cpu_seconds(); /* what it took to begin is not counted */
	burn(begin + seconds);
	sigaction(SIGPROF, NULL, &action);
	profil(cells, 0, 0, 0);
	end = cpu_seconds();
	for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++)
		sum += cells[i];
	printf("counts %lu\ncpu_ns %.0f\nprofil %s\nSIGPROF %s\n", sum, (end - begin) * 1e9,
	       provider(), action.sa_handler == SIG_DFL ? "default" : "taken");
	return 0;
}
