/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The library's one thread, which runs while sessions are on whose back end is not direct,
 * after that as long as a back end keeps something open for the next session, and always if the
 * program has signal handlers. It brings the counts to the caller's buffers and
 * checks that the back ends still count. It has a descriptor table of its own with the back ends'
 * descriptors, so that the program does not see them, cannot close them, and forked children do not
 * inherit them: all that uses these descriptors runs here.
 *
 * All functions are to be called with the lock held.
 */
#ifndef PROFIL_LIB_SERVICE_THREAD_H
#define PROFIL_LIB_SERVICE_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct profil_session;

/* What the thread finds when it looks after the sessions. */
struct look {
	bool any;	/* a session needs the thread */
	bool kept;	/* a back end has something open for a later session */
	bool soon;	/* counts go to a buffer: look again soon as long as there are ticks */
	uint64_t ticks; /* changes when there were ticks */
};

/* What the thread does with the sessions, with the lock held. */
struct service_duty {
	struct look (*look)(void); /* looks after them; called over and over */
	void (*stop)(void);	   /* stops them all: the program has ended */
	void (*end)(void);	   /* the thread is about to end, and its descriptors with it */
};

/* To be called before the thread is first started. */
void profil__service_set_duty(const struct service_duty *duty);

/* Starts the thread unless it runs. Returns 0 or a negative errno with profil__error() set. */
int profil__service_start(void);

/* Ends the thread if it runs. */
void profil__service_end(void);

/*
 * Whether the program has handlers for signals: one of these may turn profiling on again, and
 * cannot create a thread. So the thread is to stay, and is idle.
 */
bool profil__may_be_in_handler(void);

/*
 * Has libc set aside what it allocates for a thread, so that the first call may come in a signal
 * handler. Not in a handler itself.
 */
void profil__service_reserve(void);

/* Runs work(s) in the thread, and returns its result, with its profil__error() set here. */
int profil__service_call(int (*work)(struct profil_session *), struct profil_session *s);

/* In a forked child, which does not have the thread. */
void profil__service_forget(void);

bool profil__service_runs(void);

/* The CPU time that the thread has used. */
uint64_t profil__service_cpu_ns(void);

/* The thread's ID, for back ends, which must not count it. */
pid_t profil__service_tid(void);

#endif
