// SPDX-License-Identifier: GPL-2.0-only
/*
 * Burns CPU in three functions at 60, 30 and 10 % of its time, in as many threads as argv[1]
 * says (1), for argv[2] seconds of CPU time each (0: until it is killed). Prints "ready" once
 * all threads run.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

#define BURNER(name)                                                                              \
	__attribute__((noinline)) void name(unsigned long turns)                                  \
	{                                                                                         \
		for (unsigned long i = 0; i < turns; i++)                                         \
			sink += i;                                                                \
	}

BURNER(burn_sixty)
BURNER(burn_thirty)
BURNER(burn_ten)

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static pthread_barrier_t all_run;

static void *burn(void *seconds)
{
	double end = *(double *)seconds;

	pthread_barrier_wait(&all_run);
	while (end == 0 || cpu_seconds() < end) {
		burn_sixty(600000);
		burn_thirty(300000);
		burn_ten(100000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	double seconds = argc > 2 ? atof(argv[2]) : 0;
	pthread_t thread;

	pthread_barrier_init(&all_run, NULL, threads + 1);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread, NULL, burn, &seconds))
			return 1;
	pthread_barrier_wait(&all_run);
	puts("ready");
	fflush(stdout);
	pthread_exit(NULL); /* the process goes on without its first thread */
}
