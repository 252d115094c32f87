// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/peer.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/target.h"
#include "util/clock.h"
#include "util/number.h"

/* How long the threads of a process are searched. */
#define MAX_SEARCH_NS (50 * NS_PER_MS)

int peer_open(int socket, struct peer *peer, struct error *e)
{
	struct ucred who;
	socklen_t size = sizeof(who);
	char byte;

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
		return 0;
	close(peer->pidfd);
	return error_set(e, 0, "a request came before profild had accepted the connection");
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
	uint64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + MAX_SEARCH_NS, tid;
	struct dirent *entry;
	pid_t found = 0;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return 0;
	while (!found && clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns && (entry = readdir(tasks)))
		if (number_parse(entry->d_name, 1, INT32_MAX, &tid) == 0 && fits(pid, tid, context))
			found = tid;
	closedir(tasks);
	return found;
}

/* The files in /proc/PID, unlike the directory itself, belong to root if the process is closed. */
static bool belongs_to(pid_t pid, pid_t tid, const void *uid)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	return stat(path, &status) == 0 && status.st_uid == *(const uid_t *)uid;
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
	uint64_t innermost;

	return target_pid_numbers(pid, tid, &innermost) && innermost == *(const uint64_t *)number;
}

int peer_thread(const struct peer *peer, pid_t tid, pid_t *here, struct error *e)
{
	uint64_t number = tid, innermost;

	if (target_pid_numbers(peer->pid, peer->pid, &innermost) > 1)
		*here = find_thread(peer->pid, has_number, &number);
	else
		*here = target_pid_numbers(peer->pid, tid, &innermost) ? tid : 0;
	return *here ? 0 : error_set(e, 0, "process %d has no thread %d", peer->pid, tid);
}
