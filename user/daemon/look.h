/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_LOOK_H
#define PROFIL_DAEMON_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/continuous_options.h"
#include "daemon/state.h"

/*
 * profild --continuous --watch: looks now and then in the archive for services that cost more, or
 * less, since a deploy, as profiltool changes does. Each look is a process of its own, without
 * privileges, at the least priority, with limits of time and memory. What it
 * finds is logged, counted, and kept as two files. What was reported is in a file of the archive,
 * lest the next look reports it again. Recording continues whatever happens to it.
 */
struct look {
	pid_t pid;	  /* of the process; 0: none looks */
	uint64_t next_ns; /* when the next one is due, as now_ns() */
	uint64_t end_ns;  /* when this one has taken too long */
	/* Bound: state. */
	bool late; /* it was ended for that */
};

/* Finds out when the first look is due: a profild that starts again and again looks no more often.
 */
void look_begin(struct look *l, const struct continuous_options *o, const char *host);

/* Starts a look if it is due, and ends one that takes too long. Never waits. */
void look_if_due(struct look *l, const struct continuous_options *o, const char *host,
		 struct state *state);

/* Takes note of its end, if it has ended: logs why, if it failed. */
void look_wait(struct look *l, struct state *state);

/* Ends it at once. */
void look_stop(struct look *l);

#endif
