/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_CHILD_H
#define PROFIL_UTIL_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A process of ours that does, when it is asked, what may never end or may end badly: opens what a
 * user's file system never answers for, reads what a user wrote. It is asked by messages, which may
 * have descriptors with them. Zero-initialised is none.
 */
struct child {
	pid_t pid; /* 0: none */
	int pid_fd;
	int fd; /* of a SOCK_SEQPACKET socket to it */
};

/* Runs in the child, until receiving fails. fd: its end of the socket. */
typedef void child_service(int fd);

/* With one message. Bound: size. */
#define CHILD_FDS_MAX 4

/*
 * Starts a child, which has nothing open but its socket: if it is left behind, no event, terminal
 * or pipe stays open with it. It is a copy of this process as that was at the first call, when it
 * was small: so a child that is left behind keeps no memory, and one that users take over finds
 * nothing in it. Children end with this process, at the latest when what they wait for ends. name:
 * as ps(1) shows it, a constant of at most 15 bytes. Returns 0 or a negative errno. For one thread.
 */
int child_start(struct child *c, const char *name, child_service *service);

/* With one message: the kernel's limit. Bound: format. */
#define MESSAGE_FDS_MAX 253

/*
 * Sends `size` bytes through any socket, with descriptors, which stay the caller's. flags: 0, or
 * MSG_DONTWAIT. Returns 0 or a negative errno.
 */
int message_send(int fd, const void *message, size_t size, const int *fds, size_t fd_count,
		 int flags);

/* The same to a child, or from it. */
static inline int child_send(int fd, const void *message, size_t size, const int *fds,
			     size_t fd_count)
{
	return message_send(fd, message, size, fds, fd_count, 0);
}

/*
 * Waits for a message until now_ns() is until_ns; UINT64_MAX: without end. Sets fds[0] to
 * fds[CHILD_FDS_MAX - 1] to its descriptors, which the caller then owns, and the rest to -1; fds ==
 * NULL: they are closed. Returns its size, or a negative errno: -ETIMEDOUT; -EPIPE: the other side
 * has ended; -EMSGSIZE: it is longer than `size`.
 */
ssize_t child_receive(int fd, void *message, size_t size, int *fds, uint64_t until_ns);

/* Whether it runs or waits for a CPU, by /proc: not for a file, for memory, or for a signal. */
bool child_is_running(const struct child *c);

/* For how long it has run, and waited for a CPU; 0: unknown. */
uint64_t child_cpu_ns(const struct child *c);

/*
 * Ends the child at once, and waits for nothing: one that waits for a file system may not end
 * before that answers. Returns a descriptor of it, which the caller owns, to ask
 * child_has_ended(); -1: it is gone.
 */
int child_end(struct child *c);
bool child_has_ended(int pid_fd);

/*
 * In a process that the caller has forked itself: it gets this signal when its parent ends, and a
 * name; all signals are blocked; nothing stays open but standard streams and fd, whose number is
 * then 3; -1: none.
 */
void child_enter(const char *name, pid_t parent, int end_signal, int fd);

/*
 * Waits for the end of a process that the caller has forked itself, at most so long, and takes note
 * of it. False: it is still there, as one is that waits for a dead disk.
 */
bool child_reap(pid_t pid, int wait_ms);

/*
 * Those that this process has: writes their PIDs, and returns how many.
 * Bound: machine: children at a time; then: CPU time of a further one is not known; again: when one
 * ends; share: none; seen: not seen.
 */
#define CHILDREN_MAX 8
size_t children_list(pid_t pids[static CHILDREN_MAX]);

/* The CPU time of all that this process has had. */
uint64_t children_cpu_ns(void);

/*
 * Before this process ends: waits for the children, which child_end() has ended, and ends the
 * process that they are copies of. Waits for a second at most.
 */
void children_end(void);

#endif
