// SPDX-License-Identifier: GPL-2.0-only
/*
 * wakes HZ SECONDS: a thread that only sleeps and wakes, so many times in a second, in a process
 * that is busy. Prints percent=SHARE of a core that it takes: no thread that looks after something
 * takes less here.
 */
#include <pthread.h>

#include "legacy.h"

static void *burn(void *unused)
{
	for (;;)
		;
	return unused;
}

int main(int argc, char **argv)
{
	uint64_t begin, end, now, interval, cpu;
	pthread_t thread;

	if (argc != 3) {
		fprintf(stderr, "usage: wakes HZ SECONDS\n");
		return 2;
	}
	interval = NS_PER_S / strtoul(argv[1], NULL, 10);
	require(pthread_create(&thread, NULL, burn, NULL) == 0, "pthread_create");
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	begin = now = clock_ns(CLOCK_MONOTONIC);
	end = begin + strtod(argv[2], NULL) * NS_PER_S;
	while (now < end) {
		sleep_until(now + interval);
		now = clock_ns(CLOCK_MONOTONIC);
	}
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	printf("percent=%.4f\n", 100.0 * cpu / (now - begin));
	return 0;
}
