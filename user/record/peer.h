/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_RECORD_PEER_H
#define PROFIL_RECORD_PEER_H

#include "capture/capture.h"
#include "util/index.h"

/*
 * Names of whom threads wait for: the thread that has a lock, the disk, the process at the other
 * end of a pipe or socket, or the address of that, the child. Zero-initialised is empty.
 */
struct peers {
	struct peer_end *ends;
	size_t count, room;
	struct index index;
	struct peer_task *tasks;
	size_t task_count, task_room;
	struct index task_index; /* by TID */
	char **names;		 /* that were given so far */
	size_t name_count, name_room;
	struct index name_index;
};

/* A thread and its process. Names: NULL or "" is unknown. */
struct peer_task {
	pid_t pid, tid;
	const char *comm, *process_comm;
};

/*
 * Notes which process has this end of a connection; and a thread that was recorded, whose names
 * must outlive the peers. Return 0 or -ENOMEM.
 */
int peers_note(struct peers *peers, const struct wait_peer *peer,
	       const struct capture_sample *wait);
int peers_note_task(struct peers *peers, const struct peer_task *task);

#define PEER_NAME_SIZE 80

/*
 * Bound: users: different names of one recording whom waits were for; then: further ones are
 * together, as "[others]"; again: never in this recording; share: none; seen: peers_lost.
 */
#define PEERS_MAX 1024

/*
 * When all are noted: writes the name of whom a wait was for. peer: what capture_peer() returned
 * for it; NULL: unknown. waker: the one that waits.whom stands for, as who is at the other end; or
 * NULL. numbers: with its PID or TID. Returns whether it is known.
 */
bool peers_name(const struct peers *peers, const struct wait_peer *peer,
		const struct capture_sample *wait, const struct peer_task *waker, bool numbers,
		char name[static PEER_NAME_SIZE]);

/* Whether the name is one of the first PEERS_MAX. */
bool peers_has_room(struct peers *peers, const char *name);

void peers_free(struct peers *peers);

#endif
