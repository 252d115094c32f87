// SPDX-License-Identifier: GPL-2.0-only
/*
 * One thread computes for argv[1] milliseconds of CPU time, sleeps as long, waits as long for a
 * lock that another thread holds, and sleeps for 20 us a thousand times; in each phase it has the
 * phase's name. Prints "ready", and begins after a line on standard input. At the end it prints for
 * each phase when it was, in nanoseconds since the epoch, by CLOCK_MONOTONIC: "NAME BEGIN END".
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"

#define NAPS 1000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct timespec length;
static volatile unsigned long sink;
static int held[2], go[2]; /* pipes */
static uint64_t to_epoch_ns;

static void *hold(void *unused)
{
	char byte;

	pthread_mutex_lock(&mutex);
	if (write(held[1], "h", 1) != 1 || read(go[0], &byte, 1) != 1)
		exit(2);
	nanosleep(&length, NULL);
	pthread_mutex_unlock(&mutex);
	return unused;
}

static __attribute__((noinline)) void compute(void)
{
	uint64_t end =
		clock_ns(CLOCK_THREAD_CPUTIME_ID) + length.tv_sec * NS_PER_S + length.tv_nsec;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 10000; i++)
			sink += i;
}

static __attribute__((noinline)) void sleep_once(void)
{
	nanosleep(&length, NULL);
}

static __attribute__((noinline)) void wait_for_lock(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static __attribute__((noinline)) void nap_often(void)
{
	const struct timespec nap = { 0, 20000 };

	for (int i = 0; i < NAPS; i++)
		nanosleep(&nap, NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} phases[] = {
		{ "computes", compute },
		{ "sleeps", sleep_once },
		{ "locks", wait_for_lock },
		{ "naps", nap_often },
	};
	uint64_t times[4][2];
	pthread_t holder;
	long ms;
	char line[16];

	if (argc < 2)
		return 2;
	ms = strtol(argv[1], NULL, 10);
	length = (struct timespec){ ms / 1000, ms % 1000 * 1000000 };
	/* The holder has the lock before anything is recorded. */
	if (pipe(held) || pipe(go) || pthread_create(&holder, NULL, hold, NULL) ||
	    read(held[0], line, 1) != 1)
		return 2;
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 2;
	to_epoch_ns = time_of_day_ns(0);
	for (int i = 0; i < 4; i++) {
		prctl(PR_SET_NAME, phases[i].name);
		times[i][0] = clock_ns(CLOCK_MONOTONIC) + to_epoch_ns;
		if (phases[i].run == wait_for_lock && write(go[1], "g", 1) != 1)
			return 2;
		phases[i].run();
		times[i][1] = clock_ns(CLOCK_MONOTONIC) + to_epoch_ns;
	}
	pthread_join(holder, NULL);
	for (int i = 0; i < 4; i++)
		printf("%s %llu %llu\n", phases[i].name, (unsigned long long)times[i][0],
		       (unsigned long long)times[i][1]);
	return 0;
}
