// SPDX-License-Identifier: GPL-2.0-only
/*
 * sleepers THREADS: so many threads that sleep, and one that is busy, until it is killed. Prints
 * "ready" when all are there.
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *sleep_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int main(int argc, char **argv)
{
	unsigned long count = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN);
	for (unsigned long i = 0; i < count; i++) {
		int err = pthread_create(&thread, &attr, sleep_on, NULL);

		if (err) {
			fprintf(stderr, "thread %lu: %s\n", i, strerror(err));
			return 1;
		}
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		;
}
