// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that live shorter than a tick's period:
 *
 *   brief threads COUNT US   COUNT threads, one after the other, that each burn US microseconds of
 *                            CPU time in burn_brief
 *
 *   brief execs COUNT US     burns as long in this process, which then executes this program again,
 *                            COUNT times
 *
 *   brief once US            burns as long, and ends: to be run under many names
 *
 *   brief storm              until it is killed: children that map code, rename themselves and end,
 *                            as fast as they can; prints "ready" when it begins
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STORM_MAPPINGS 20

void burn_brief(uint64_t ns);

static volatile unsigned int sink;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static void require(bool right, const char *what)
{
	if (right)
		return;
	perror(what);
	exit(1);
}

/* Of this thread's CPU time. */
__attribute__((noinline)) void burn_brief(uint64_t ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	do {
		unsigned int x = 1;

		for (int i = 0; i < 20000; i++)
			x = x * 1664525 + 1013904223;
		sink = x;
	} while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end);
}

static void *burn_thread(void *ns)
{
	burn_brief(*(uint64_t *)ns);
	return NULL;
}

static void run_threads(unsigned long count, uint64_t ns)
{
	pthread_t thread;

	while (count--) {
		require(pthread_create(&thread, NULL, burn_thread, &ns) == 0, "pthread_create");
		pthread_join(thread, NULL);
	}
}

static void run_execs(unsigned long count, uint64_t ns, char **argv)
{
	char left[24];

	burn_brief(ns);
	if (count <= 1)
		return;
	snprintf(left, sizeof(left), "%lu", count - 1);
	argv[2] = left;
	execv("/proc/self/exe", argv);
	require(false, "execv");
}

static void storm_child(int file)
{
	char name[16];

	for (int i = 0; i < STORM_MAPPINGS; i++)
		mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	snprintf(name, sizeof(name), "storm%d", getpid());
	prctl(PR_SET_NAME, name);
	_exit(0);
}

static void run_storm(void)
{
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	require(file >= 0, "/proc/self/exe");
	puts("ready");
	fflush(stdout);
	for (;;) {
		pid_t child = fork();

		require(child >= 0, "fork");
		if (child == 0)
			storm_child(file);
		waitpid(child, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	uint64_t ns = argc > 3 ? strtod(argv[3], NULL) * 1e3 : count * 1000;

	if (strcmp(mode, "storm") == 0 && argc == 2)
		run_storm();
	else if (strcmp(mode, "once") == 0 && argc == 3)
		burn_brief(ns);
	else if (strcmp(mode, "threads") == 0 && argc == 4)
		run_threads(count, ns);
	else if (strcmp(mode, "execs") == 0 && argc == 4)
		run_execs(count, ns, argv);
	else
		return 2;
	return 0;
}
