// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/number.h"

#define FIRST_PASSED_FD 3 /* SD_LISTEN_FDS_START */

/* Bound: pace. */
#define MAX_WAIT_US 100000

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

static bool has_option(int fd, int option, int value)
{
	socklen_t size = sizeof(int);
	int is;

	return getsockopt(fd, SOL_SOCKET, option, &is, &size) == 0 && is == value;
}

void listener_take_descriptors(int socket, int on)
{
	setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
}

static int cannot_listen(struct error *e, int code, const char *path)
{
	error_set(e, code, "cannot listen on %s", path);
	if (code == ENOENT)
		error_hint(e, "make its directory first: mkdir -p \"$(dirname %s)\"", path);
	else if (code == EACCES || code == EPERM)
		error_hint(e, "run it as root, or choose another path: profild --socket PATH");
	return -code;
}

static int in_use(struct error *e, const char *path)
{
	error_set(e, 0, "cannot listen on %s: another process listens there already", path);
	error_hint(e, "find the process: ss -xlp src %s", path);
	return -EADDRINUSE;
}

static bool is_at(const char *path, const struct stat *known)
{
	struct stat status;

	return lstat(path, &status) == 0 && status.st_dev == known->st_dev &&
	       status.st_ino == known->st_ino;
}

/* Locks the path, until unlock_path(): nobody else removes or makes the socket meanwhile. */
static int lock_path(struct listener *listener, const char *path, struct error *e)
{
	struct stat status;
	int fd, code, err = 0;

	snprintf(listener->lock_path, sizeof(listener->lock_path), "%s.lock", path);
	do {
		fd = open(listener->lock_path,
			  O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
		code = fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &status) ? errno : 0;
		if (code == EWOULDBLOCK)
			err = in_use(e, path);
		else if (code == ENOENT || code == EACCES || code == EPERM)
			err = cannot_listen(e, code, path);
		else if (code)
			err = error_set(e, code, "cannot lock %s", listener->lock_path);
		/* unlock_path() will remove the file: it must not be anything else than a lock. */
		else if (!S_ISREG(status.st_mode) || status.st_size)
			err = error_set(e, 0, "cannot lock %s: it exists and is not a lock",
					listener->lock_path);
		else if (is_at(listener->lock_path, &status))
			listener->lock = fd;
		if (listener->lock < 0 && fd >= 0)
			close(fd); /* or its last owner has removed it meanwhile */
	} while (!err && listener->lock < 0);
	return err;
}

static void unlock_path(struct listener *listener)
{
	struct stat status;

	if (listener->lock < 0)
		return;
	/* Before the lock is released: then the path may be another process's. */
	if (fstat(listener->lock, &status) == 0 && is_at(listener->lock_path, &status))
		unlink(listener->lock_path);
	close(listener->lock);
	listener->lock = -1;
}

/*
 * Removes a socket on which no process listens. Returns 0, also if the path does not exist, or
 * -errno: -EADDRINUSE if a process listens; other errors if the path is not a socket.
 */
static int remove_stale_socket(const struct sockaddr_un *address, struct error *e)
{
	const char *path = address->sun_path;
	struct stat status;
	int fd, code;

	if (lstat(path, &status))
		return errno == ENOENT ? 0 : cannot_listen(e, errno, path);
	if (!S_ISSOCK(status.st_mode))
		return error_set(e, 0, "cannot listen on %s: it exists and is not a socket", path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_set(e, errno, "cannot create a socket");
	code = connect(fd, (const struct sockaddr *)address, sizeof(*address)) ? errno : 0;
	close(fd);
	if (code == ECONNREFUSED)
		return unlink(path) && errno != ENOENT ? cannot_listen(e, errno, path) : 0;
	if (code == ENOENT)
		return 0;
	if (code == EACCES)
		return cannot_listen(e, code, path);
	return in_use(e, path);
}

/* Makes the socket at a path that the caller has locked. Returns 0 or -errno. */
static int make_socket(struct listener *listener, const struct sockaddr_un *address,
		       struct error *e)
{
	int code, err = remove_stale_socket(address, e);
	mode_t mask;

	if (err)
		return err;
	listener->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener->fd < 0)
		return error_set(e, errno, "cannot create a socket");
	listener_take_descriptors(listener->fd, false);
	/* bind() makes the socket with these permissions: open to all users. */
	mask = umask(0111);
	code = bind(listener->fd, (const struct sockaddr *)address, sizeof(*address)) ? errno : 0;
	umask(mask);
	if (!code &&
	    (listen(listener->fd, SOMAXCONN) || lstat(address->sun_path, &listener->status))) {
		code = errno;
		unlink(address->sun_path);
	}
	if (!code)
		return 0;
	close(listener->fd);
	return cannot_listen(e, code, address->sun_path);
}

int listener_open(struct listener *listener, const char *path, struct error *e)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	uint64_t number, passed;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int err;

	*listener = (struct listener){ .fd = -1, .lock = -1 };
	if (pid && fds && number_parse(pid, 1, INT32_MAX, &number) == 0 &&
	    number == (uint64_t)getpid() && number_parse(fds, 1, INT32_MAX, &passed) == 0) {
		int fd = FIRST_PASSED_FD, flags = fcntl(fd, F_GETFL);

		if (passed != 1 || flags < 0 || !has_option(fd, SO_DOMAIN, AF_UNIX) ||
		    !has_option(fd, SO_TYPE, SOCK_SEQPACKET) || !has_option(fd, SO_ACCEPTCONN, 1)) {
			error_set(e, 0,
				  "LISTEN_FDS has something else than one socket to listen on");
			error_hint(e, "in the .socket unit: one "
				      "ListenSequentialPacket=/run/profild/socket");
			return -EINVAL;
		}
		if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC))
			return error_set(e, errno, "cannot use the socket in LISTEN_FDS");
		listener_take_descriptors(fd, false);
		listener->fd = fd;
		return 0;
	}
	if (!*path || strlen(path) >= sizeof(address.sun_path))
		return error_set_kind(
			e, ERROR_USAGE, 0,
			"the path of a socket has 1 to %zu bytes; this one does not: \"%s\"",
			sizeof(address.sun_path) - 1, path);
	strcpy(address.sun_path, path);
	err = lock_path(listener, path, e) ?: make_socket(listener, &address, e);
	if (err)
		unlock_path(listener);
	else
		listener->path = path;
	return err;
}

static void interrupt(int signal)
{
	(void)signal; /* its arrival makes a waiting system call fail with EINTR */
}

void listener_limit_waits(bool on)
{
	/* Periodic: a single one could come just before the wait. */
	const struct timeval interval = { .tv_usec = on ? MAX_WAIT_US : 0 };
	const struct sigaction interruption = { .sa_handler = interrupt }; /* no SA_RESTART */

	sigaction(SIGALRM, &interruption, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){ interval, interval }, NULL);
}

void listener_close(struct listener *listener)
{
	if (listener->path && is_at(listener->path, &listener->status))
		unlink(listener->path);
	listener_limit_waits(true); /* for those that were not accepted */
	close(listener->fd);
	listener_limit_waits(false);
	unlock_path(listener);
}
