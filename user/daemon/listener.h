/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_LISTENER_H
#define PROFIL_DAEMON_LISTENER_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "util/error.h"

/* The socket that clients connect to. */
struct listener {
	int fd;
	const char *path;   /* NULL: systemd has made the socket */
	struct stat status; /* of the path, to recognize it */
	int lock;	    /* descriptor; -1: not locked */
	char lock_path[sizeof(((struct sockaddr_un *)NULL)->sun_path) + sizeof(".lock")];
};

/*
 * Listens on the socket that systemd passed (sd_listen_fds(3)), or without one on `path`, open to
 * all users; then a stale socket is replaced, and PATH.lock is locked until listener_close(), so
 * that only one process serves the path. The path stays the caller's and must outlive the listener.
 * Returns 0, or a negative errno with e set.
 */
int listener_open(struct listener *listener, const char *path, struct error *e);

/*
 * Off: makes the kernel refuse descriptors that are sent to this socket, or to one that is accepted
 * from it later: closing them can take long. On: takes them again, on a connection that a process
 * of its own serves. Does nothing before Linux 6.16.
 */
void listener_take_descriptors(int socket, int on);

/*
 * Has waits in the kernel interrupted all the time (EINTR), so that no client can make profild wait
 * longer than 100 ms: for an exec(2) that does not end, or for a descriptor that lingers when its
 * last owner closes it, or the connection on which it is. Children are not interrupted.
 */
void listener_limit_waits(bool on);

/* Closes the socket, and removes its path, if it is still the same file, and the lock. */
void listener_close(struct listener *listener);

#endif
