// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread "sleeper" waits in functions wait_KIND(), in turn, and a thread "waker" ends that in
 * wake_KIND() after argv[1] microseconds; waits of the kinds sleep and poll end by themselves, and
 * the kind vfork when the child exits. This goes on for argv[2] seconds.
 *
 * Prints "ready", and begins after a line on standard input. Or, with the argument "stuck" alone:
 * prints "ready" and waits in vfork() in wait_stuck() for that line.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static long interval_us;
static int commands[2], pipes[2], sockets[2], inets[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int is_held;
static char byte;

static void pause_for(long us)
{
	struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&time, NULL);
}

/* What follows the call keeps it from being a jump. */
#define FUNCTION(name, call)                             \
	__attribute__((noinline)) static void name(void) \
	{                                                \
		if ((call) < 0)                          \
			abort();                         \
		__asm__ volatile("");                    \
	}

static int take_mutex(void)
{
	pthread_mutex_lock(&mutex);
	return -pthread_mutex_unlock(&mutex);
}

static int nap(void)
{
	pause_for(interval_us);
	return 0;
}

/* Waits until the child exits. */
static int wait_for_vfork(void)
{
	pid_t child = vfork();

	if (child == 0) {
		pause_for(interval_us);
		_exit(0);
	}
	return child;
}

FUNCTION(wait_lock, take_mutex())
FUNCTION(wait_pipe, read(pipes[0], &byte, 1))
FUNCTION(wait_socket, recv(sockets[0], &byte, 1, 0))
FUNCTION(wait_inet, recv(inets[0], &byte, 1, 0))
FUNCTION(wait_sleep, nap())
FUNCTION(wait_poll, poll(NULL, 0, interval_us / 1000))
FUNCTION(wait_vfork, wait_for_vfork())

FUNCTION(wake_lock, -pthread_mutex_unlock(&mutex))
FUNCTION(wake_pipe, write(pipes[1], "x", 1))
FUNCTION(wake_socket, send(sockets[1], "x", 1, 0))
FUNCTION(wake_inet, send(inets[1], "x", 1, 0))

static const struct {
	void (*wait)(void);
	void (*wake)(void); /* NULL: nobody need wake it */
} kinds[] = {
	{ wait_lock, wake_lock }, { wait_pipe, wake_pipe }, { wait_socket, wake_socket },
	{ wait_inet, wake_inet }, { wait_sleep, NULL },	    { wait_poll, NULL },
	{ wait_vfork, NULL },
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

static void *run_waker(void *unused)
{
	unsigned char number;

	prctl(PR_SET_NAME, "waker");
	while (read(commands[0], &number, 1) == 1) {
		if (kinds[number].wake == wake_lock) {
			pthread_mutex_lock(&mutex);
			is_held = 1;
		}
		pause_for(interval_us);
		kinds[number].wake();
	}
	return unused;
}

/* A connection to the own machine. */
static int connect_inet(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	inets[1] = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || inets[1] < 0 || bind(listener, (void *)&address, size) ||
	    listen(listener, 1) || getsockname(listener, (void *)&address, &size) ||
	    connect(inets[1], (void *)&address, size) ||
	    setsockopt(inets[1], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)))
		return -1;
	inets[0] = accept(listener, NULL, NULL);
	return inets[0];
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

__attribute__((noinline)) static int wait_stuck(void)
{
	pid_t child = vfork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(read(STDIN_FILENO, &byte, 1) < 0);
	}
	return child < 0;
}

int main(int argc, char **argv)
{
	pthread_t waker;
	double end;

	if (argc == 2 && strcmp(argv[1], "stuck") == 0) {
		puts("ready");
		fflush(stdout);
		return wait_stuck();
	}
	if (argc != 3)
		return 2;
	interval_us = strtol(argv[1], NULL, 10);
	if (pipe(commands) || pipe(pipes) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) ||
	    connect_inet() < 0 || pthread_create(&waker, NULL, run_waker, NULL))
		return 2;
	prctl(PR_SET_NAME, "sleeper");
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		return 2;
	end = now() + strtod(argv[2], NULL);
	for (size_t i = 0; now() < end || i % KINDS; i++) {
		unsigned char number = i % KINDS;

		is_held = 0;
		if (kinds[number].wake && write(commands[1], &number, 1) != 1)
			return 2;
		while (kinds[number].wait == wait_lock && !is_held)
			sched_yield();
		kinds[number].wait();
	}
	return 0;
}
