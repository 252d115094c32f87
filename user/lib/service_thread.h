/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_SERVICE_THREAD_H
#define PROFIL_LIB_SERVICE_THREAD_H

#include <stdbool.h>
#include <sys/types.h>

struct profil_session;

/*
 * The one thread of the library. While a session is on, it brings the counts to the caller's
 * buffers and looks after new threads of the program. It has a table of descriptors of its own, in
 * which the back ends have theirs: a program neither sees nor closes them, nor does a forked child
 * inherit them. So what has to do with them is done here.
 */

/*
 * Starts the thread if there is none, with the lock held. Returns 0 or a negative errno.
 */
int profil__live_begin(void);

/* Ends it, with the lock held, if it is there. */
void profil__live_end(void);

/* Has the thread do it, with the lock held; what it returns, and its profil__error(), are here. */
int profil__live_call(int (*work)(struct profil_session *), struct profil_session *s);

/* In a forked child: there is no such thread. */
void profil__live_forget(void);

/* Whether it is there. With the lock held. */
bool profil__live_runs(void);

/* The CPU time that it has used. */
unsigned long long profil__live_cpu_ns(void);

/* Its number, for back ends, which must not count it. */
pid_t profil__live_tid(void);

/* CLOCK_MONOTONIC in nanoseconds. */
unsigned long long profil__now_ns(void);

#endif
