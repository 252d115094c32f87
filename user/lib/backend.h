/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_BACKEND_H
#define PROFIL_LIB_BACKEND_H

#include <stdbool.h>

struct profil_session;

/*
 * One way to count. Functions that return int return 0 or a negative errno with profil__error()
 * set. All but prepare and after_fork are called with the lock held.
 */
struct backend {
	const char *name;
	/* Needs no service thread: it is called in the program's threads. */
	bool direct;
	/* Continues by itself in a forked child, with the child's copy of what start made. */
	bool inherited;
	/*
	 * Counts for one session at a time: start returns -EBUSY for a second one, which then gets
	 * the next back end.
	 */
	bool single;
	/* Its only rate; 0: it has many. If the rate is not exact, start sets s->counting.tick_ns.
	 */
	unsigned int hz;
	/*
	 * Loads libraries; without the lock, as the dynamic loader has its own. A signal handler
	 * may call it again: then it loads only libraries that could not be used before. May be
	 * NULL.
	 */
	void (*prepare)(void);
	/*
	 * Starts to count for a session. Sets its state and cells, unless the back end is direct;
	 * fd and handle are the back end's own. Memory of a back end that is not inherited must be
	 * MADV_DONTFORK.
	 */
	int (*start)(struct profil_session *s);
	/* Whether the back end still counts. NULL: it always does. */
	bool (*is_alive)(const struct profil_session *s);
	/*
	 * Whether the other process that the session is about still runs its program. NULL: the
	 * back end counts for this process only. In the service thread.
	 */
	bool (*has_target)(const struct profil_session *s);
	/* Brings s->counts and the totals up to date. NULL: profil__fold() does. */
	void (*update)(struct profil_session *s);
	/* Prepares what a forked child needs beside its copy of the memory; may be NULL. */
	void (*before_fork)(struct profil_session *s);
	/* In parent and child: releases what before_fork acquired; may be NULL. */
	void (*after_fork)(void);
	/*
	 * Whether the calling thread may use it, which can have given up privileges that the
	 * service thread still has. NULL: start finds out.
	 */
	int (*check_privileges)(void);
	/*
	 * In the service thread: look, about once a second, releases the resources kept for a later
	 * start that were not used since; release_kept, at the end of the thread, releases all.
	 * NULL: nothing is kept.
	 */
	void (*look)(void);
	void (*release_kept)(void);
	/* Whether something is open: the service thread, which has its descriptors, must stay. */
	bool (*is_open)(void);
	/* Stops counting: state and cells do not change any more. */
	void (*stop)(struct profil_session *s);
	/* Releases what start made, state and cells as well. NULL: start made nothing. */
	void (*release)(struct profil_session *s);
};

extern const struct backend profil__backend_kmod;
extern const struct backend profil__backend_daemon;
/* A static program does not have these, as it cannot load what they need. */
extern const struct backend profil__backend_bpf __attribute__((weak));
extern const struct backend profil__backend_libc __attribute__((weak));

#endif
