/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_RECORD_WORKER_H
#define PROFIL_DAEMON_RECORD_WORKER_H

#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

struct peer;

/* What users may have recorded. */
struct record_limits {
	size_t recordings;	/* of one user at once: struct peer's person */
	size_t all;		/* of all users at once */
	size_t starts;		/* of one user in a minute */
	unsigned int frequency; /* the most ticks per second of CPU time, in one recording */
	uint64_t duration_ns;
	size_t memory; /* bytes of address space of the process that records */
};

/*
 * From a worker to the server: whether the request has passed all checks, and later why there is no
 * recording. From the server: whether the client has a place among the recordings.
 */
struct record_verdict {
	int err; /* 0, or a negative errno with the reason */
	struct error why;
};

/* Sends the first message to a client. Returns 0, or a negative errno with e set. Never waits. */
int record_greet(int socket, struct error *e);

/* Refuses a connection, or reports a failure. Never waits. */
void record_refuse(int socket, int code, const struct error *e);

/*
 * Makes one recording for the client of a connection on which a request has come, in a process of
 * its own, which becomes the client's user. `server` is a SOCK_SEQPACKET socket for struct
 * record_verdict: when the request has passed all checks, the worker asks for a place. When the
 * other end is closed, the recording ends without a result.
 *
 * The worker's user may stop it. So the kernel kills it, by a timer, when it has neither a place in
 * ten seconds, nor ended a minute after the longest recording: the server lacks the right to.
 * Returns the exit status.
 */
int record_worker_run(int socket, int server, const struct peer *peer,
		      const struct record_limits *limits);

#endif
