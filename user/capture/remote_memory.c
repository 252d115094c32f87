// SPDX-License-Identifier: GPL-2.0-only
#include "capture/remote_memory.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child may have to wait for a CPU, too. */
#define ANSWER_MS 1000

struct request {
	uint64_t from;
	uint32_t size;
	pid_t pid;
};

static ssize_t read_now(pid_t pid, uint64_t from, void *to, size_t size)
{
	struct iovec local = { to, size }, remote = { (void *)from, size };
	ssize_t count = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	return count < 0 ? -errno : count;
}

/*
 * The child, which is one thread of maybe several: async-signal-safe functions alone. If it is left
 * behind, no event, terminal or pipe may stay open with it.
 */
static _Noreturn void serve(int fd)
{
	static struct {
		ssize_t count;
		char bytes[REMOTE_MEMORY_MAX];
	} answer;
	struct request r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fd)
		dup2(fd, 0);
	syscall(SYS_close_range, 1, ~0U, 0);
	while (recv(0, &r, sizeof(r), 0) == sizeof(r)) {
		size_t size = sizeof(answer.count);

		answer.count = read_now(r.pid, r.from, answer.bytes, r.size);
		size += answer.count > 0 ? answer.count : 0;
		if (send(0, &answer, size, MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

/* Returns 0 or a negative errno. */
static int begin_reader(struct remote_memory *m)
{
	int pair[2], err = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	m->fd = pair[0];
	m->reader = fork();
	if (m->reader == 0)
		serve(pair[1]);
	if (m->reader < 0) {
		err = -errno;
		close(m->fd);
		m->reader = 0;
	}
	close(pair[1]);
	return err;
}

/* is_stuck: it may not even be killed. */
static void end_reader(struct remote_memory *m, bool is_stuck)
{
	close(m->fd);
	kill(m->reader, SIGKILL);
	waitpid(m->reader, NULL, is_stuck ? WNOHANG : 0);
	m->reader = 0;
}

static ssize_t ask(struct remote_memory *m, uint64_t from, void *to, size_t size)
{
	const struct request request = { from, size, m->pid };
	struct pollfd wait = { .fd = m->fd, .events = POLLIN };
	ssize_t count, n;
	struct iovec parts[] = { { &count, sizeof(count) }, { to, size } };
	struct msghdr answer = { .msg_iov = parts, .msg_iovlen = 2 };
	int ready;

	if (send(m->fd, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request))
		return -ETIMEDOUT;
	do {
		ready = poll(&wait, 1, ANSWER_MS);
	} while (ready < 0 && errno == EINTR);
	n = ready > 0 ? recvmsg(m->fd, &answer, 0) : -1;
	return n < (ssize_t)sizeof(count) ? -ETIMEDOUT : count;
}

ssize_t remote_memory_read(struct remote_memory *m, uint64_t from, void *to, size_t size)
{
	const size_t most = sizeof(m->stuck) / sizeof(*m->stuck);
	bool is_stuck = m->stuck_count == most;
	ssize_t count;

	size = size < REMOTE_MEMORY_MAX ? size : REMOTE_MEMORY_MAX;
	if (m->uid == 0 || m->uid == geteuid())
		return read_now(m->pid, from, to, size);
	for (size_t i = 0; i < m->stuck_count; i++)
		is_stuck |= m->stuck[i] == m->uid;
	if (is_stuck)
		return -ETIMEDOUT;
	count = m->reader ? 0 : begin_reader(m);
	count = count ?: ask(m, from, to, size);
	if (count == -ETIMEDOUT) {
		m->stuck[m->stuck_count++] = m->uid;
		end_reader(m, true);
	}
	return count;
}

void remote_memory_end(struct remote_memory *m)
{
	if (m->reader)
		end_reader(m, false);
}
