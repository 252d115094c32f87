/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_SESSION_H
#define PROFIL_LIB_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/bytes.h"
#include "lib/profil.h"
#include "lib/region.h"

/* A histogram: profil()'s own, or one of profil_attach(). All here is done with the lock held. */
struct profil_session {
	struct profil_session *next; /* of those that are on */
	pid_t pid;		     /* 0: this process */
	unsigned int hz;	     /* that was asked for */
	uint64_t period_ns;	     /* that the back end has: of CPU time between two ticks */
	uint64_t start_ns;	     /* when it began to count, since 1970 */
	struct bytes maps;	     /* of another process: what it had mapped then */
	struct plan plan;
	/* The counts, one for each cell, of profil_attach(). NULL: they go to the buffers. */
	uint64_t *counts;
	uint64_t in_range; /* the sum of all that went to counts */
	/* Until maps were let go of, and from these at the last look. */
	uint64_t out_of_range, latest_out_of_range;
	uint64_t lost, latest_lost;

	const struct backend *backend; /* that counts or is to count */
	bool on;		       /* is to count */
	bool attached;		       /* the back end counts */
	bool trial;		       /* only to see whether the back end is there */
	int fd;			       /* the back end's: -1 for none */
	void *handle;		       /* the back end's */
	struct profil_state *state;    /* the kernel's, NULL when there is none */
	uint64_t *cells;	       /* the kernel's */
	uint64_t watch_ns;	       /* when to look after the back end again */
	/* The CPU time while it is on, up to the moment when the process's clock was at cpu_at. */
	uint64_t cpu_ns, cpu_at;
	/* The same, and all ticks, when the back end was last seen to count. */
	uint64_t seen_cpu_ns, seen_ticks;
};

/*
 * Makes a session that is off. *session is the caller's, to profil__session_free(). Returns 0 or a
 * negative errno with profil__error() set, as those do that follow.
 */
int profil__session_make(struct profil_session **session, const struct region *regions,
			 size_t count, bool wide);
void profil__session_free(struct profil_session *s);

/* Begins to count, by the process's back end; the first time that is chosen. */
int profil__session_start(struct profil_session *s);

/* Ends it, if it is on; all counts are where they belong then. */
void profil__session_stop(struct profil_session *s);

/* The time of day, in nanoseconds since 1970. */
uint64_t profil__wall_ns(void);

/* Brings s->cpu_ns up to date, and the ticks that are due to the account if nobody counts. */
void profil__session_account(struct profil_session *s);

/*
 * With the lock: the period of the last profil() or sprofil() that counted, and when that began;
 * the usual one and this moment when none has. Returns 0 or a negative errno.
 */
int profil__latest(uint64_t *period_ns, uint64_t *start_ns);

/* --- All sessions that are on --- */

/* Whether there are any. The lock is not needed, but for an answer that stays right. */
bool profil__sessions_any(void);

/* Brings the counts in buffers up to date, and those of sessions that are in the kernel's memory.
 */
void profil__sessions_fold(void);

/* The same, and what else a forked child is to have; and what that took is given back. */
void profil__sessions_before_fork(void);
void profil__sessions_after_fork(void);

/* Ends them all. */
void profil__sessions_stop(void);

/* In a forked child: goes on with the sessions about itself. */
void profil__sessions_forked(void);

/* In a child that was made without fork handlers: they are off, but for those that the back end has
 * on there by itself. */
void profil__sessions_forget(void);

/* What the live thread has to know. */
struct look {
	bool any;	/* there is a session */
	bool soon;	/* counts go to a buffer: look as long as there are ticks */
	uint64_t ticks; /* changes when there were ticks */
};

/* What is to be done all the time, in the live thread. */
struct look profil__sessions_look(void);

#endif
