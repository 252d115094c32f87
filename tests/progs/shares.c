// SPDX-License-Identifier: GPL-2.0-only
/*
 * Burns CPU in three functions, 60, 30 and 10 % of its time, in argv[1] threads (1), for argv[2]
 * seconds of CPU time each (0: until it is killed). Prints "ready" once all threads run, and
 * "cpu_ns N", its CPU time, when the last of them ends. More arguments:
 *
 *   wait  after "ready", burn only after a line on standard input
 *   stay  the first thread waits for the others; without it, it ends at once
 *   lazy  burn a third of the time, for tests that need something to count beside what they do;
 *         lazier: a tenth
 *
 * Tests also build it as a library: burn_cpu().
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void burn_sixty(unsigned long turns);
void burn_thirty(unsigned long turns);
void burn_ten(unsigned long turns);
void burn_cpu(double seconds);

static volatile unsigned int sink;

/* Each turn waits for the one before, so that it takes the same time wherever the code lies. */
#define BURNER(name)                                             \
	__attribute__((noinline)) void name(unsigned long turns) \
	{                                                        \
		unsigned int x = 1;                              \
                                                                 \
		while (turns--)                                  \
			x = x * 1664525 + 1013904223;            \
		sink = x;                                        \
	}

BURNER(burn_sixty)
BURNER(burn_thirty)
BURNER(burn_ten)

static unsigned int rest_us;

static double cpu_seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* Of this thread's CPU time; 0: for ever. */
void burn_cpu(double seconds)
{
	double end = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) + seconds;
	unsigned int random = 1;

	for (unsigned int n = 1; seconds == 0 || cpu_seconds(CLOCK_THREAD_CPUTIME_ID) < end; n++) {
		/*
		 * Rounds much shorter than a tick's period, and of different length, lest ticks
		 * march in step with them.
		 */
		for (int i = 0; i < 32; i++) {
			unsigned long turns = 500 + (random >> 22); /* 500 to 1523 */

			random = random * 1664525 + 1013904223;
			burn_sixty(6 * turns);
			burn_thirty(3 * turns);
			burn_ten(turns);
		}
		if (rest_us && n % 8 == 0)
			usleep(rest_us);
	}
}

static pthread_barrier_t all_run;
static atomic_int running;

static void *burn(void *seconds)
{
	pthread_barrier_wait(&all_run);
	pthread_barrier_wait(&all_run);
	burn_cpu(*(double *)seconds);
	if (atomic_fetch_sub(&running, 1) == 1) {
		printf("cpu_ns %.0f\n", cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) * 1e9);
		fflush(stdout);
	}
	return NULL;
}

static bool has_word(char **words, const char *word)
{
	for (; *words; words++)
		if (strcmp(*words, word) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	static double seconds; /* outlives this thread */
	pthread_t thread;

	seconds = argc > 2 ? atof(argv[2]) : 0;
	rest_us = has_word(argv, "lazy") ? 10000 : has_word(argv, "lazier") ? 40000 : 0;
	running = threads;
	pthread_barrier_init(&all_run, NULL, threads + 1);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread, NULL, burn, &seconds))
			return 1;
	pthread_barrier_wait(&all_run);
	puts("ready");
	fflush(stdout);
	if (has_word(argv, "wait") && getchar() == EOF)
		return 1;
	pthread_barrier_wait(&all_run);
	if (has_word(argv, "stay"))
		pthread_join(thread, NULL);
	pthread_exit(NULL); /* the process goes on without its first thread */
}
