/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_RECORD_PEER_H
#define PROFIL_RECORD_PEER_H

#include "capture/capture.h"
#include "util/index.h"

/*
 * Names of who is at the other end of sockets on which threads wait: the process, if it is on this
 * machine and was recorded, or has a unix socket; else its address. Zero-initialised is empty.
 */
struct peers {
	struct peer_end *ends;
	size_t count, room;
	struct index index;
};

/* Notes which process has this end of a connection. Returns 0 or -ENOMEM. */
int peers_note(struct peers *peers, const struct wait_peer *peer,
	       const struct capture_sample *wait);

#define PEER_NAME_SIZE 80

/* When all are noted: writes the name of the other end. */
void peers_name(const struct peers *peers, const struct wait_peer *peer,
		const struct capture_sample *wait, char name[static PEER_NAME_SIZE]);

void peers_free(struct peers *peers);

#endif
