// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/file.h"
#include "util/proc.h"

/* The process that the children are copies of. It does nothing else. */
static struct {
	pid_t pid; /* 0: none */
	pid_t of;  /* the process that started it */
	int fd;
} template;

/* The children, and the CPU time that each was seen to have; pid 0: a free place. */
static struct {
	pid_t pid;
	uint64_t cpu_ns;
} children[CHILDREN_MAX];
static uint64_t ended_cpu_ns; /* of those that have ended */

struct start_request {
	const char *name;
	child_service *service;
};

struct start_answer {
	int err;
	pid_t pid;
};

/* Leaves nothing open but fd and /dev/null. Returns what fd is then, or -1. */
static int close_all_but(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 2);
	for (int i = 0; i <= STDERR_FILENO; i++)
		if (dup2(null, i) < 0)
			return -1;
	fd = dup2(fd, STDERR_FILENO + 1);
	syscall(SYS_close_range, STDERR_FILENO + 2, ~0U, 0);
	return fd;
}

/* Runs in the template: starts a child. fds: that of the socket to it, and of the process. */
static struct start_answer start(const struct start_request *r, int fds[static 2])
{
	struct start_answer answer = { 0 };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return (struct start_answer){ .err = -errno };
	answer.pid = fork();
	if (answer.pid == 0) {
		int fd;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, r->name);
		fd = close_all_but(pair[1]);
		if (fd >= 0)
			r->service(fd);
		_exit(0);
	}
	answer.err = answer.pid < 0 ? -errno : 0;
	close(pair[1]);
	fds[0] = pair[0];
	fds[1] = answer.err ? -1 : syscall(SYS_pidfd_open, answer.pid, 0);
	if (fds[1] >= 0)
		return answer;
	answer.err = answer.err ?: -errno;
	close(fds[0]);
	return answer;
}

void child_enter(const char *name, pid_t parent, int end_signal, int fd)
{
	sigset_t all;

	prctl(PR_SET_PDEATHSIG, end_signal);
	if (getppid() != parent)
		_exit(1);
	prctl(PR_SET_NAME, name);
	/* The terminal's Ctrl-C is for its parent, which ends it in order. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (fd >= 0 && dup2(fd, STDERR_FILENO + 1) < 0)
		_exit(1);
	syscall(SYS_close_range, STDERR_FILENO + 1 + (fd >= 0), ~0U, 0);
}

/* The caller may be one thread of several: async-signal-safe functions alone. */
static _Noreturn void run_template(int fd, pid_t parent)
{
	struct start_request r;

	child_enter("profil-template", parent, SIGKILL, fd);
	signal(SIGCHLD, SIG_IGN); /* nobody waits for the children */
	fd = close_all_but(STDERR_FILENO + 1);
	while (fd >= 0 && child_receive(fd, &r, sizeof(r), NULL, UINT64_MAX) == sizeof(r)) {
		int fds[2];
		struct start_answer answer = start(&r, fds);

		if (child_send(fd, &answer, sizeof(answer), fds, answer.err ? 0 : 2))
			break;
		if (!answer.err) {
			close(fds[0]);
			close(fds[1]);
		}
	}
	waitpid(-1, NULL, 0); /* as SIGCHLD is ignored: until all have ended */
	_exit(0);
}

static int start_template(void)
{
	pid_t parent = getpid();
	int pair[2], err = 0;

	/* That of the process that this one was forked from is not ours. */
	if (template.pid)
		close(template.fd);
	if (template.pid && template.of == parent) {
		waitpid(template.pid, NULL, WNOHANG);
	} else {
		memset(children, 0, sizeof(children));
		ended_cpu_ns = 0;
	}
	template.pid = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	template.fd = pair[0];
	template.of = parent;
	template.pid = fork();
	if (template.pid == 0)
		run_template(pair[1], parent);
	if (template.pid < 0) {
		err = -errno;
		close(pair[0]);
		template.pid = 0;
	}
	close(pair[1]);
	return err;
}

/*
 * Starting a process takes less than a millisecond, but for want of a CPU.
 * Bound: machine: time in which a child process must start; then: what it was to open or read is
 * missing; again: when it is needed again; share: none; seen: as what is missing then.
 */
#define START_NS (5 * NS_PER_S)

int child_start(struct child *c, const char *name, child_service *service)
{
	const struct start_request request = { name, service };
	struct start_answer answer = { 0 };
	int fds[CHILD_FDS_MAX], err = -EPIPE;
	ssize_t size = 0;

	for (int try = 0; try < 2 && err == -EPIPE; try++) {
		if (try || !template.pid || template.of != getpid())
			err = start_template();
		else
			err = 0;
		err = err ?: child_send(template.fd, &request, sizeof(request), NULL, 0);
		if (err)
			continue;
		size = child_receive(template.fd, &answer, sizeof(answer), fds,
				     now_ns() + START_NS);
		err = size < 0 ? (int)size : 0;
	}
	err = err ?: answer.err;
	if (!err)
		*c = (struct child){ .pid = answer.pid, .fd = fds[0], .pid_fd = fds[1] };
	for (size_t i = 0; i < CHILDREN_MAX && !err; i++)
		if (!children[i].pid) {
			children[i].pid = answer.pid;
			break;
		}
	return err;
}

void children_end(void)
{
	if (!template.pid || template.of != getpid())
		return;
	shutdown(template.fd, SHUT_WR);
	if (!child_reap(template.pid, 1000)) /* a child waits for a file system */
		kill(template.pid, SIGKILL);
	close(template.fd);
	template.pid = 0;
}

size_t children_list(pid_t pids[static CHILDREN_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < CHILDREN_MAX; i++)
		if (children[i].pid)
			pids[count++] = children[i].pid;
	return count;
}

uint64_t children_cpu_ns(void)
{
	uint64_t sum_ns = ended_cpu_ns;
	clockid_t clock;

	if (template.pid && template.of == getpid() &&
	    clock_getcpuclockid(template.pid, &clock) == 0)
		sum_ns += clock_ns(clock);
	for (size_t i = 0; i < CHILDREN_MAX; i++) {
		if (children[i].pid && clock_getcpuclockid(children[i].pid, &clock) == 0)
			children[i].cpu_ns = clock_ns(clock);
		sum_ns += children[i].cpu_ns;
	}
	return sum_ns;
}

int message_send(int fd, const void *message, size_t size, const int *fds, size_t fd_count,
		 int flags)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(MESSAGE_FDS_MAX * sizeof(int))];
	} space = { .bytes = { 0 } };
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
		sent = sendmsg(fd, &m, flags | MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

/*
 * recvmsg(2) until a time; -EAGAIN: it has come. Not by poll(2): who waits there is recording, as
 * /proc/PID/wchan shows.
 */
static ssize_t receive_until(int fd, struct msghdr *m, uint64_t until_ns)
{
	for (;;) {
		uint64_t now = now_ns(), left = until_ns > now ? until_ns - now : 0;
		const struct timeval time = { left / NS_PER_S, left % NS_PER_S / 1000 };
		int flags = MSG_CMSG_CLOEXEC;
		ssize_t n;

		if (until_ns < UINT64_MAX && left < NS_PER_MS / 1000)
			flags |= MSG_DONTWAIT;
		else if (until_ns < UINT64_MAX &&
			 setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)))
			return -errno;
		n = recvmsg(fd, m, flags);
		if (n >= 0 || errno != EINTR)
			return n < 0 ? -errno : n;
	}
}

