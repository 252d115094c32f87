// SPDX-License-Identifier: GPL-2.0-only
/*
 * queues CPU BATCH SERVERS: threads that wait for one CPU. `BATCH` of them compute all the time,
 * and `SERVERS` of them for some 0.2 ms, and then wake the next one and sleep until they are woken:
 * half of them at a time. No timer wakes them: the interrupt of a tick would, at the same time.
 * Prints "ready" when all have run.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static atomic_int running;

static void spin(unsigned long rounds)
{
	for (volatile unsigned long i = 0; i < rounds; i++)
		;
}

static void *batch_job(void *unused)
{
	running++;
	for (;;)
		for (volatile unsigned long i = 0; i < 1000000; i++)
			;
	return unused;
}

static int (*servers)[2]; /* a pipe of each */
static int server_count;

static void *serve(void *argument)
{
	int number = (int)(intptr_t)argument, next = (number + 1) % server_count;
	char byte = 'x';

	running++;
	if (number % 2 == 0 && write(servers[next][1], &byte, 1) != 1)
		exit(1);
	while (read(servers[number][0], &byte, 1) == 1) {
		spin(100000);
		if (write(servers[next][1], &byte, 1) != 1)
			exit(1);
	}
	exit(1);
}

int main(int argc, char **argv)
{
	int batch = argc > 2 ? atoi(argv[2]) : 0;
	pthread_t thread;
	cpu_set_t cpus;

	if (argc < 4) {
		fprintf(stderr, "usage: queues CPU BATCH SERVERS\n");
		return 2;
	}
	CPU_ZERO(&cpus);
	CPU_SET(atoi(argv[1]), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus)) {
		perror("queues");
		return 1;
	}
	server_count = atoi(argv[3]);
	servers = calloc(server_count + 1, sizeof(*servers));
	for (int i = 0; i < server_count; i++)
		if (!servers || pipe(servers[i])) {
			perror("queues");
			return 1;
		}
	for (int i = 0; i < batch + server_count; i++)
		if (pthread_create(&thread, NULL, i < batch ? batch_job : serve,
				   (void *)(intptr_t)(i - batch))) {
			perror("queues");
			return 1;
		}
	while (running < batch + server_count)
		usleep(1000);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
