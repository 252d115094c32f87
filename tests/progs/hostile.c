// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client of profild that speaks the protocol itself, correctly and incorrectly: hostile SOCKET
 * STEP... Runs the steps in order; the first that fails is printed, and the exit status is 1. The
 * steps are in the table at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/protocol.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define MOST_STRANGE 200 /* descriptors in one message */

struct counts {
	struct profil_state *state; /* where the map begins */
	size_t size;		    /* of all of it */
	uint64_t *cells;
	size_t cell_count;
};

static const char *path;
static int connection = -1;
static struct counts counts;
static int map_fd = -1;
static struct profild_reply reply;
static unsigned int frequency = 1000; /* of histograms */
static int expected;		      /* the error of the next reply */
static const char *expected_text;     /* in its message; NULL: any */
static union {
	struct profild_request request;
	char bytes[2 * sizeof(struct profild_request) +
		   (PROFIL_RANGES + 1) * sizeof(struct profil_range)];
} message;

static char **rest; /* the arguments behind the step */

static volatile unsigned long sink;

static void run_step(const char *word);

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	exit(1);
}

/* --- Messages --- */

static size_t start_size(void)
{
	return sizeof(message.request) +
	       message.request.range_count * sizeof(*message.request.ranges);
}

/* The 64 KiB around the code here, two bytes for each cell. */
static void make_start(void)
{
	uint64_t here = ((uintptr_t)make_start & ~0xfULL) - 0x8000;

	message.request = (struct profild_request){
		.version = PROFILD_NEWEST,
		.type = PROFILD_START,
		.frequency = frequency,
		.range_count = 1,
		.cell_count = 0x8000,
	};
	message.request.ranges[0] = (struct profil_range){
		.first = here,
		.last = here + 0xffff,
		.offset = here,
		.scale = 0x10000,
	};
}

static void make_plain(uint32_t type)
{
	message.request = (struct profild_request){ .version = PROFILD_NEWEST, .type = type };
}

/* With descriptors, `count` of them. Returns what sendmsg(2) does. */
static ssize_t send_with(size_t size, const int *fds, size_t count)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(MOST_STRANGE * sizeof(int))];
	} control = { 0 };
	struct iovec part = { &message, size };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (count) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	}
	return sendmsg(connection, &m, MSG_NOSIGNAL);
}

static void send_message(size_t size)
{
	if (send_with(size, NULL, 0) != (ssize_t)size)
		fail("cannot send %zu bytes: %m", size);
}

/* Returns the size of a reply, 0 at the end; takes its descriptor. */
static ssize_t receive(void)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { &reply, sizeof(reply) };
	struct msghdr m = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space),
	};
	ssize_t size = recvmsg(connection, &m, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = size < 0 ? NULL : CMSG_FIRSTHDR(&m);

	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&map_fd, CMSG_DATA(c), sizeof(map_fd));
	return size;
}

/* A reply with the error that is expected, and its text. */
static void take_reply(void)
{
	ssize_t size = receive();

	if (size != sizeof(reply))
		fail("a reply of %zd bytes: %m", size);
	if (reply.version != PROFILD_NEWEST || !memchr(reply.message, 0, sizeof(reply.message)))
		fail("the reply is not well-formed");
	if (reply.error != expected || !!reply.error != !!reply.message[0])
		fail("error %d, not %d: %s", reply.error, expected, reply.message);
	if (expected_text && !strstr(reply.message, expected_text))
		fail("not said: \"%s\" but \"%s\"", expected_text, reply.message);
	expected = 0;
	expected_text = NULL;
}

static void be_hung_up_on(void)
{
	struct pollfd end = { .fd = connection, .events = POLLRDHUP };

	if (poll(&end, 1, 20000) != 1 || !(end.revents & (POLLHUP | POLLRDHUP)))
		fail("profild does not hang up");
}

/* --- The counts --- */

static uint64_t sum_cells(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < counts.cell_count; i++)
		sum += __atomic_load_n(&counts.cells[i], __ATOMIC_RELAXED);
	return sum;
}

