// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints "ready" and waits for a line on standard input; then
 *   family fork SECONDS          burns that much CPU time in each of: itself (burn_parent), a
 *                                new thread (burn_thread) and a child (burn_child)
 *   family exec SECONDS COMMAND... burns in burn_before, then becomes COMMAND
 *   family thread-exec SECONDS COMMAND... the same in a thread that is not the leader
 *   family swarm SECONDS MS      burns in burn_child, in children that take MS milliseconds each,
 *                                one after the other
 * At its end it prints "cpu_ns N": its own CPU time and that of its children.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void burn_parent(double seconds);
void burn_thread(double seconds);
void burn_child(double seconds);
void burn_before(double seconds);

static volatile unsigned long sink;

static double thread_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/*
 * Each its own loop, so that the time is spent in the function itself: where instructions are the
 * clock, reading that takes as long as some thousand rounds.
 */
#define BURNER(name)                                                                   \
	void name(double seconds)                                                      \
	{                                                                              \
		for (double end = thread_seconds() + seconds; thread_seconds() < end;) \
			for (int i = 0; i < 100000; i++)                               \
				sink += i;                                             \
	}

BURNER(burn_parent)
BURNER(burn_thread)
BURNER(burn_child)
BURNER(burn_before)

static void *thread(void *seconds)
{
	burn_thread(*(double *)seconds);
	return NULL;
}

static int run_child(double seconds)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		burn_child(seconds);
		_exit(0);
	}
	return child < 0 || waitpid(child, &status, 0) != child || status;
}

static void *become(void *argv)
{
	burn_before(atof(((char **)argv)[2]));
	execvp(((char **)argv)[3], (char **)argv + 3);
	return NULL;
}

static int run_fork(double seconds)
{
	pthread_t other;
	pid_t child = fork();

	if (child == 0) {
		burn_child(seconds);
		_exit(0);
	}
	if (child < 0 || pthread_create(&other, NULL, thread, &seconds))
		return 1;
	burn_parent(seconds);
	pthread_join(other, NULL);
	return waitpid(child, NULL, 0) != child;
}

static int run_swarm(double seconds, double each)
{
	for (double spent = 0; spent < seconds; spent += each)
		if (run_child(each))
			return 1;
	return 0;
}

static double usage_ns(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9 +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3;
}

int main(int argc, char **argv)
{
	double seconds = argc > 2 ? atof(argv[2]) : 0;
	pthread_t other;
	int status = 2;

	puts("ready");
	fflush(stdout);
	if (argc < 3 || getchar() == EOF)
		return 2;
	if (strcmp(argv[1], "fork") == 0) {
		status = run_fork(seconds);
	} else if (strcmp(argv[1], "swarm") == 0 && argc > 3) {
		status = run_swarm(seconds, atof(argv[3]) / 1e3);
	} else if (strcmp(argv[1], "thread-exec") == 0 && argc > 3) {
		status = 127;
		if (pthread_create(&other, NULL, become, argv) == 0)
			pthread_join(other, NULL);
	} else if (strcmp(argv[1], "exec") == 0 && argc > 3) {
		burn_before(seconds);
		execvp(argv[3], argv + 3);
		status = 127;
	}
	printf("cpu_ns %.0f\n", usage_ns(RUSAGE_SELF) + usage_ns(RUSAGE_CHILDREN));
	return status;
}