ssize_t child_receive(int fd, void *message, size_t size, int *fds, uint64_t until_ns)
{
	union {
		struct cmsghdr header; /* for its alignment */
		char bytes[CMSG_SPACE(CHILD_FDS_MAX * sizeof(int))];
	} space;
	struct iovec part = { message, size };
	struct msghdr m = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = space.bytes,
		.msg_controllen = sizeof(space.bytes),
	};
	ssize_t n = receive_until(fd, &m, until_ns);
	const struct cmsghdr *header;
	int taken[CHILD_FDS_MAX];
	size_t count = 0;

	if (n == -EAGAIN)
		return -ETIMEDOUT;
	if (n <= 0)
		return n && n != -ECONNRESET ? n : -EPIPE;
	header = CMSG_FIRSTHDR(&m);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	if (count)
		memcpy(taken, CMSG_DATA(header), count * sizeof(int));
	for (size_t i = 0; i < CHILD_FDS_MAX; i++)
		if (fds && !(m.msg_flags & MSG_TRUNC))
			fds[i] = i < count ? taken[i] : -1;
		else if (i < count) /* it is not wanted */
			close(taken[i]);
	return m.msg_flags & MSG_TRUNC ? -EMSGSIZE : n;
}

bool child_is_running(const struct child *c)
{
	struct proc_stat stat;

	return proc_read_stat(c->pid, &stat) == 0 && stat.state == 'R';
}

uint64_t child_cpu_ns(const struct child *c)
{
	uint64_t ran_ns, delayed_ns;
	char text[128];

	if (file_read_line(proc_path(c->pid, 0, "schedstat").text, text, sizeof(text)) ||
	    sscanf(text, "%" SCNu64 " %" SCNu64, &ran_ns, &delayed_ns) != 2)
		return 0;
	return ran_ns + delayed_ns;
}

bool child_has_ended(int pid_fd)
{
	struct pollfd end = { .fd = pid_fd, .events = POLLIN };

	return poll(&end, 1, 0) != 0;
}

int child_end(struct child *c)
{
	const struct timespec pause = { .tv_nsec = NS_PER_MS };
	int pid_fd = c->pid_fd;

	if (!c->pid)
		return -1;
	children_cpu_ns();
	for (size_t i = 0; i < CHILDREN_MAX; i++)
		if (children[i].pid == c->pid) {
			ended_cpu_ns += children[i].cpu_ns;
			children[i].pid = 0;
			children[i].cpu_ns = 0;
		}
	close(c->fd);
	syscall(SYS_pidfd_send_signal, pid_fd, SIGKILL, NULL, 0);
	*c = (struct child){ 0 };
	/* What can end does so at once. Not by poll(2): see receive_until(). */
	for (int i = 0; i < 10; i++) {
		if (child_has_ended(pid_fd)) {
			close(pid_fd);
			return -1;
		}
		nanosleep(&pause, NULL);
	}
	return pid_fd;
}

bool child_reap(pid_t pid, int wait_ms)
{
	struct pollfd end = { .fd = syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };

	if (end.fd >= 0) {
		poll(&end, 1, wait_ms);
		close(end.fd);
	}
	return waitpid(pid, NULL, WNOHANG) != 0;
}
