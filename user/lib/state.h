/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_STATE_H
#define PROFIL_LIB_STATE_H

#include <signal.h>
#include <stdbool.h>

/*
 * The process that the library's state is about, and the one lock of that state. Who holds the lock
 * has all signals blocked, as a handler that forks or exits would wait for it, and cannot be
 * cancelled.
 */
struct guard {
	sigset_t signals;
	int cancel; /* whether the thread could be cancelled */
	int code;   /* errno */
};

/* Returns 0, or -EPERM in a child of vfork(2), in which the state is the parent's: not locked. */
int profil__enter(struct guard *guard);
/* Sets errno to what it was. */
void profil__leave(const struct guard *guard);

/* The lock alone, for the library's own thread, whose signals are always blocked. */
bool profil__try_lock(void);
void profil__unlock(void);

/* Whether the memory is a parent's: in a child of vfork(2). */
bool profil__is_borrowed(void);

/*
 * Has the counts brought up to date when this thread exits, which it does first in exit(3), before
 * the handlers that the program gave to atexit(3). To be called without the lock: it takes the
 * loader's.
 */
void profil__be_there_at_exit(void);

/* Whether that was ever called. */
bool profil__was_used(void);

/* Brings the counts up to date: a handler for exit. */
void profil__fold_at_exit(void *unused);

#endif
