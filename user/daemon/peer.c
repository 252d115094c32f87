// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/peer.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/number.h"

/* How long to look for a thread among those of a process that has many. */
#define MOST_LOOK_NS (50 * NS_PER_MS)

static bool has_spoken(int socket)
{
	char byte;

	return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

int peer_open(int socket, struct peer *peer, struct error *e)
{
	struct ucred who;
	socklen_t size = sizeof(who);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size))
		return error_set(e, errno, "cannot tell who connected");
	if (who.pid == 0)
		return error_set(e, 0,
				 "profild does not see the process: it is in a container, "
				 "and the process is not");
	peer->pid = who.pid;
	peer->uid = who.uid;
	peer->pidfd = syscall(SYS_pidfd_open, who.pid, 0); /* is close-on-exec by itself */
	if (peer->pidfd < 0)
		return error_set(e, errno, "cannot open process %d", who.pid);
	if (!has_spoken(socket))
		return 0;
	close(peer->pidfd);
	return error_set(e, 0, "a request came before profild had accepted the connection");
}

bool peer_lives(const struct peer *peer)
{
	struct pollfd ended = { .fd = peer->pidfd, .events = POLLIN };

	return poll(&ended, 1, 0) == 0;
}

/* /proc/PID itself always is the effective user's; the files in it also tell of exec. */
int peer_check(const struct peer *peer, struct error *e)
{
	struct stat status;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/status", peer->pid);
	err = stat(path, &status) ? errno : 0;
	if (!peer_lives(peer))
		return error_set(e, ESRCH, "cannot profile process %d", peer->pid);
	if (err)
		return error_set(e, err, "cannot tell whose process %d is", peer->pid);
	if (status.st_uid == peer->uid)
		return 0;
	error_set(e, 0,
		  "process %d is closed to its user: it runs a setuid program, or has made "
		  "itself undumpable",
		  peer->pid);
	return -EPERM;
}

/* The numbers of a thread from our namespace to its own: how many, and the last. */
static size_t read_numbers(pid_t pid, pid_t tid, uint64_t *innermost)
{
	char path[64], line[512], *rest, *word;
	size_t count = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	status = fopen(path, "re");
	if (!status)
		return 0;
	while (!count && fgets(line, sizeof(line), status)) {
		if (strncmp(line, "NSpid:", strlen("NSpid:")) != 0)
			continue;
		rest = line + strlen("NSpid:");
		while ((word = strsep(&rest, "\t\n")))
			count += number_parse(word, 1, INT32_MAX, innermost) == 0;
	}
	fclose(status);
	return count;
}

static int find_thread(const struct peer *peer, pid_t tid, pid_t *here)
{
	uint64_t end_ns = now_ns() + MOST_LOOK_NS, number, innermost = 0;
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", peer->pid);
	tasks = opendir(path);
	if (!tasks)
		return -errno;
	*here = 0;
	while (!*here && now_ns() < end_ns && (entry = readdir(tasks)))
		if (number_parse(entry->d_name, 1, INT32_MAX, &number) == 0 &&
		    read_numbers(peer->pid, number, &innermost) && innermost == (uint64_t)tid)
			*here = number;
	closedir(tasks);
	return *here ? 0 : -ESRCH;
}

int peer_thread(const struct peer *peer, pid_t tid, pid_t *here, struct error *e)
{
	uint64_t innermost;
	int err;

	if (read_numbers(peer->pid, peer->pid, &innermost) > 1) {
		err = find_thread(peer, tid, here);
	} else {
		*here = tid;
		err = read_numbers(peer->pid, tid, &innermost) ? 0 : -ESRCH;
	}
	return err ? error_set(e, 0, "process %d has no thread %d", peer->pid, tid) : 0;
}
