// SPDX-License-Identifier: GPL-2.0-only
/*
 * pingpong {threads|processes} ROUNDS: two threads, or two processes, that hand a byte to and fro
 * over pipes on one CPU, so that each round is two switches. When a back end of libprofil is named,
 * profil() is on meanwhile. Prints
 *   us=N, wall_us=N    the microseconds of each round: CPU time of all that take part, and time
 */
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "legacy.h"

static int there[2], back[2];
static unsigned long rounds;

static void pass(int from, int to)
{
	char byte = 0;

	require(read(from, &byte, 1) == 1, "read");
	require(write(to, &byte, 1) == 1, "write");
}

static void *answer(void *unused)
{
	for (unsigned long i = 0; i < rounds; i++)
		pass(there[0], back[1]);
	return unused;
}

/* The last CPU that this process may run on; threads and children to come inherit it. */
static void pin(void)
{
	cpu_set_t allowed, one;

	require(sched_getaffinity(0, sizeof(allowed), &allowed) == 0, "sched_getaffinity");
	CPU_ZERO(&one);
	for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && !CPU_COUNT(&one); cpu--)
		if (CPU_ISSET(cpu, &allowed))
			CPU_SET(cpu, &one);
	require(sched_setaffinity(0, sizeof(one), &one) == 0, "sched_setaffinity");
}

static void run(void)
{
	require(write(there[1], "", 1) == 1, "write");
	for (unsigned long i = 1; i < rounds; i++)
		pass(back[0], there[1]);
	pass(back[0], back[1]);
}

/* Of this process and the child that has ended, in microseconds. */
static double cpu_us(void)
{
	struct rusage children;

	getrusage(RUSAGE_CHILDREN, &children);
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e3 +
	       (children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1e6 +
	       children.ru_utime.tv_usec + children.ru_stime.tv_usec;
}

int main(int argc, char **argv)
{
	bool threads = argc == 3 && strcmp(argv[1], "threads") == 0;
	unsigned short *cells;
	pthread_t thread;
	uint64_t begin;
	pid_t child;
	double cpu;
	size_t size;

	if (!threads && (argc != 3 || strcmp(argv[1], "processes") != 0)) {
		fprintf(stderr, "usage: pingpong {threads|processes} ROUNDS\n");
		return 2;
	}
	rounds = strtoul(argv[2], NULL, 10);
	require(pipe(there) == 0 && pipe(back) == 0, "pipe");
	require_backend();
	/* Before this process is pinned, so that libprofil's own thread is not. */
	if (getenv("PROFIL_BACKEND")) {
		cells = make_cells(&size);
		profil_on(cells, size);
	}
	pin();
	cpu = cpu_us();
	begin = clock_ns(CLOCK_MONOTONIC);
	if (threads) {
		require(pthread_create(&thread, NULL, answer, NULL) == 0, "pthread_create");
		run();
		pthread_join(thread, NULL);
	} else {
		child = fork();
		require(child >= 0, "fork");
		if (child == 0) {
			answer(NULL);
			_exit(0);
		}
		run();
		waitpid(child, NULL, 0);
	}
	printf("us=%.4f\nwall_us=%.4f\n", (cpu_us() - cpu) / rounds,
	       (clock_ns(CLOCK_MONOTONIC) - begin) / 1e3 / rounds);
	return 0;
}
