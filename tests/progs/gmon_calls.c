// SPDX-License-Identifier: GPL-2.0-only
/*
 * For gcc -pg: calls functions a known number of times, which it prints as "calls NAME N", and
 * burns CPU time in three of them, 60, 30 and 10 % of that of main(), which it prints as "cpu_ns
 * N". It does argv[1] rounds in each of argv[2] threads (0:
 * in the first). More arguments:
 *
 *   fork    then a child does as many rounds again, in one thread, and prints nothing
 *   signal  meanwhile a timer's signal handler also calls functions
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void burn_sixty(unsigned long turns);
void burn_thirty(unsigned long turns);
void burn_ten(unsigned long turns);
void through_pointer(unsigned long round);
void recursive(unsigned long depth);
void one_round(unsigned long round);
void all_rounds(void);
void in_handler(void);

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

/* One call site with three callees. */
void through_pointer(unsigned long round)
{
	static void (*const callees[])(unsigned long) = { burn_sixty, burn_thirty, burn_ten };

	callees[round % 3](1);
}

void recursive(unsigned long depth)
{
	if (depth)
		recursive(depth - 1);
	sink = depth;
}

static __thread unsigned int random_bits;

/*
 * Rounds of one length would go in step with the ticks, which have a fixed period: where in a round
 * a tick comes would say where the next one does, the same way in threads that begin together.
 */
void one_round(unsigned long round)
{
	unsigned long turns;

	random_bits = random_bits * 1664525 + 1013904223;
	turns = 500 + (random_bits >> 16) % 1000;
	burn_sixty(6 * turns);
	burn_thirty(3 * turns);
	burn_ten(turns);
	through_pointer(round);
	recursive(4);
}

static double cpu_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

static unsigned long rounds;

void all_rounds(void)
{
	random_bits = cpu_ns(CLOCK_MONOTONIC);
	for (unsigned long i = 0; i < rounds; i++)
		one_round(i);
}

static void *run(void *unused)
{
	(void)unused;
	all_rounds();
	return NULL;
}

static _Atomic unsigned long handled; /* a signal may come while another thread handles the last */

void in_handler(void)
{
	handled++;
}

static void handle(int signal)
{
	(void)signal;
	in_handler();
	recursive(0);
}

static void start_timer(void)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 100 }, { 0, 100 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

static void stop_timer(void)
{
	struct itimerval never = { { 0, 0 }, { 0, 0 } };
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	setitimer(ITIMER_REAL, &never, NULL);
	sigprocmask(SIG_BLOCK, &alarms, NULL);
}

static void run_threads(int count)
{
	pthread_t *threads = calloc(count, sizeof(*threads));

	for (int i = 0; i < count; i++)
		if (!threads || pthread_create(&threads[i], NULL, run, NULL))
			exit(1);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	if (!count)
		all_rounds();
}

static void print_calls(unsigned long times)
{
	printf("calls one_round %lu\n", times);
	printf("calls burn_sixty %lu\n", times + times / rounds * ((rounds + 2) / 3));
	printf("calls burn_thirty %lu\n", times + times / rounds * ((rounds + 1) / 3));
	printf("calls burn_ten %lu\n", times + times / rounds * (rounds / 3));
	printf("calls through_pointer %lu\n", times);
	printf("calls recursive %lu\n",
	       times + handled); /* by others: gprof prints it separately */
	printf("calls in_handler %lu\n", handled);
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
	int threads = argc > 2 ? atoi(argv[2]) : 0;
	double start = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);

	rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	if (has_word(argv, "signal"))
		start_timer();
	run_threads(threads);
	stop_timer();
	print_calls(rounds * (threads ? threads : 1));
	printf("cpu_ns %.0f\n", cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - start);
	fflush(stdout); /* once, if it forks */
	if (!has_word(argv, "fork"))
		return 0;
	switch (fork()) {
	case -1:
		return 1;
	case 0:
		all_rounds();
		return 0;
	default:
		return wait(NULL) < 0;
	}
}
