// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waits in functions wait_KIND() for argv[1] microseconds at a time, in turn, for argv[2] seconds.
 * Prints "ready", and begins after a line on standard input. At the end it prints for each kind how
 * long it was blocked there, at least and at most, and how often: "KIND LEAST MOST TIMES", in ns.
 * At least: from switch to wake-up, by a BPF program of its own; the kernel may lose such an event.
 * At most: by the clock less what the kernel says that it ran and waited for a CPU; that has what
 * the host takes while it runs.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "blocked.skel.h"

static long interval_us;
static int pipes[2], sockets[2], event, queue, schedstat;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int is_held;
static pthread_t waiter;

static uint64_t clock_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* How long this thread has waited for a CPU. */
static uint64_t runnable(void)
{
	char text[128];
	ssize_t size = pread(schedstat, text, sizeof(text) - 1, 0);
	char *end;

	if (size <= 0)
		exit(2);
	text[size] = '\0';
	strtoull(text, &end, 10);
	return strtoull(end, NULL, 10);
}

static void pause_for(long us)
{
	struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&time, NULL);
}

/* What follows the call keeps it from being a jump. */
#define WAITER(kind, call)                                      \
	__attribute__((noinline)) static void wait_##kind(void) \
	{                                                       \
		if ((call) < -1)                                \
			abort();                                \
		__asm__ volatile("");                           \
	}

static char byte;
static uint64_t number;
static struct {
	long type;
	char text[8];
} message;

static int wait_for_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		pause_for(interval_us);
		_exit(0);
	}
	return waitpid(child, NULL, 0);
}

static int take_mutex(void)
{
	pthread_mutex_lock(&mutex);
	return pthread_mutex_unlock(&mutex);
}

static int take_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return sigwaitinfo(&set, NULL);
}

static int nap(void)
{
	pause_for(interval_us);
	return 0;
}

WAITER(sleep, nap())
WAITER(poll, poll(NULL, 0, interval_us / 1000 + 1))
WAITER(pipe, read(pipes[0], &byte, 1))
WAITER(socket, recv(sockets[0], &byte, 1, 0))
WAITER(event, read(event, &number, sizeof(number)))
WAITER(ipc, msgrcv(queue, &message, sizeof(message.text), 0, 0))
WAITER(lock, take_mutex())
WAITER(signal, take_signal())
WAITER(child, wait_for_child())

static void *help(void *kind)
{
	const char *name = kind;

	if (strcmp(name, "lock") == 0) {
		pthread_mutex_lock(&mutex);
		is_held = 1;
		pause_for(interval_us);
		pthread_mutex_unlock(&mutex);
		return NULL;
	}
	pause_for(interval_us);
	message.type = 1;
	if (strcmp(name, "pipe") == 0)
		return write(pipes[1], "x", 1) == 1 ? NULL : kind;
	if (strcmp(name, "socket") == 0)
		return send(sockets[1], "x", 1, 0) == 1 ? NULL : kind;
	if (strcmp(name, "event") == 0)
		return eventfd_write(event, 1) == 0 ? NULL : kind;
	if (strcmp(name, "ipc") == 0)
		return msgsnd(queue, &message, 1, 0) == 0 ? NULL : kind;
	return pthread_kill(waiter, SIGUSR1) == 0 ? NULL : kind;
}

static struct {
	const char *name;
	void (*wait)(void);
	int is_helped;
	uint64_t least, most, times;
} kinds[] = {
	{ "sleep", wait_sleep, 0, 0, 0, 0 },   { "poll", wait_poll, 0, 0, 0, 0 },
	{ "child", wait_child, 0, 0, 0, 0 },   { "pipe", wait_pipe, 1, 0, 0, 0 },
	{ "socket", wait_socket, 1, 0, 0, 0 }, { "event", wait_event, 1, 0, 0, 0 },
	{ "ipc", wait_ipc, 1, 0, 0, 0 },       { "lock", wait_lock, 1, 0, 0, 0 },
	{ "signal", wait_signal, 1, 0, 0, 0 },
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

int main(int argc, char **argv)
{
	struct blocked_bpf *bpf = blocked_bpf__open_and_load();
	LIBBPF_OPTS(bpf_test_run_opts, options);
	uint64_t end;
	sigset_t set;

	if (argc != 3)
		return 2;
	interval_us = strtol(argv[1], NULL, 10);
	waiter = pthread_self();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	event = eventfd(0, 0);
	queue = msgget(IPC_PRIVATE, 0600);
	schedstat = open("/proc/thread-self/schedstat", O_RDONLY);
	if (event < 0 || queue < 0 || schedstat < 0 || pipe(pipes) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 2;
	if (!bpf || bpf_prog_test_run_opts(bpf_program__fd(bpf->progs.follow), &options)) {
		perror("blocked");
		return 2;
	}
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		return 2;
	/* Behind those of the recorder: if the host takes the CPU between both, this is shorter. */
	if (blocked_bpf__attach(bpf)) {
		perror("blocked");
		return 2;
	}
	end = clock_of(CLOCK_MONOTONIC) + strtod(argv[2], NULL) * 1e9;
	for (size_t i = 0; clock_of(CLOCK_MONOTONIC) < end || i % KINDS; i++) {
		uint64_t wall, ran, queued, blocked;
		pthread_t helper;
		void *failed = NULL;

		if (kinds[i % KINDS].is_helped &&
		    pthread_create(&helper, NULL, help, (void *)kinds[i % KINDS].name))
			return 2;
		while (strcmp(kinds[i % KINDS].name, "lock") == 0 && !is_held)
			sched_yield();
		is_held = 0;
		/* What is taken off is of the time between the two looks at the clock. */
		wall = clock_of(CLOCK_MONOTONIC);
		ran = clock_of(CLOCK_THREAD_CPUTIME_ID);
		queued = runnable();
		blocked = bpf->bss->blocked_ns;
		kinds[i % KINDS].wait();
		queued = runnable() - queued;
		ran = clock_of(CLOCK_THREAD_CPUTIME_ID) - ran;
		wall = clock_of(CLOCK_MONOTONIC) - wall;
		kinds[i % KINDS].least += bpf->bss->blocked_ns - blocked;
		if (wall > ran + queued)
			kinds[i % KINDS].most += wall - ran - queued;
		kinds[i % KINDS].times++;
		if (kinds[i % KINDS].is_helped)
			pthread_join(helper, &failed);
		if (failed)
			return 2;
	}
	msgctl(queue, IPC_RMID, NULL);
	for (size_t i = 0; i < KINDS; i++)
		printf("%s %llu %llu %llu\n", kinds[i].name, (unsigned long long)kinds[i].least,
		       (unsigned long long)kinds[i].most, (unsigned long long)kinds[i].times);
	return 0;
}
