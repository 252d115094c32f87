/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Sessions: make, start, stop, totals, fork. To be called with the lock held. */
#ifndef PROFIL_LIB_SESSIONS_H
#define PROFIL_LIB_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>

struct profil_session;
struct profil_sum;
struct region;

/*
 * Makes a session that is off. *session is the caller's, to profil__session_free(). Returns 0 or a
 * negative errno with profil__error() set.
 */
int profil__session_make(struct profil_session **session, const struct region *regions,
			 size_t count, bool wide);

/* The session must be off. */
void profil__session_free(struct profil_session *s);

/*
 * Starts to count, by the process's back end, which the first call chooses. Returns 0 or a negative
 * errno with profil__error() set.
 */
int profil__session_start(struct profil_session *s);

/* Stops counting if the session is on. Then all its counts are in its buffers or s->counts. */
void profil__session_stop(struct profil_session *s);

/*
 * Brings the counts in s->counts or in the caller's buffers up to date. Returns 0, or -EFAULT when
 * a buffer cannot be written.
 */
int profil__session_update(struct profil_session *s);

/* Sees whether the other process that a session is about has ended or executed a program. */
void profil__session_look_at_target(struct profil_session *s);

/*
 * Brings s->cpu_ns up to date, and while no back end counts also s->latest_lost: the ticks that are
 * due.
 */
void profil__session_account(struct profil_session *s);

/* --- All sessions that are on --- */

/* Whether there are any. May be called without the lock, when the answer may be outdated. */
bool profil__sessions_any(void);

/* Brings the counts of all sessions up to date that are still in the kernel's memory. */
void profil__sessions_update(void);

/* The same, and prepares what a forked child needs. after_fork: in both processes. */
void profil__sessions_before_fork(void);
void profil__sessions_after_fork(void);

void profil__sessions_stop(void);

/* The same at the end of the process, where a seccomp(2) filter may forbid much. */
void profil__sessions_end(void);

/*
 * What sessions of this process have counted that were on and are not any more. Without the lock,
 * when all are off.
 */
const struct profil_sum *profil__sessions_sum(void);

/*
 * Ends the service thread, and with it what back ends keep open for the next session; unless a
 * session needs the thread, or a signal handler may.
 */
void profil__sessions_end_idle_thread(void);

/* In a forked child: the sessions about the process itself continue, the others are off. */
void profil__sessions_forked(void);

/*
 * In a child that was made without fork handlers: sessions are off, but for those whose back end is
 * inherited.
 */
void profil__sessions_forget(void);

#endif
