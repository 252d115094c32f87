/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_BACKEND_H
#define PROFIL_LIB_BACKEND_H

#include <stdbool.h>

struct profil_session;

/* One way to count. What returns int returns 0 or a negative errno with profil__error() set. */
struct backend {
	const char *name;
	/* It counts in memory of the process itself, and is not called in the live thread. */
	bool direct;
	/* A forked child goes on by itself, with its copy of what start made. */
	bool inherited;
	/*
	 * It does not take each session, as it has one at a time: start returns -EBUSY for another,
	 * and the next back end is to be asked.
	 */
	bool single;
	unsigned int hz; /* its only rate; 0: about any; one that is not exact sets period_ns */
	/* Loads what it needs, before the lock is taken: the loader has one as well. May be NULL.
	 */
	void (*prepare)(void);
	/*
	 * Begins to count for a session: sets its state and cells, unless it is direct, and its fd
	 * and handle as it likes. Unless it is inherited, a forked child does not have that memory
	 * (MADV_DONTFORK).
	 */
	int (*start)(struct profil_session *s);
	/* Whether it still counts; NULL: it always does. */
	bool (*lives)(const struct profil_session *s);
	/* Brings the session's counts up to date; NULL: it is done from state and cells. */
	void (*fold)(struct profil_session *s);
	/* Takes what a forked child does not find in its copy; may be NULL. */
	void (*before_fork)(struct profil_session *s);
	/* In both processes, once no session needs what the first of these took; may be NULL. */
	void (*after_fork)(void);
	/* Ends it: the counts do not change any more. */
	void (*stop)(struct profil_session *s);
	/* Lets go of what start made, state and cells; NULL: there are none. */
	void (*release)(struct profil_session *s);
};

extern const struct backend profil__backend_kmod;
extern const struct backend profil__backend_daemon;
/* These are not in a static program, which cannot load what they need. */
extern const struct backend profil__backend_bpf __attribute__((weak));
extern const struct backend profil__backend_libc __attribute__((weak));

/* Loads what the choice of a back end may need, without the lock; errno stays as it is. `other`:
 * for another process. */
void profil__backend_prepare(bool other);

/*
 * Begins to count by the back end that was chosen. The first time that is the first one that can,
 * or the one that PROFIL_BACKEND names. A session that the one chosen does not take, or cannot any
 * more, gets the first of the others that can.
 */
int profil__backend_start(struct profil_session *s);

/* The same for a session that a forked child goes on with. */
int profil__backend_go_on(struct profil_session *s);

/* After fork(2), in both processes. */
void profil__backend_after_fork(void);

/* The name of the one that was chosen, NULL for none. */
const char *profil__backend_name(void);

#endif
