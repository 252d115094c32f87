// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* eBPF through profild: protocol.h. */
#include "lib/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/count.h"
#include "lib/last_error.h"
#include "lib/service_thread.h"
#include "lib/protocol.h"
#include "lib/session.h"

/*
 * A profild that hangs must not block the program for ever; a busy machine's reply takes seconds.
 * Bound: caller: time for profild to answer; then: the call fails: ETIMEDOUT.
 */
#define TIMEOUT_S 10

/*
 * However long profild asks to wait.
 * Bound: caller: time to wait that profild may ask for; then: it is asked again sooner.
 */
#define WAIT_NS_MAX 100000000

/*
 * How often to check, at most, whether the last tick has been counted.
 * Bound: caller: looks for the last tick when counting ends; then: it ends without that tick; seen:
 * not seen.
 */
#define END_CHECKS_MAX 500

/* The size of the memory that is shared with the kernel, from s->state on. */
static size_t shared_size(const struct profil_session *s)
{
	return profil_pages(s->plan.range_count, s->plan.cell_count) * PROFIL_PAGE_BYTES;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct timeval timeout = { .tv_sec = TIMEOUT_S };
	int fd, err;

	if (strlen(path) >= sizeof(address.sun_path))
		return profil__error(ENAMETOOLONG, "the path of profild's socket is too long");
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return profil__system_error("cannot create a socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	err = profil__system_error("cannot connect to %s", path);
	close(fd);
	return err;
}

/*
 * Receives a reply in this version, or the first message. On success *map is the descriptor that
 * came with it, which the caller closes (-1: none). Returns 0, the reply's error, or another
 * negative errno: -EPROTO, also if it is of another version, which is in reply->version.
 */
static int receive_reply(int fd, uint32_t version, int *map, struct profild_reply *reply)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
	struct iovec data = { reply, sizeof(*reply) };
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *first;
	ssize_t size;
	int err = 0;

	/*
	 * With a timeout, Linux interrupts recvmsg(2) also when the process is stopped and
	 * continued.
	 */
	do
		size = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	while (size < 0 && errno == EINTR);
	if (size < 0 && errno == EAGAIN)
		return profil__error(ETIMEDOUT, "profild does not reply");
	if (size < 0)
		return profil__system_error("no reply from profild");
	/* The kernel closes further descriptors. */
	*map = -1;
	first = CMSG_FIRSTHDR(&message);
	if (first && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_RIGHTS)
		memcpy(map, CMSG_DATA(first), sizeof(*map));
	if (size == 0)
		err = profil__error(EPIPE, "profild hung up");
	else if (size >= (ssize_t)sizeof(reply->version) && reply->version != version)
		err = profil__error(EPROTO,
				    "profild answers in version %u of the protocol, not in %u: "
				    "restart it, with a version of profil that is as new as this",
				    reply->version, version);
	else if (size != sizeof(*reply) || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
		 reply->error < 0)
		err = profil__error(EPROTO, "unexpected message from profild");
	if (!err && reply->error) {
		reply->message[sizeof(reply->message) - 1] = '\0';
		for (char *c = reply->message; *c; c++) /* it may go to a terminal */
			if (*c < ' ' || *c > '~')
				*c = '?';
		err = profil__error(reply->error, "%s", reply->message);
	}
	if (err && *map >= 0)
		close(*map);
	return err;
}

/* Receives a reply that must not have a descriptor. */
static int receive_plain(int fd, uint32_t version, struct profild_reply *reply)
{
	int map, err = receive_reply(fd, version, &map, reply);

	if (err || map < 0)
		return err;
	close(map);
	return profil__error(EPROTO, "unexpected message from profild");
}

/* Receives the first message, and chooses the newest version that both speak. */
static int receive_hello(int fd, uint32_t *version)
{
	struct profild_reply reply;
	struct profild_hello hello;
	int err = receive_plain(fd, PROFILD_HELLO_VERSION, &reply);

	if (err)
		return err;
	_Static_assert(sizeof(hello) == sizeof(reply), "it is a reply that says more");
	memcpy(&hello, &reply, sizeof(hello));
	*version = profild_choose_version(&hello, PROFILD_OLDEST, PROFILD_NEWEST);
	if (*version)
		return 0;
	return profil__error(EPROTO,
			     "profild speaks versions %u to %u of the protocol, and this libprofil "
			     "%d to %d: %s",
			     hello.oldest, hello.newest, PROFILD_OLDEST, PROFILD_NEWEST,
			     hello.oldest > PROFILD_NEWEST ? "the program needs a newer libprofil"
							   : "update profild");
}

