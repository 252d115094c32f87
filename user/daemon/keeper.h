/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_KEEPER_H
#define PROFIL_DAEMON_KEEPER_H

#include <sys/types.h>

#include "archive/archive.h"
#include "daemon/continuous_options.h"
#include "daemon/state.h"

/*
 * A process without privileges that looks after the windows that were written: merges and removes
 * old ones, sends new ones, and publishes the state. Recording continues while it waits.
 */
struct keeper {
	pid_t pid;
	int pipe; /* to wake it; when the recorder closes it, the keeper ends */
};

/* Starts the process. Returns 0 or a negative errno with e set. */
int keeper_start(struct keeper *k, const struct continuous_options *o, const char *host,
		 struct state *state, struct error *e);

/* Wakes it: a window was written, or could not be. Never waits. */
void keeper_wake(const struct keeper *k);

/*
 * Has it write a trigger's file, when the windows are written that have these seconds. The text
 * stays the caller's, and must have been there when the keeper started. Never waits. Returns 0 or
 * -errno.
 */
int keeper_write_trigger(const struct keeper *k, const struct archive_trigger *trigger);

/* Has it finish what it does; ends it if that takes long. */
void keeper_stop(struct keeper *k);

#endif
