/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_KEEPER_H
#define PROFIL_DAEMON_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "archive/archive.h"
#include "daemon/continuous_options.h"
#include "daemon/state.h"

/*
 * A process without privileges that has to do with the disk: it alone has the archive open. It
 * writes windows and the DCPI database, merges and removes old files, sends new ones, and publishes
 * the state. The recorder never waits for it. What it is to write waits in the recorder's memory
 * until it has answered; over KEEPER_WAITING_BYTES the oldest windows are lost.
 *
 * One that does not answer is ended. It may not end before its disk answers. Until then another one
 * publishes the metrics, and does not touch the archive, which the first has locked.
 */
/*
 * Bound: machine: bytes of windows that wait to be written; then: the oldest are lost; again: when
 * the disk answers; share: none: user_share_limit() has shared each window; seen: windows_waiting,
 * windows_lost, --status, and the log.
 */
#define KEEPER_WAITING_BYTES ((uint64_t)32 << 20)
/* Bound: as KEEPER_WAITING_BYTES. */
#define KEEPER_WAITING_MAX 1000

struct keeper_item; /* a window, or a trigger, that waits to be written */

struct keeper {
	/* The caller's, set before keeper_start() */
	const struct continuous_options *o;
	const char *host;
	struct state *state;

	pid_t pid;	 /* 0: there is none */
	int socket;	 /* to it; when the recorder shuts it, the keeper ends */
	bool metrics;	 /* it publishes the metrics alone */
	bool opened;	 /* it has the archive open, and takes work */
	bool ending;	 /* it takes no more, and ends */
	bool sent;	 /* the first item is its work */
	bool due;	 /* another one is to be started */
	pid_t stuck;	 /* one before it, which was killed, and is still there; 0: there is none */
	uint64_t cpu_ns; /* CPU time that it had taken when it was looked at last */
	uint64_t next_look_ns;
	unsigned int silent_s; /* how many looks ago it had taken less */
	uint64_t away_ns;      /* since when none has answered; 0: one does */
	struct keeper_item *items;
	size_t count, room;
	uint64_t bytes; /* of the windows */
};

/* Starts the process, and waits until it has opened the archive. Returns 0 or -errno with e set. */
int keeper_start(struct keeper *k, struct error *e);

/*
 * Has it write a window that archive_encode() has made; takes fd. Never waits, as all of the
 * following but keeper_stop().
 */
void keeper_write_window(struct keeper *k, int fd, uint64_t time_ns, uint64_t samples);

/*
 * Has it write a trigger's file, after the windows before. The text stays the caller's, and must
 * have been there when the keeper started.
 */
void keeper_write_trigger(struct keeper *k, const struct archive_trigger *trigger);

/* To be called again and again: takes its answers, gives it work, and starts another if need be. */
void keeper_step(struct keeper *k);

/* After SIGCHLD: takes note of its end. */
void keeper_wait(struct keeper *k);

/* Has it end in order; then another one starts, which reads all files again. */
void keeper_restart(struct keeper *k);

/* Has it write what waits, and end; ends it if it does not answer, and counts what is lost. */
void keeper_stop(struct keeper *k);

#endif
