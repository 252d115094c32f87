/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_LISTENER_H
#define PROFIL_DAEMON_LISTENER_H

#include <sys/stat.h>
#include <sys/un.h>

#include "util/error.h"

/* The socket that clients connect to. */
struct listener {
	int fd;
	const char *path;   /* NULL: it was made by who started us */
	struct stat status; /* of the path, to know it again */
	int lock;	    /* -1: there is none */
	char lock_path[sizeof(((struct sockaddr_un *)NULL)->sun_path) + sizeof(".lock")];
};

/*
 * Listens on a socket that was passed on by systemd (sd_listen_fds(3)), if there is one, else on
 * `path`, open to everybody. A socket that nobody listens on any more is replaced. PATH.lock is
 * locked meanwhile, so that of several who do that at once one alone does.
 */
int listener_open(struct listener *listener, const char *path, struct error *e);

/*
 * Whoever sends descriptors to this socket, or to one that is accepted from it, gets EPERM: to
 * close them can take long. Kernels before 6.16 cannot do that. What was connected before is not
 * affected.
 */
void listener_refuse_descriptors(int socket);

/* Removes the path, too, if it is still the one that was made, and the lock. */
void listener_close(struct listener *listener);

#endif