static void map_counts(void)
{
	const struct profild_request *request = &message.request;

	if (map_fd < 0 || reply.tick_ns < 100000 || reply.tick_ns > 1010000000)
		fail("no descriptor came, or no period: %llu ns",
		     (unsigned long long)reply.tick_ns);
	counts.size = profil_pages(request->range_count, request->cell_count) * PROFIL_PAGE_BYTES;
	counts.state = mmap(NULL, counts.size, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (counts.state == MAP_FAILED)
		fail("cannot map the counts: %m");
	counts.cells = (uint64_t *)((char *)counts.state +
				    profil_first_page(request->range_count) * PROFIL_PAGE_BYTES);
	counts.cell_count = request->cell_count;
	close(map_fd);
	map_fd = -1;
}

static double seconds_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static double cpu_seconds(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

static double wall_seconds(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

__attribute__((noinline)) static void burn(double seconds)
{
	double end = cpu_seconds() + seconds;

	while (cpu_seconds() < end)
		for (int i = 0; i < 100000; i++)
			sink += i;
}

/* --- Steps. Each takes its argument, or NULL when it has none. --- */

static void step_connect(const char *unused)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)unused;
	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof(address)))
		fail("cannot connect: %m");
}

static void step_greeting(const char *unused)
{
	(void)unused;
	take_reply();
}

static void step_expect(const char *error)
{
	static const struct {
		const char *name;
		int code;
	} errors[] = {
		{ "EAGAIN", EAGAIN }, { "EINVAL", EINVAL }, { "EPERM", EPERM },
		{ "EDQUOT", EDQUOT }, { "ESRCH", ESRCH },
	};
	const char *colon = strchr(error, ':');

	for (size_t i = 0; i < COUNT(errors); i++)
		if (strncmp(error, errors[i].name, strlen(errors[i].name)) == 0)
			expected = errors[i].code;
	if (!expected)
		fail("no such error: %s", error);
	expected_text = colon ? colon + 1 : NULL;
}

/* Of those to come. */
static void step_hz(const char *hz)
{
	frequency = strtoul(hz, NULL, 0);
}

static void start(void)
{
	bool well = !expected;

	send_message(start_size());
	take_reply();
	if (well)
		map_counts();
}

static void step_start(const char *cells)
{
	struct profil_range *range = &message.request.ranges[0];

	make_start();
	if (cells)
		message.request.cell_count = strtoull(cells, NULL, 0);
	if (message.request.cell_count < 0x8000)
		range->last = range->first + 2 * message.request.cell_count - 1;
	start();
}

/* All but the calling thread, or the one of this number. */
static void step_start_except(const char *tid)
{
	make_start();
	message.request.except = tid ? strtoul(tid, NULL, 0) : (unsigned long)gettid();
	start();
}

static void step_unmap(const char *unused)
{
	(void)unused;
	munmap(counts.state, counts.size);
}

/* After a mistake all is as before. */
static void start_after_mistake(void)
{
	make_start();
	start();
	step_unmap(NULL);
}

static void step_stop(const char *unused)
{
	(void)unused;
	make_plain(PROFILD_STOP);
	send_message(sizeof(message.request));
	take_reply();
}

static uint64_t read_ticks(void)
{
	return __atomic_load_n(&counts.state->ticks, __ATOMIC_RELAXED);
}

/* Burns for so long, and until there are so many ticks more: not for ever. Returns how many. */
static uint64_t burn_until_ticks(double seconds, uint64_t ticks)
{
	uint64_t before = read_ticks();
	double end = wall_seconds() + 30;

	do
		burn(seconds);
	while (read_ticks() - before < ticks && wall_seconds() < end);
	return read_ticks() - before;
}

/*
 * It is not the time here that is tested: a busy machine may lose some ticks, and a thread whose
 * CPU the host has taken ticks for no CPU time; but there are no more than the clock on the wall
 * has.
 */
static void step_grow(const char *unused)
{
	double begin = wall_seconds(), wall;
	uint64_t ticks = burn_until_ticks(0.1, 10);

	(void)unused;
	wall = wall_seconds() - begin;
	if (ticks < 10 || ticks > wall * 1000 + 2)
		fail("%llu ticks in %.3f s at 1000 Hz", (unsigned long long)ticks, wall);
	if (!sum_cells())
		fail("no tick is in a cell");
}

/* So that the last tick never seems to have been counted. */
static void step_spoil(const char *unused)
{
	(void)unused;
	__atomic_store_n(&counts.state->ticks, 1ULL << 60, __ATOMIC_RELAXED);
}

static void step_burn(const char *unused)
{
	(void)unused;
	burn_until_ticks(0.05, 1);
}

