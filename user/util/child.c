// SPDX-License-Identifier: GPL-2.0-only
#include "util/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"

/*
 * The child may be one thread of several: until the service begins, async-signal-safe functions
 * alone.
 */
static _Noreturn void run(int fd, const char *name, child_service *service, void *context)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t all;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	/* The terminal's Ctrl-C is for its parent, which ends it in order. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 2);
	for (int i = 0; i <= STDERR_FILENO; i++)
		dup2(null, i);
	fd = dup2(fd, STDERR_FILENO + 1);
	syscall(SYS_close_range, STDERR_FILENO + 2, ~0U, 0);
	if (fd >= 0 && null >= 0)
		service(fd, context);
	_exit(0);
}

int child_start(struct child *c, const char *name, child_service *service, void *context)
{
	int pair[2], err = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	c->fd = pair[0];
	c->pid = fork();
	if (c->pid == 0)
		run(pair[1], name, service, context);
	if (c->pid < 0) {
		err = -errno;
		close(c->fd);
		c->pid = 0;
	}
	close(pair[1]);
	return err;
}

union fd_space {
	struct cmsghdr header; /* for its alignment */
	char bytes[CMSG_SPACE(CHILD_FDS_MAX * sizeof(int))];
};

int child_send(int fd, const void *message, size_t size, const int *fds, size_t fd_count)
{
	union fd_space space = { .bytes = { 0 } };
	struct iovec part = { (void *)message, size };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *header = &space.header;
	ssize_t sent;

	if (fd_count) {
		m.msg_control = space.bytes;
		m.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(header), fds, fd_count * sizeof(int));
	}
	do {
		sent = sendmsg(fd, &m, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

/* Returns 0 when fd is readable or has ended, or a negative errno. */
static int wait_for(int fd, uint64_t until_ns)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	int ready;

	do {
		uint64_t now = now_ns(), left = until_ns > now ? until_ns - now : 0;
		struct timespec time = { left / NS_PER_S, left % NS_PER_S };

		ready = ppoll(&wait, 1, until_ns == UINT64_MAX ? NULL : &time, NULL);
	} while (ready < 0 && errno == EINTR);
	return ready < 0 ? -errno : ready ? 0 : -ETIMEDOUT;
}

/* Takes the descriptors of a message; those that are not wanted are closed. */
static void take_fds(struct msghdr *m, int *fds)
{
	const struct cmsghdr *header = CMSG_FIRSTHDR(m);
	int taken[CHILD_FDS_MAX];
	size_t count = 0;

	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	if (count)
		memcpy(taken, CMSG_DATA(header), count * sizeof(int));
	for (size_t i = 0; i < CHILD_FDS_MAX; i++)
		if (fds)
			fds[i] = i < count ? taken[i] : -1;
		else if (i < count)
			close(taken[i]);
}

ssize_t child_receive(int fd, void *message, size_t size, int *fds, uint64_t until_ns)
{
	union fd_space space;
	struct iovec part = { message, size };
	struct msghdr m = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = space.bytes,
		.msg_controllen = sizeof(space.bytes),
	};
	ssize_t n;
	int err = wait_for(fd, until_ns);

	if (err)
		return err;
	do {
		n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 && errno != ECONNRESET ? -errno : -EPIPE;
	take_fds(&m, m.msg_flags & MSG_TRUNC ? NULL : fds);
	return m.msg_flags & MSG_TRUNC ? -EMSGSIZE : n;
}

bool child_is_running(const struct child *c)
{
	char path[64], text[256], state = 0;
	const char *name_end;
	ssize_t size;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", c->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (size <= 0)
		return false;
	text[size] = '\0';
	name_end = strrchr(text, ')');
	return name_end && sscanf(name_end, ") %c", &state) == 1 && state == 'R';
}

bool child_has_ended(pid_t pid)
{
	pid_t ended;

	do {
		ended = waitpid(pid, NULL, WNOHANG);
	} while (ended < 0 && errno == EINTR);
	return ended != 0;
}

pid_t child_end(struct child *c)
{
	pid_t pid = c->pid;
	struct pollfd end = { .events = POLLIN };

	if (!pid)
		return 0;
	close(c->fd);
	kill(pid, SIGKILL); /* our child, not waited for yet: nobody else has its PID */
	*c = (struct child){ 0 };
	end.fd = syscall(SYS_pidfd_open, pid, 0);
	if (end.fd >= 0) {
		poll(&end, 1, 10); /* what can end does so at once */
		close(end.fd);
	}
	return child_has_ended(pid) ? 0 : pid;
}
