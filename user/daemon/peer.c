// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/proc.h"

/*
 * How long the threads of a process are searched.
 * Bound: users: CPU time for finding a client's thread among those of its process; then: the
 * request is refused; again: at the next request; share: the client's own; seen: in the client's
 * error, and profild's log.
 */
#define MAX_SEARCH_NS (50 * NS_PER_MS)

/* A person that is a user namespace: its inode, above all user IDs. */
#define PERSON_NAMESPACE (UINT64_C(1) << 32)

/* Sets peer->person. Returns 0, or a negative errno with e set: the process has ended. */
static int find_person(struct peer *peer, struct error *e)
{
	struct stat own, status;
	const struct proc_path path = proc_path(peer->pid, 0, "ns/user");
	int at = open(path.text, O_RDONLY | O_CLOEXEC), parent;
	uid_t owner;

	peer->person = peer->uid;
	if (at < 0)
		/* A security module may forbid it. */
		return errno == EACCES || errno == EPERM ? 0 : error_set(e, errno, "%s", path.text);
	/* The outermost one below ours: who may make namespaces in it is one person, too. */
	if (fstat(at, &status) || stat("/proc/self/ns/user", &own) || status.st_ino == own.st_ino)
		goto out;
	for (;;) {
		struct stat next;

		parent = ioctl(at, NS_GET_PARENT);
		if (parent < 0) /* it is not below ours */
			goto out;
		if (fstat(parent, &next) || next.st_ino == own.st_ino)
			break;
		status = next;
		close(at);
		at = parent;
	}
	close(parent);
	if (ioctl(at, NS_GET_OWNER_UID, &owner) == 0)
		peer->person = owner ? owner : PERSON_NAMESPACE | status.st_ino;
out:
	close(at);
	return 0;
}

uid_t peer_person_uid(const struct peer *peer)
{
	return peer->person < PERSON_NAMESPACE ? peer->person : peer->uid;
}

int peer_open(int socket, struct peer *peer, struct error *e)
{
	struct ucred who;
	socklen_t size = sizeof(who);
	char byte;
	int err;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size))
		return error_set(e, errno, "cannot get the credentials of the client");
	if (who.pid == 0)
		return error_set(e, 0,
				 "profild cannot see the process: profild is in a container, "
				 "and the process is not");
	peer->pid = who.pid;
	peer->uid = who.uid;
	peer->pidfd = syscall(SYS_pidfd_open, who.pid, 0); /* always close-on-exec */
	if (peer->pidfd < 0)
		return error_set(e, errno, "cannot open process %d", who.pid);
	/* Receives a message: closing a socket with an unread one would lose the reply. */
	if (recv(socket, &byte, 1, MSG_DONTWAIT) < 0)
		err = find_person(peer, e);
	else
		err = error_set(e, 0, "a request came before profild had accepted the connection");
	if (!err && !peer_is_alive(peer)) /* what was read may be another process's */
		err = error_set(e, ESRCH, "process %d", peer->pid);
	if (err)
		close(peer->pidfd);
	return err;
}

bool peer_is_alive(const struct peer *peer)
{
	struct pollfd ended = { .fd = peer->pidfd, .events = POLLIN };

	return poll(&ended, 1, 0) == 0;
}

/* Returns the first thread of a process for which fits() holds, or 0. */
static pid_t find_thread(pid_t pid, bool (*fits)(pid_t pid, pid_t tid, const void *context),
			 const void *context)
{
	/* CPU time: a busy machine must not make it give up before it has looked at a thread. */
	uint64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + MAX_SEARCH_NS;
	DIR *tasks = opendir(proc_path(pid, 0, "task").text);
	pid_t found = 0, tid;

	if (!tasks)
		return 0;
	while (!found && clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns && (tid = proc_next(tasks)))
		if (fits(pid, tid, context))
			found = tid;
	closedir(tasks);
	return found;
}

/* The files in /proc/PID, unlike the directory itself, belong to root if the process is closed. */
static bool belongs_to(pid_t pid, pid_t tid, const void *uid)
{
	struct stat status;

	return stat(proc_path(pid, tid, "status").text, &status) == 0 &&
	       status.st_uid == *(const uid_t *)uid;
}

int peer_check_access(const struct peer *peer, struct error *e)
{
	/* Any thread: the files of one that has ended, as the first may have, belong to root. */
	bool open = find_thread(peer->pid, belongs_to, &peer->uid);

	if (!peer_is_alive(peer))
		return error_set(e, ESRCH, "cannot profile process %d", peer->pid);
	if (open)
		return 0;
	error_set(e, 0,
		  "process %d is closed to its user: it runs a setuid program, or has made itself "
		  "undumpable",
		  peer->pid);
	return -EPERM;
}

static bool has_number(pid_t pid, pid_t tid, const void *number)
{
	struct proc_status status;

	return proc_read_status(AT_FDCWD, proc_path(pid, tid, "status").text, &status) == 0 &&
	       status.own_pid == *(const pid_t *)number;
}

int peer_thread(const struct peer *peer, pid_t tid, pid_t *here, struct error *e)
{
	struct proc_status status;

	proc_read_status(AT_FDCWD, proc_path(peer->pid, peer->pid, "status").text, &status);
	if (status.pid_count > 1)
		*here = find_thread(peer->pid, has_number, &tid);
	else
		*here = has_number(peer->pid, tid, &tid) ? tid : 0;
	return *here ? 0 : error_set(e, 0, "process %d has no thread %d", peer->pid, tid);
}