static void step_still(const char *unused)
{
	volatile struct profil_state *state = counts.state;
	uint64_t before;

	(void)unused;
	while (state->done != state->ticks) /* a tick that had begun on another CPU */
		usleep(20);
	before = state->ticks;
	burn(0.05);
	if (counts.state->ticks != before)
		fail("%llu ticks more", (unsigned long long)(counts.state->ticks - before));
	if (counts.state->ticks != counts.state->out_of_range + counts.state->lost + sum_cells())
		fail("the counts do not add up");
}

static void step_close(const char *unused)
{
	(void)unused;
	close(connection);
}

static void step_hung_up(const char *unused)
{
	(void)unused;
	be_hung_up_on();
}

/* Prints "ready" and waits for a line. */
static void step_ready(const char *unused)
{
	char line[16];

	(void)unused;
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		fail("no line");
}

/* The rest is done by a child. */
static void step_fork(const char *unused)
{
	int status;
	pid_t child = fork();

	(void)unused;
	if (child < 0)
		fail("cannot fork: %m");
	if (child == 0)
		return;
	waitpid(child, &status, 0);
	exit(!WIFEXITED(status) || WEXITSTATUS(status));
}

/* The rest is done by so many children, each; this waits until all are ready and then for ever. */
static void step_each(const char *count)
{
	long n = strtol(count, NULL, 0);
	int ready[2], status;
	char byte;

	if (pipe(ready))
		fail("no pipe: %m");
	for (long i = 0; i < n; i++) {
		pid_t child = fork();

		if (child < 0)
			fail("cannot fork: %m");
		if (child)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ready[1], 100); /* for step_told */
		return;
	}
	close(ready[1]);
	for (long i = 0; i < n; i++)
		if (read(ready[0], &byte, 1) != 1)
			fail("only %ld are ready", i);
	puts("ready");
	fflush(stdout);
	while (wait(&status) > 0)
		;
	exit(0);
}

static void step_told(const char *unused)
{
	(void)unused;
	if (write(100, "", 1) != 1)
		fail("nobody waits");
}

static void step_wait(const char *unused)
{
	(void)unused;
	for (;;)
		pause();
}

static void step_euid(const char *unused)
{
	(void)unused;
	printf("%u\n", geteuid());
}

static void step_undumpable(const char *unused)
{
	(void)unused;
	prctl(PR_SET_DUMPABLE, 0);
}

/* A START whose reply is left for later. */
static void step_send(const char *unused)
{
	(void)unused;
	make_start();
	send_message(start_size());
}

/* The reply to it. Whether it was refused, or nothing is counted any more, is for chance to say. */
static void step_any_reply(const char *unused)
{
	ssize_t size = receive();

	(void)unused;
	if (size != sizeof(reply))
		fail("a reply of %zd bytes: %m", size);
	if (reply.error)
		return;
	make_start();
	map_counts();
	step_still(NULL);
}

