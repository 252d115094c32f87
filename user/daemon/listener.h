/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_LISTENER_H
#define PROFIL_DAEMON_LISTENER_H

#include <sys/stat.h>

#include "util/error.h"

/* The socket that clients connect to. */
struct listener {
	int fd;
	const char *path;   /* NULL: it was made by who started us */
	struct stat status; /* of the path, to know it again */
};

/*
 * Listens on a socket that was passed on by systemd (sd_listen_fds(3)), if there is one, else on
 * `path`, open to everybody. A socket that nobody listens on any more is replaced.
 */
int listener_open(struct listener *listener, const char *path, struct error *e);

/* Removes the path, too, if it is still the one that was made. */
void listener_close(struct listener *listener);

#endif
