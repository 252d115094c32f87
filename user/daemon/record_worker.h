/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_RECORD_WORKER_H
#define PROFIL_DAEMON_RECORD_WORKER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/* What users may have recorded. */
struct record_limits {
	size_t recordings;	/* of one user at once, */
	size_t all;		/* and of all users */
	size_t starts;		/* of one user in a minute */
	unsigned int frequency; /* the most ticks per second of CPU time, in one recording */
	uint64_t duration_ns;
	size_t memory; /* bytes of address space of the process that records */
};

/* Refuses a connection, or reports a failure. Never waits. */
void record_refuse(int socket, int code, const struct error *e);

/*
 * Makes one recording for the client of an accepted connection, in a process of its own, which
 * becomes the client's user and ends with it, or with `parent`, which has forked it. Returns the
 * exit status.
 */
int record_worker_run(int socket, const struct record_limits *limits, pid_t parent);

#endif