static void step_malformed(const char *unused)
{
	const size_t size = sizeof(message.request) + 2 * sizeof(struct profil_range);
	const size_t range[2] = { sizeof(message.request), size - sizeof(struct profil_range) };
	uint64_t here;

#define FIELD(name) offsetof(struct profild_request, name), sizeof(message.request.name)
#define RANGE(number, name)                                  \
	range[number] + offsetof(struct profil_range, name), \
		sizeof(((struct profil_range *)NULL)->name)
	make_start();
	here = message.request.ranges[0].first;
	const struct {
		size_t offset, width;
		uint64_t value;
		size_t size; /* of the message */
		const char *text;
	} cases[] = {
		{ FIELD(version), 0, size, "version 0" },
		{ FIELD(version), PROFILD_NEWEST + 1, size, "version" },
		{ FIELD(type), 0, size, "type 0" },
		{ FIELD(type), 3, size, "type 3" },
		{ FIELD(type), PROFILD_STOP, size, "other fields" },
		{ FIELD(frequency), 0, size, "0 Hz" },
		{ FIELD(frequency), PROFILD_MOST_HZ + 1, size, "Hz" },
		{ FIELD(except), 0x80000000, size, "no thread" },
		{ FIELD(except), 1, size, "has no thread 1" },
		{ FIELD(range_count), 0, size, "0 ranges" },
		{ FIELD(range_count), 1, size, "bytes are not" },
		{ FIELD(range_count), 3, size, "bytes are not" },
		{ FIELD(range_count), PROFIL_RANGES + 1, size, "ranges" },
		{ FIELD(range_count), UINT32_MAX, size, "ranges" },
		{ FIELD(unused), 1, size, "unused field" },
		{ FIELD(cell_count), 0, size, "0 cells" },
		{ FIELD(cell_count), 0x7fff, size, "range 1: its last cell" },
		{ FIELD(cell_count), 1, size, "range 0: its last cell" },
		{ FIELD(cell_count), PROFIL_CELLS + 1ULL, size, "cells" },
		{ FIELD(cell_count), UINT64_MAX, size, "cells" },
		{ RANGE(0, first), here + 0x8000, size, "range 0: its addresses" },
		{ RANGE(0, offset), here + 1, size, "range 0: its addresses" },
		{ RANGE(0, last), UINT64_MAX, size, "range 0: its last cell" },
		{ RANGE(0, base), 0x4001, size, "range 0: its last cell" },
		{ RANGE(0, base), UINT32_MAX, size, "range 0: its last cell" },
		{ RANGE(0, scale), UINT32_MAX, size, "range 0: its last cell" },
		{ RANGE(0, wide), 2, size, "range 0: invalid width" },
		{ RANGE(0, unused), 1, size, "range 0: invalid width" },
		{ RANGE(0, last), here + 0x8000, size, "range 1 is not after range 0" },
		{ RANGE(1, first), here, size, "range 1 is not after range 0" },
		{ RANGE(1, last), here + 0x7fff, size, "range 1: its addresses" },
		{ RANGE(1, last), here + 0x10000, size, "range 1: its last cell" },
		{ FIELD(version), PROFILD_NEWEST, 0, "0 bytes" },
		{ FIELD(version), PROFILD_NEWEST, 1, "1 bytes" },
		{ FIELD(version), PROFILD_NEWEST, sizeof(message.request) - 1, "bytes are no" },
		{ FIELD(version), PROFILD_NEWEST, sizeof(message.request), "bytes are not" },
		{ FIELD(version), PROFILD_NEWEST, size - 1, "bytes are not" },
		{ FIELD(version), PROFILD_NEWEST, size + 1, "bytes are not" },
		{ FIELD(version), PROFILD_NEWEST, sizeof(message), "bytes are not" },
	};

	(void)unused;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t value = cases[i].value;

		step_connect(NULL);
		take_reply();
		make_start();
		message.request.range_count = 2;
		message.request.ranges[1] = message.request.ranges[0];
		message.request.ranges[0].last = here + 0x7fff;
		message.request.ranges[1].first = here + 0x8000;
		memcpy(message.bytes + cases[i].offset, &value, cases[i].width);
		send_message(cases[i].size);
		expected = EINVAL;
		expected_text = cases[i].text;
		take_reply();
		start_after_mistake();
		close(connection);
	}
}

/* Requests with some bytes changed at random, the same each time: all are answered. */
static void step_fuzz(const char *count)
{
	long n = strtol(count, NULL, 0);

	srand(1);
	for (long i = 0; i < n; i++) {
		size_t size;

		make_start();
		size = start_size();
		for (int k = rand() % 4; k >= 0; k--)
			message.bytes[rand() % size] = rand() % 2 ? rand() : rand() % 3 - 1;
		if (rand() % 4 == 0)
			size = rand() % sizeof(message);
		send_message(size);
		if (receive() == sizeof(reply)) {
			close(map_fd);
			map_fd = -1;
			continue;
		}
		close(connection); /* too many mistakes */
		step_connect(NULL);
		take_reply();
	}
}

static void step_mistakes(const char *unused)
{
	(void)unused;
	make_plain(0);
	while (send_with(sizeof(message.request), NULL, 0) > 0 && receive() > 0)
		;
	be_hung_up_on();
}

/* Requests whose replies nobody reads. */
static void step_flood(const char *unused)
{
	(void)unused;
	make_plain(PROFILD_STOP);
	while (send_with(sizeof(message.request), NULL, 0) > 0)
		;
	be_hung_up_on();
}

