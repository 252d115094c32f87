// SPDX-License-Identifier: GPL-2.0-only
/*
 * queues CPU BATCH SERVERS: threads that wait for one CPU. `BATCH` of them compute all the time,
 * and `SERVERS` of them for some 0.2 ms after each millisecond of sleep. Prints "ready" when all
 * run.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_barrier_t all;

static void spin(unsigned long rounds)
{
	for (volatile unsigned long i = 0; i < rounds; i++)
		;
}

static void *batch_job(void *unused)
{
	pthread_barrier_wait(&all);
	for (;;)
		for (volatile unsigned long i = 0; i < 1000000; i++)
			;
	return unused;
}

static void *serve(void *unused)
{
	pthread_barrier_wait(&all);
	for (;;) {
		spin(100000);
		usleep(1000);
	}
	return unused;
}

int main(int argc, char **argv)
{
	int batch = argc > 2 ? atoi(argv[2]) : 0, servers = argc > 3 ? atoi(argv[3]) : 0;
	pthread_t thread;
	cpu_set_t cpus;

	if (argc < 4) {
		fprintf(stderr, "usage: queues CPU BATCH SERVERS\n");
		return 2;
	}
	CPU_ZERO(&cpus);
	CPU_SET(atoi(argv[1]), &cpus);
	pthread_barrier_init(&all, NULL, batch + servers + 1);
	if (sched_setaffinity(0, sizeof(cpus), &cpus)) {
		perror("waits");
		return 1;
	}
	for (int i = 0; i < batch + servers; i++)
		if (pthread_create(&thread, NULL, i < batch ? batch_job : serve, NULL)) {
			perror("waits");
			return 1;
		}
	pthread_barrier_wait(&all);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