static int send_request(int fd, const struct profild_request *request,
			const struct profil_range *ranges)
{
	struct iovec data[] = {
		{ (void *)request, sizeof(*request) },
		{ (void *)ranges, request->range_count * sizeof(*ranges) },
	};
	const struct msghdr message = { .msg_iov = data, .msg_iovlen = 2 };

	if (sendmsg(fd, &message, MSG_NOSIGNAL) < 0)
		return profil__system_error("cannot send a request to profild");
	return 0;
}

/*
 * Maps the pages of a BPF map. Refuses other descriptors: a file could be truncated by its owner,
 * so that reading it raises SIGBUS.
 */
static void *map_counts(int fd, size_t size)
{
	char path[48], target[32];
	ssize_t length;
	void *memory;

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return NULL;
	target[length] = '\0';
	if (strcmp(target, "anon_inode:bpf-map") != 0)
		return NULL;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return NULL;
	if (madvise(memory, size, MADV_DONTFORK) == 0)
		return memory;
	munmap(memory, size);
	return NULL;
}

/* profild sends nothing without a request: there is something to read only after it has hung up. */
static bool daemon_is_alive(const struct profil_session *s)
{
	char byte;

	return recv(s->fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static int request_start(struct profil_session *s)
{
	struct profild_request request = {
		.type = PROFILD_START,
		.frequency = s->hz,
		.except = profil__service_tid(),
		.range_count = s->plan.range_count,
		.cell_count = s->plan.cell_count,
	};
	struct timespec wait = { 0 };
	struct profild_reply reply = { 0 };
	int fd, err;

	err = receive_hello(s->fd, &s->version);
	request.version = s->version;
	err = err ?: send_request(s->fd, &request, s->plan.ranges);
	err = err ?: receive_reply(s->fd, s->version, &fd, &reply);
	if (err)
		return err;
	/* The map and the period are not trusted. */
	if (fd < 0)
		return profil__error(EPROTO, "profild sent no map");
	if (reply.tick_ns)
		s->state = map_counts(fd, shared_size(s));
	if (!reply.tick_ns)
		err = profil__error(EPROTO, "profild sent no period");
	else if (!s->state)
		err = profil__error(EPROTO, "profild sent a map that cannot be mapped");
	close(fd);
	if (err)
		return err;
	s->cells = (uint64_t *)((char *)s->state +
				profil_first_page(s->plan.range_count) * PROFIL_PAGE_BYTES);
	s->counting.tick_ns = reply.tick_ns;
	wait.tv_nsec = reply.wait_ns < WAIT_NS_MAX ? reply.wait_ns : WAIT_NS_MAX;
	while (wait.tv_nsec && nanosleep(&wait, &wait) && errno == EINTR)
		;
	return 0;
}

static void hang_up(struct profil_session *s)
{
	close(s->fd);
	s->fd = -1;
}

static int daemon_start(struct profil_session *s)
{
	const char *path = secure_getenv("PROFIL_SOCKET");
	int err;

	s->fd = connect_to(path && *path ? path : PROFILD_SOCKET);
	if (s->fd < 0)
		return s->fd;
	err = request_start(s);
	if (!err && !daemon_is_alive(s)) { /* which is looked at later; a filter may forbid it */
		err = profil__error(EPERM, "profild hung up, or recv(2) is not permitted");
		munmap(s->state, shared_size(s));
		s->state = NULL;
		s->cells = NULL;
	}
	if (err)
		hang_up(s);
	return err;
}

/* A tick that had begun may still count: it takes some microseconds, or ends with its machine. */
static void daemon_stop(struct profil_session *s)
{
	const struct profild_request request = { .version = s->version, .type = PROFILD_STOP };
	const struct timespec moment = { .tv_nsec = 20000 };
	struct profild_reply reply;

	if (send_request(s->fd, &request, NULL) == 0)
		receive_plain(s->fd, s->version, &reply);
	hang_up(s);
	for (int i = 0;
	     i < END_CHECKS_MAX && count_load(&s->state->done) != count_load(&s->state->ticks); i++)
		nanosleep(&moment, NULL);
}

static void daemon_release(struct profil_session *s)
{
	munmap(s->state, shared_size(s));
}

const struct backend profil__backend_daemon = {
	.name = "daemon",
	.start = daemon_start,
	.is_alive = daemon_is_alive,
	.stop = daemon_stop,
	.release = daemon_release,
};