/* Some of what can be sent, the connection itself too. */
static void open_strange(int *fds)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		fail("no sockets: %m");
	for (size_t i = 0; i < MOST_STRANGE; i += 4) {
		fds[i] = syscall(SYS_pidfd_open, getppid(), 0);
		fds[i + 1] = open("/proc/self", O_RDONLY | O_DIRECTORY);
		fds[i + 2] = pair[i / 4 % 2];
		fds[i + 3] = connection;
	}
}

/* A START with descriptors: whether it was sent. If not, it is the kernel that refuses them. */
static bool send_start_with(const int *fds, size_t count)
{
	make_start();
	if (send_with(start_size(), fds, count) >= 0)
		return true;
	if (errno != EPERM)
		fail("cannot send %zu descriptors: %m", count);
	printf("refused: %zu descriptors\n", count);
	return false;
}

/* Where the kernel refuses descriptors (Linux 6.16) all goes on, else profild hangs up. */
static void step_strange(const char *unused)
{
	int fds[MOST_STRANGE];

	(void)unused;
	open_strange(fds);
	for (size_t count = 1; count <= COUNT(fds); count = count * 3 + 1) {
		if (send_start_with(fds, count)) {
			be_hung_up_on();
			close(connection);
			step_connect(NULL);
			take_reply();
			for (size_t i = 3; i < COUNT(fds); i += 4)
				fds[i] = connection;
		}
		make_start();
		start();
		step_grow(NULL);
		step_unmap(NULL);
	}
}

/* A TCP connection whose other end, that stays open, reads nothing and has no room any more. */
static int open_full(void)
{
	static const char zeros[65536];
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &size) ||
	    connect(fd, (struct sockaddr *)&address, size) || accept(listener, NULL, NULL) < 0)
		fail("no TCP connection: %m");
	while (send(fd, zeros, sizeof(zeros), MSG_DONTWAIT) > 0)
		;
	if (errno != EAGAIN)
		fail("cannot fill a TCP connection: %m");
	close(listener);
	return fd;
}

/* A START with a descriptor that takes so many seconds to close, whoever closes it last. */
static void step_linger(const char *seconds)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = strtol(seconds, NULL, 0) };
	int fd = open_full();
	bool sent;

	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)))
		fail("cannot make it linger: %m");
	sent = send_start_with(&fd, 1);
	if (sent)
		close(fd);
}

static _Atomic long sleepers;

static void *sleep_for_ever(void *unused)
{
	sleepers++;
	for (;;)
		pause();
	return unused;
}

/* How many threads do not sleep. By their directory: in a container, their numbers are others
 * there. */
static int count_awake(void)
{
	glob_t files;
	int awake = 0;
	char state;

	if (glob("/proc/self/task/*/stat", GLOB_NOSORT, NULL, &files))
		fail("no threads in /proc");
	for (size_t i = 0; i < files.gl_pathc; i++) {
		FILE *file = fopen(files.gl_pathv[i], "r");

		awake += !file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1 || state != 'S';
		if (file)
			fclose(file);
	}
	globfree(&files);
	return awake;
}

/* A thread that does not sleep yet may have a tick. */
static void step_threads(const char *count)
{
	long n = strtol(count, NULL, 0);
	pthread_t thread;

	for (long i = 0; i < n; i++)
		if (pthread_create(&thread, NULL, sleep_for_ever, NULL))
			fail("no thread");
	while (sleepers < n || count_awake() > 1)
		usleep(100);
}

static void *make_next(void *unused)
{
	pthread_t next;

	while (pthread_create(&next, NULL, make_next, unused))
		;
	pthread_detach(next);
	return NULL;
}

/* Chains of threads, each of which makes the next and ends, without end. */
static void step_churn(const char *count)
{
	long n = strtol(count, NULL, 0);

	for (long i = 0; i < n; i++)
		make_next(NULL);
}

/* A START that may be refused. Who runs this limits the time, in which a busy machine may not run
 * profild. */
static void step_attempt(const char *unused)
{
	(void)unused;
	make_start();
	send_message(start_size());
	receive();
	printf("%d %s\n", reply.error, reply.message);
}

/* The connection stays open in a program that is executed, as this descriptor. */
#define KEPT 99

static void step_keep(const char *unused)
{
	(void)unused;
	if (dup2(connection, KEPT) != KEPT)
		fail("cannot keep the connection: %m");
}

static void step_kept(const char *unused)
{
	(void)unused;
	connection = KEPT;
}

