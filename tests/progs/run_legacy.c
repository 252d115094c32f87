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

static const double period = 0.001; /* of the ticks, or less */
static unsigned short cells[BYTES / 2];
static volatile unsigned long sink;

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* Returns the CPU time. All that are due in a long step of the clock may be one tick. */
static __attribute__((noinline)) double burn(double seconds)
{
	double before = cpu_seconds(), now, burnt = 0;

	for (; burnt < seconds; before = now) {
		for (int i = 0; i < 100000; i++)
			sink += i;
		now = cpu_seconds();
		burnt += now - before < period ? now - before : period;
	}
	return burnt;
}

static const char *provider(void)
{
	Dl_info info;

	return dladdr((void *)profil, &info) ? info.dli_fname : "?";
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0.3, burnt;
	struct sigaction action;
	unsigned long sum = 0;

	if (profil(cells, sizeof(cells), (size_t)burn, 0x10000)) {
		perror("profil");
		return 1;
	}
	burnt = burn(seconds);
	sigaction(SIGPROF, NULL, &action);
	profil(cells, 0, 0, 0);
	for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++)
		sum += cells[i];
	printf("counts %lu\ncpu_ns %.0f\nprofil %s\nSIGPROF %s\n", sum, burnt * 1e9, provider(),
	       action.sa_handler == SIG_DFL ? "default" : "taken");
	return 0;
}
