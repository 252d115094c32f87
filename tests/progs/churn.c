// SPDX-License-Identifier: GPL-2.0-only
/*
 * argv[1] chains of threads (4): each thread burns argv[2] milliseconds (10) of CPU time, starts
 * the next of its chain and ends: threads start and end continuously, each started by another one.
 * Until it is killed it prints a line "REALTIME_NS CPU_NS", its own CPU time, every five
 * milliseconds.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/clock.h"

static uint64_t burn_ns;

static void *link_of_chain(void *unused)
{
	pthread_t next;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < burn_ns)
		;
	if (pthread_create(&next, NULL, link_of_chain, unused))
		exit(1);
	pthread_detach(next);
	return NULL;
}

int main(int argc, char **argv)
{
	int chains = argc > 1 ? atoi(argv[1]) : 4;
	const struct timespec interval = { .tv_nsec = 5000000 };
	pthread_t first;

	burn_ns = (argc > 2 ? atof(argv[2]) : 10) * 1e6;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < chains; i++) {
		if (pthread_create(&first, NULL, link_of_chain, NULL))
			return 1;
		pthread_detach(first);
	}
	puts("ready");
	for (;;) {
		uint64_t before = clock_ns(CLOCK_REALTIME);
		uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		uint64_t after = clock_ns(CLOCK_REALTIME);

		/* A line that was interrupted between the two clocks would have a wrong time. */
		if (after - before < 100000)
			printf("%llu %llu\n", (unsigned long long)before, (unsigned long long)cpu);
		nanosleep(&interval, NULL);
	}
}
