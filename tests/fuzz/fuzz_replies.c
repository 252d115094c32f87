// SPDX-License-Identifier: GPL-2.0-only
/*
 * A libFuzzer target for messages from profild, or from another process with its socket, to
 * libprofil. For any message, starting ends with an error or with memory to count in, no descriptor
 * is left open, and nothing blocks.
 *
 * The input: for each message two bytes with its size, one for its descriptors (how many, and which
 * kinds), and the message. After the last one, the connection is closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/backend.h"
#include "lib/last_error.h"
#include "lib/protocol.h"
#include "lib/session.h"
#include "lib/sessions.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define CELLS	 64
#define MOST_FDS 4

static struct {
	int listener;
	int kinds[4]; /* a map that fits, one that is too small, a file in memory, a pipe's end */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	const uint8_t *bytes;
	size_t size;
} server;

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "libprofil: %s\n", what);
	abort();
}

/* Who is not permitted to make maps has a file in the place: then none is taken. */
static int make_map(uint32_t pages)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = sizeof(uint32_t),
		.value_size = PROFIL_PAGE_BYTES,
		.max_entries = pages,
		.map_flags = BPF_F_MMAPABLE,
	};
	int fd = syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));

	return fd < 0 ? memfd_create("map", MFD_CLOEXEC) : fd;
}

static void remove_socket(void)
{
	unlink(server.path);
}

static void make_server(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *base = getenv("TMPDIR");
	int ends[2];

	snprintf(server.path, sizeof(server.path), "%s/fuzz.%d", base && *base ? base : "/tmp",
		 getpid());
	strcpy(address.sun_path, server.path);
	server.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (server.listener < 0 ||
	    bind(server.listener, (const struct sockaddr *)&address, sizeof(address)) ||
	    listen(server.listener, 1) || pipe2(ends, O_CLOEXEC) ||
	    setenv("PROFIL_SOCKET", server.path, 1))
		abort();
	atexit(remove_socket);
	server.kinds[0] = make_map(profil_pages(1, CELLS));
	server.kinds[1] = make_map(1);
	server.kinds[2] = memfd_create("file", MFD_CLOEXEC);
	server.kinds[3] = ends[0];
}

static void send_message(int fd, const uint8_t *bytes, size_t size, unsigned int descriptors)
{
	int fds[MOST_FDS];
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(fds))];
	} control = { 0 };
	size_t count = descriptors % (MOST_FDS + 1);
	struct iovec part = { (void *)bytes, size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	for (size_t i = 0; i < count; i++)
		fds[i] = server.kinds[(i + descriptors / (MOST_FDS + 1)) % 4];
	if (count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	}
	sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Sends all at once, for what libprofil asks does not matter, and waits until it hangs up. */
static void *serve(void *unused)
{
	const uint8_t *at = server.bytes, *end = at + server.size;
	int fd = accept4(server.listener, NULL, NULL, SOCK_CLOEXEC);
	char scratch[4096];

	(void)unused;
	while (fd >= 0 && end - at >= 3) {
		size_t length = at[0] | at[1] << 8;
		unsigned int descriptors = at[2];

		at += 3;
		if (length > (size_t)(end - at))
			length = end - at;
		send_message(fd, at, length, descriptors);
		at += length;
	}
	shutdown(fd, SHUT_WR);
	while (recv(fd, scratch, sizeof(scratch), 0) > 0)
		;
	close(fd);
	return NULL;
}

static void count(struct profil_session *s)
{
	struct profil_state *state = s->state;

	require(s->fd >= 0 && state && s->cells, "what a session has that has started");
	state->ticks++;
	s->cells[CELLS - 1]++;
	profil__backend_daemon.is_alive(s);
	profil__backend_daemon.stop(s);
	require(s->fd < 0, "it hangs up when it stops");
	state->ticks++; /* it can still be read */
	profil__backend_daemon.release(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct profil_range range = { .last = 4095, .scale = 0x10000 };
	struct profil_session s = { .hz = 100, .fd = -1 };
	pthread_t thread;
	int before, after, err;

	if (!*server.path)
		make_server();
	before = dup(0);
	close(before);
	s.plan.ranges = &range;
	s.plan.range_count = 1;
	s.plan.cell_count = CELLS;
	server.bytes = bytes;
	server.size = size;
	if (pthread_create(&thread, NULL, serve, NULL))
		abort();
	err = profil__backend_daemon.start(&s);
	require(err <= 0, "what starting returns");
	if (err == 0)
		count(&s);
	else
		require(s.fd < 0 && !s.state && !s.cells,
			"what a session has that has not started");
	pthread_join(thread, NULL);
	after = dup(0);
	require(after == before, "descriptors: one is left open");
	close(after);
	return 0;
}
