/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_PEER_H
#define PROFIL_DAEMON_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#include "util/error.h"

/* The process that made a connection, whatever becomes of its number: user/lib/protocol.h. */
struct peer {
	pid_t pid;
	uid_t uid;
	int pidfd; /* readable when it has ended */
};

/*
 * Who connected. Fails when there is a message already: its sender may have ended since, and
 * another process may have its number. peer->pidfd is the caller's to close.
 */
int peer_open(int socket, struct peer *peer, struct error *e);

/* Whether it has not ended: then peer->pid is its number. */
bool peer_lives(const struct peer *peer);

/*
 * Whether its user may see into it now. It is root's once it has executed a setuid program, one
 * that the user cannot read, or one with file capabilities. 0, or a negative errno with e set.
 */
int peer_check(const struct peer *peer, struct error *e);

/* The number here of a thread that has the number `tid` in the process's own pid namespace. */
int peer_thread(const struct peer *peer, pid_t tid, pid_t *here, struct error *e);

#endif