/*
 * A child that keeps the counts mapped sees none change once this process has become another
 * program, which closes the other end of a pipe.
 */
static void step_watch(const char *unused)
{
	const struct timespec while_it_burns = { .tv_nsec = 150000000 };
	uint64_t before, ticks;
	int ends[2];
	char byte;

	(void)unused;
	if (pipe2(ends, O_CLOEXEC))
		fail("no pipe: %m");
	if (fork()) {
		close(ends[0]);
		return;
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1))
		fail("the other end of the pipe was not closed");
	before = __atomic_load_n(&counts.state->ticks, __ATOMIC_SEQ_CST);
	nanosleep(&while_it_burns, NULL);
	ticks = __atomic_load_n(&counts.state->ticks, __ATOMIC_SEQ_CST);
	if (ticks != before || !before)
		fail("%llu ticks before it was another program, %llu of that",
		     (unsigned long long)before, (unsigned long long)(ticks - before));
	exit(0);
}

/* That one, in the other program. */
static void step_collect(const char *unused)
{
	int status;

	(void)unused;
	burn(0.2);
	if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
		fail("the child that watches has seen something");
}

/* The rest is done by another program of this kind. */
static void step_exec(const char *program)
{
	rest[-1] = (char *)path;
	rest[-2] = (char *)program;
	execv(program, rest - 2);
	fail("cannot execute %s: %m", program);
}

static void *do_rest(void *unused)
{
	while (*rest)
		run_step(*rest++);
	exit(0);
	return unused;
}

/* The rest is done by another thread, and the first ends. */
static void step_leader_ends(const char *unused)
{
	pthread_t thread;

	(void)unused;
	if (pthread_create(&thread, NULL, do_rest, NULL))
		fail("no thread");
	pthread_exit(NULL);
}

static const struct step {
	const char *name;
	void (*run)(const char *argument);
} steps[] = {
	{ "connect", step_connect },
	{ "greeting", step_greeting }, /* reads it */
	{ "expect", step_expect },     /* =ERROR:TEXT, for the next reply */
	{ "hz", step_hz },	       /* =FREQUENCY of what is started, instead of 1000 */
	{ "start", step_start },       /* =CELLS */
	{ "start-except", step_start_except },
	{ "stop", step_stop },
	{ "grow", step_grow },	 /* burns CPU time, which is counted */
	{ "still", step_still }, /* which is not counted */
	{ "unmap", step_unmap },
	{ "close", step_close },
	{ "hung-up", step_hung_up }, /* profild does */
	{ "ready", step_ready },     /* prints it and waits for a line */
	{ "fork", step_fork },	     /* the rest is the child's */
	{ "each", step_each },	     /* =N children do the rest */
	{ "told", step_told },	     /* ready, of each */
	{ "wait", step_wait },
	{ "euid", step_euid }, /* prints it */
	{ "undumpable", step_undumpable },
	{ "send", step_send },
	{ "any-reply", step_any_reply },
	{ "malformed", step_malformed },
	{ "fuzz", step_fuzz }, /* =N requests */
	{ "mistakes", step_mistakes },
	{ "flood", step_flood },
	{ "strange", step_strange },
	{ "linger", step_linger }, /* =SECONDS */
	{ "leader-ends", step_leader_ends },
	{ "threads", step_threads }, /* =N that sleep */
	{ "churn", step_churn },
	{ "attempt", step_attempt },
	{ "burn", step_burn },	 /* CPU time, which has a tick */
	{ "spoil", step_spoil }, /* the counters with which counting ends */
	{ "watch", step_watch }, /* from another process */
	{ "collect", step_collect },
	{ "keep", step_keep }, /* the connection, in the next program */
	{ "exec", step_exec }, /* =PROGRAM does the rest */
	{ "kept", step_kept }, /* the connection of the program before */
};

static void run_step(const char *word)
{
	const char *argument = strchr(word, '=');
	size_t length = argument ? (size_t)(argument - word) : strlen(word);

	for (size_t i = 0; i < COUNT(steps); i++)
		if (strlen(steps[i].name) == length && strncmp(steps[i].name, word, length) == 0) {
			steps[i].run(argument ? argument + 1 : NULL);
			return;
		}
	fail("there is no step %s", word);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		fail("hostile SOCKET STEP...");
	path = argv[1];
	rest = argv + 2;
	do_rest(NULL);
}
