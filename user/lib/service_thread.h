/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The library's one thread, which runs while sessions are on whose back end is not direct,
 * after that as long as a back end keeps something open for the next session, and always if the
 * program has signal handlers. It brings the counts to the caller's buffers and
 * checks that the back ends still count. It has a descriptor table of its own with the back ends'
 * descriptors, so that the program does not see them, cannot close them, and forked children do not
 * inherit them: all that uses these descriptors runs here.
 *
 * All functions are to be called with the lock held, but those about the program's threads.
 */
#ifndef PROFIL_LIB_SERVICE_THREAD_H
#define PROFIL_LIB_SERVICE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct profil_session;

/* The one lock of all state of the library. Threads of the program take it by profil__enter(). */
extern pthread_mutex_t profil__lock;

/* The state of the sessions at a look. */
struct look {
	bool any;	/* a session needs the thread */
	bool kept;	/* a back end has something open for a later session */
	bool soon;	/* counts go to a buffer: look again soon as long as there are ticks */
	uint64_t ticks; /* changes when there were ticks */
};

/* Called by the thread with the lock held. */
struct service_duty {
	struct look (*look)(void); /* updates and checks all sessions; called periodically */
	void (*stop)(void);	   /* stops all sessions: the program has ended */
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

/* --- The program's threads --- */

/* Whether the first thread has called pthread_exit(3) while others run. */
bool profil__first_thread_ended(void);

/*
 * The state of the first thread, which it reports itself: asking the kernel takes a system call
 * that a seccomp(2) filter may forbid to the program's threads.
 */
enum first_thread {
	FIRST_THREAD_UNWATCHED, /* it does not report; the kernel must be asked */
	FIRST_THREAD_RUNS,
	FIRST_THREAD_ENDS,
};
void profil__set_first_thread(enum first_thread first);

/*
 * Whether all threads of the program have ended: a process ends with its last thread, but the
 * library's would run forever. `own` is how many threads of the library run. The first thread stays
 * in /proc until the process ends, even if it has ended itself. Without /proc, the program is taken
 * to end with its first thread.
 */
bool profil__program_ended(unsigned int own);

#endif
