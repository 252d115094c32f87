/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_PEER_H
#define PROFIL_DAEMON_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * The process at the other end of a connection, safe against reuse of its PID:
 * user/lib/protocol.h.
 */
struct peer {
	pid_t pid;
	uid_t uid;
	/*
	 * Who answers for it, for limits: the person's user ID. Of a user namespace that a user has
	 * made this is its owner, whichever of the owner's subordinate IDs the process has. One
	 * that root has made, as for a system's container, is a person of its own, above all IDs.
	 */
	uint64_t person;
	int pidfd; /* readable when the process has ended */
};

/*
 * Sets *peer to the process that connected. Returns 0, or a negative errno with e set: for one,
 * when a message has come already, whose sender may have ended, so that the PID may be another
 * process's. The caller has to close peer->pidfd. Takes CAP_SYS_PTRACE.
 */
int peer_open(int socket, struct peer *peer, struct error *e);

/* The user to name for its person. */
uid_t peer_person_uid(const struct peer *peer);

/* Whether it has not ended: then the PID is still its own. */
bool peer_is_alive(const struct peer *peer);

/*
 * Checks that the process is open to its user now: not after it has executed a setuid program, one
 * that the user cannot read, or one with file capabilities, or has made itself undumpable. Returns
 * 0, or a negative errno with e set.
 */
int peer_check_access(const struct peer *peer, struct error *e);

/*
 * Sets *here to the TID in profild's PID namespace of the thread that has `tid` in the process's
 * own. Returns 0, or -EINVAL with e set.
 */
int peer_thread(const struct peer *peer, pid_t tid, pid_t *here, struct error *e);

#endif
