// SPDX-License-Identifier: GPL-2.0-only
/*
 * waits KIND...: a thread for each KIND, and what the kernel says of them. After "ready", prints a
 * line of JSON for each line of standard input, {"THREAD": {...}} with the members
 *
 *   tid
 *   since_ns, until_ns   CLOCK_MONOTONIC before and after the following were read
 *   on_cpu_ns               its CPU time
 *   waited_ns            for a CPU, without a wait that goes on: /proc/self/task/TID/schedstat
 *   blocked_ns           for how long it has slept at least
 *
 *   spin    computes, on the first CPU, and never gives it up by itself
 *   idle    the same with SCHED_IDLE: it waits while any other thread wants that CPU
 *   sleep   sleeps for 1 ms, again and again
 *   never   waits for what does not come
 *   many    1000 threads like that, of which the last is printed
 *
 * THREAD is the KIND, which is also the thread's name, with its number if it is not the first one
 * of this kind.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/clock.h"

#define MANY	     1000
#define MOST_THREADS 64

struct waiting {
	const char *kind;
	pthread_t thread;
	volatile pid_t tid;
	volatile uint64_t sleeps;
};

static void *run_thread(void *context)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	const struct sched_param parameters = { 0 };
	struct waiting *w = context;

	bool computes = strcmp(w->kind, "spin") == 0 || strcmp(w->kind, "idle") == 0;
	cpu_set_t cpus, first;

	prctl(PR_SET_NAME, w->kind);
	if (strcmp(w->kind, "idle") == 0)
		sched_setscheduler(0, SCHED_IDLE, &parameters);
	if (computes && sched_getaffinity(0, sizeof(cpus), &cpus) == 0) {
		CPU_ZERO(&first);
		for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&first); i++)
			if (CPU_ISSET(i, &cpus))
				CPU_SET(i, &first);
		sched_setaffinity(0, sizeof(first), &first);
	}
	w->tid = syscall(SYS_gettid);
	if (computes)
		while (true)
			__asm__ volatile("" ::: "memory");
	while (strcmp(w->kind, "sleep") == 0) {
		nanosleep(&moment, NULL);
		w->sleeps++;
	}
	while (true)
		pause();
	return NULL;
}

static void start_thread(struct waiting *w)
{
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	if (pthread_create(&w->thread, &small, run_thread, w)) {
		perror("pthread_create");
		exit(1);
	}
	pthread_attr_destroy(&small);
	while (!w->tid)
		sched_yield();
}

static void print_thread(const struct waiting *w, const char *gap, unsigned int number)
{
	uint64_t since, until, ran, waited = 0, sleeps;
	char path[64], of[16] = "";
	clockid_t clock;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", w->tid);
	pthread_getcpuclockid(w->thread, &clock);
	since = clock_ns(CLOCK_MONOTONIC);
	sleeps = w->sleeps;
	ran = clock_ns(clock);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%*u %" SCNu64, &waited) != 1)
		waited = 0;
	if (file)
		fclose(file);
	until = clock_ns(CLOCK_MONOTONIC);
	if (number > 1)
		snprintf(of, sizeof(of), "%u", number);
	printf("%s\"%s%s\": {\"tid\": %d, \"since_ns\": %" PRIu64 ", \"until_ns\": %" PRIu64
	       ", \"on_cpu_ns\": %" PRIu64 ", \"waited_ns\": %" PRIu64 ", \"blocked_ns\": %" PRIu64
	       "}",
	       gap, w->kind, of, w->tid, since, until, ran, waited, sleeps * 1000000);
}

int main(int argc, char **argv)
{
	static struct waiting threads[MOST_THREADS];
	char line[64];
	int count = argc - 1;

	if (count < 1 || count > MOST_THREADS) {
		fprintf(stderr, "usage: waits KIND...\n");
		return 2;
	}
	for (int i = 0; i < count; i++) {
		struct waiting *w = &threads[i];

		w->kind = argv[i + 1];
		if (strcmp(w->kind, "many") == 0)
			for (int j = 1; j < MANY; j++) {
				start_thread(w);
				w->tid = 0; /* of the next one */
			}
		start_thread(w);
	}
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		printf("{");
		for (int i = 0; i < count; i++) {
			unsigned int number = 1;

			for (int j = 0; j < i; j++)
				number += strcmp(threads[j].kind, threads[i].kind) == 0;
			print_thread(&threads[i], i ? ", " : "", number);
		}
		puts("}");
		fflush(stdout);
	}
	return 0;
}
