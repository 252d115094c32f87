/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_BACKEND_H
#define PROFIL_LIB_BACKEND_H

#include <stdbool.h>

struct profil_session;

/* One way to count. What returns int returns 0 or a negative errno with profil__error() set. */
struct backend {
	const char *name;
	/* It counts into the caller's buffer itself, and is not called in the live thread. */
	bool direct;
	unsigned int hz; /* its only rate; 0: it takes any */
	/* Loads what it needs, before the lock is taken: the loader has one as well. May be NULL.
	 */
	void (*prepare)(void);
	/*
	 * Begins to count for a session: sets its state and cells, unless it is direct, and its fd
	 * and handle as it likes. A forked child does not inherit that memory (MADV_DONTFORK).
	 */
	int (*start)(struct profil_session *s);
	/* Whether it still counts; NULL: it always does. */
	bool (*lives)(const struct profil_session *s);
	/* Looks for threads that came since; may be NULL. */
	int (*rescan)(struct profil_session *s);
	/* Ends it: the counts do not change any more. */
	void (*stop)(struct profil_session *s);
	/* Lets go of state and cells; NULL: there are none. */
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
 * or the one that PROFIL_BACKEND names.
 */
int profil__backend_start(struct profil_session *s);

/* The name of the one that was chosen, NULL for none. */
const char *profil__backend_name(void);

#endif
