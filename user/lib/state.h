/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_STATE_H
#define PROFIL_LIB_STATE_H

#include <signal.h>
#include <stdbool.h>

/*
 * Enters and leaves the library, and what happens at fork and exit.
 *
 * A thread that has entered holds the lock. All its signals are blocked, as a handler that forks or
 * exits would wait for the lock forever, and it cannot be cancelled.
 */
struct guard {
	sigset_t signals;
	int cancel; /* the thread's cancelability */
	int code;   /* errno */
};

/*
 * Returns 0; or, without the lock, -EPERM in a child of vfork(2), where the state is the parent's,
 * or -EDEADLK in a fork handler that runs while the library holds the lock for fork(2).
 */
int profil__enter(struct guard *guard);
/* Restores errno. */
void profil__leave(const struct guard *guard);

/* Whether this is a child of vfork(2), which shares its parent's memory. */
bool profil__is_borrowed(void);

/*
 * Prepares for a call that turns profiling on, of this process or with `other` perhaps of another:
 * loads what the back ends need, and has the counts brought up to date when this thread ends or the
 * process exits, before the handlers that the program registered by atexit(3). The first time in a
 * process, it takes memory and locks of libc and the dynamic loader: so a program that refers to
 * profil() has it called when the library is loaded. To be called without the lock. Not in a child
 * of vfork(2), where it does nothing.
 */
void profil__prepare(bool other);

/* Whether that was ever called. */
bool profil__was_used(void);

/* Brings the counts up to date: an exit handler. */
void profil__update_at_exit(void *unused);

#endif
