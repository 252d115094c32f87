// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handles every signal that can be handled, and burns CPU. Prints "ready"; after a line on standard
 * input it prints "signals N", the number that came, and ends.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_int signals;
static volatile unsigned long sink;

static void count(int number)
{
	(void)number;
	atomic_fetch_add(&signals, 1);
}

static void *burn(void *unused)
{
	for (;;)
		sink++;
	return unused;
}

int main(void)
{
	const struct sigaction action = { .sa_handler = count };
	pthread_t thread;

	/* Some cannot be handled: SIGKILL, SIGSTOP and those of the C library. */
	for (int number = 1; number <= SIGRTMAX; number++)
		sigaction(number, &action, NULL);
	if (pthread_create(&thread, NULL, burn, NULL))
		return 1;
	puts("ready");
	fflush(stdout);
	getchar();
	printf("signals %d\n", signals);
	return 0;
}
