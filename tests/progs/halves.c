// SPDX-License-Identifier: GPL-2.0-only
/*
 * Spends half of its CPU time in user mode (burn_user) and half in the kernel (reading /dev/zero
 * from read_zeros), for argv[1] seconds in all (0: until it is killed). Prints "ready" first and
 * waits for a line on standard input when there is an argv[2].
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

void burn_user(double seconds);
void read_zeros(int zero, double seconds);

#define BLOCK (1 << 20)
#define TURN  0.003 /* no multiple of usual periods */

static volatile unsigned long sink;
static char block[BLOCK];

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

void burn_user(double seconds)
{
	for (double end = cpu_seconds() + seconds; cpu_seconds() < end;)
		for (int i = 0; i < 50000; i++)
			sink += i;
}

void read_zeros(int zero, double seconds)
{
	for (double end = cpu_seconds() + seconds; cpu_seconds() < end;)
		if (read(zero, block, sizeof(block)) <= 0) /* shorter where it was stopped */
			exit(1);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0, user = 0, kernel = 0, before;
	int zero = open("/dev/zero", O_RDONLY);

	if (zero < 0)
		return 1;
	puts("ready");
	fflush(stdout);
	if (argc > 2 && getchar() == EOF)
		return 1;
	while (seconds == 0 || user + kernel < seconds) {
		/* Who is behind catches up: a turn's end is not exact. */
		before = cpu_seconds();
		if (user <= kernel) {
			burn_user(TURN);
			user += cpu_seconds() - before;
		} else {
			read_zeros(zero, TURN);
			kernel += cpu_seconds() - before;
		}
	}
	return 0;
}
