// SPDX-License-Identifier: GPL-2.0-only
/*
 * argv[1] threads (4) that burn CPU time and, some hundred times a second, each start a thread
 * that ends at once. Runs until it is killed.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned long sink;

static void *end_at_once(void *unused)
{
	return unused;
}

static __attribute__((noinline)) void burn_maker(void)
{
	for (unsigned long i = 0; i < 1000000; i++)
		sink += i;
}

static void *make(void *unused)
{
	pthread_t thread;

	for (;;) {
		burn_maker();
		if (pthread_create(&thread, NULL, end_at_once, unused))
			exit(1);
		pthread_join(thread, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int makers = argc > 1 ? atoi(argv[1]) : 4;
	pthread_t thread;

	for (int i = 0; i < makers; i++)
		if (pthread_create(&thread, NULL, make, NULL))
			return 1;
	puts("ready");
	fflush(stdout);
	pthread_exit(NULL);
}
