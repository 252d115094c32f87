// SPDX-License-Identifier: GPL-2.0-only
/*
 * Three processes, of which each asks the next one: client, front (unix socket), back (TCP); and
 * holder, a thread of the last, which keeps the lock that back needs: it sleeps and computes first.
 * Prints "ready", and begins after a line on standard input. Prints for each of five requests when
 * it was, in ns since the epoch by CLOCK_MONOTONIC, and what each of them measured of itself, in
 * ns, without the time in which it was runnable:
 *
 *	request BEGIN END client=OWN front=OWN ask=WAIT back=OWN lock=WAIT sleep=WAIT hold=OWN
 *
 * sleep and hold: while back waited for the lock. Each begins when the one that asks it waits.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"

#define REQUESTS 5
#define MS	 NS_PER_MS

/* Travels with the answers. */
struct measures {
	uint64_t front, ask, back, lock, sleep, hold;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int work[2], held[2]; /* pipes of back and holder */
static uint64_t slept_ns, held_ns;

/* For how long this thread was runnable without a CPU so far. */
static unsigned long long delay_ns(void)
{
	FILE *in = fopen("/proc/thread-self/schedstat", "r");
	unsigned long long delay;

	if (!in || fscanf(in, "%*u %llu", &delay) != 1)
		exit(2);
	fclose(in);
	return delay;
}

/* CLOCK_MONOTONIC without that time. */
static uint64_t own_clock(void)
{
	unsigned long long before, after = delay_ns();
	uint64_t now;

	do {
		before = after;
		now = clock_ns(CLOCK_MONOTONIC);
		after = delay_ns();
	} while (before != after);
	return now - before;
}

/* Returns once a thread waits: what is done then is all in its wait. */
static void await_sleep(pid_t thread)
{
	char path[64], state = '\0';

	snprintf(path, sizeof(path), "/proc/%d/stat", thread);
	while (state != 'S') {
		FILE *in = fopen(path, "r");

		if (!in || fscanf(in, "%*s %*s %c", &state) != 1)
			exit(2);
		fclose(in);
		sched_yield();
	}
}

static __attribute__((noinline)) void burn(uint64_t ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static void take(int fd, void *to, size_t size)
{
	if (recv(fd, to, size, MSG_WAITALL) != (ssize_t)size)
		exit(0);
}

static void give(int fd, const void *from, size_t size)
{
	if (write(fd, from, size) != (ssize_t)size)
		exit(2);
}

static void *holder(void *unused)
{
	const struct timespec nap = { 0, 20 * MS };
	uint64_t begin;
	char byte = 'h';

	prctl(PR_SET_NAME, "holder");
	for (;;) {
		pthread_mutex_lock(&mutex);
		give(held[1], &byte, 1);
		if (read(work[0], &byte, 1) != 1)
			exit(2);
		await_sleep(getpid());
		begin = own_clock();
		nanosleep(&nap, NULL);
		slept_ns = own_clock() - begin;
		begin = own_clock();
		burn(30 * MS);
		held_ns = own_clock() - begin;
		pthread_mutex_unlock(&mutex);
		if (read(work[0], &byte, 1) != 1)
			exit(2);
	}
	return unused;
}

static void back(int fd, pid_t caller)
{
	struct measures m = { 0 };
	uint64_t begin, locks, locked;
	pthread_t thread;
	char byte;

	prctl(PR_SET_NAME, "back");
	if (pipe(work) || pipe(held) || pthread_create(&thread, NULL, holder, NULL))
		exit(2);
	for (;;) {
		if (read(held[0], &byte, 1) != 1)
			exit(2);
		take(fd, &byte, 1);
		await_sleep(caller);
		begin = own_clock();
		burn(10 * MS);
		give(work[1], &byte, 1);
		locks = own_clock();
		pthread_mutex_lock(&mutex);
		locked = own_clock();
		m.sleep = slept_ns;
		m.hold = held_ns;
		pthread_mutex_unlock(&mutex);
		give(work[1], &byte, 1);
		m.lock = locked - locks;
		m.back = own_clock() - begin - m.lock;
		give(fd, &m, sizeof(m));
	}
}

static void front(int fd, int next)
{
	struct measures m;
	uint64_t begin, asks, ask_ns;
	char byte;

	prctl(PR_SET_NAME, "front");
	for (;;) {
		take(fd, &byte, 1);
		await_sleep(getppid());
		begin = own_clock();
		burn(15 * MS);
		asks = own_clock();
		give(next, &byte, 1);
		take(next, &m, sizeof(m));
		ask_ns = own_clock() - asks;
		m.ask = ask_ns;
		m.front = own_clock() - begin - ask_ns;
		give(fd, &m, sizeof(m));
	}
}

static __attribute__((noinline)) void request(int fd, uint64_t to_epoch)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), end, own = own_clock(), asks;
	struct measures m;

	burn(2 * MS);
	asks = own_clock();
	give(fd, "r", 1);
	take(fd, &m, sizeof(m));
	own = asks - own;
	end = clock_ns(CLOCK_MONOTONIC);
	printf("request %llu %llu client=%llu front=%llu ask=%llu back=%llu lock=%llu "
	       "sleep=%llu hold=%llu\n",
	       (unsigned long long)(begin + to_epoch), (unsigned long long)(end + to_epoch),
	       (unsigned long long)own, (unsigned long long)m.front, (unsigned long long)m.ask,
	       (unsigned long long)m.back, (unsigned long long)m.lock, (unsigned long long)m.sleep,
	       (unsigned long long)m.hold);
}

int main(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int pair[2], listener = socket(AF_INET, SOCK_STREAM, 0),
		     tcp = socket(AF_INET, SOCK_STREAM, 0);
	struct timespec epoch;
	uint64_t to_epoch;
	char line[16];
	pid_t asking;

	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &size) ||
	    connect(tcp, (struct sockaddr *)&address, size) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 2;
	asking = fork();
	if (!asking || !fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (asking)
			back(accept(listener, NULL, NULL), asking);
		else
			front(pair[1], tcp);
	}
	prctl(PR_SET_NAME, "client");
	clock_gettime(CLOCK_REALTIME, &epoch);
	to_epoch = epoch.tv_sec * NS_PER_S + epoch.tv_nsec - clock_ns(CLOCK_MONOTONIC);
	printf("ready\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 2;
	for (int i = 0; i < REQUESTS; i++)
		request(pair[0], to_epoch);
	return 0;
}
