/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Which back end counts for a session. */
#ifndef PROFIL_LIB_BACKENDS_H
#define PROFIL_LIB_BACKENDS_H

#include <stdbool.h>

struct profil_session;

/*
 * Prepares the back ends that may be chosen, or with `other` those that count for other processes.
 * To be called without the lock, and not in a child of vfork(2). Leaves errno as it is.
 */
void profil__backends_prepare(bool other);

/*
 * Starts to count by the process's back end. The first call chooses it: the first one that works,
 * or the one that PROFIL_BACKEND names. If the chosen one does not take the session, or does not
 * work any more, the first of the others that works counts. Returns 0 or a negative errno with
 * profil__error() set.
 */
int profil__backends_start(struct profil_session *s);

/* The same for a session that continues in a forked child: its own back end is tried first. */
int profil__backends_restart(struct profil_session *s);

/* In parent and child, after fork(2). */
void profil__backends_after_fork(void);

/*
 * Resources that back ends keep open for a later session: look releases those not used for a while,
 * release_kept all; open returns whether there are any. The first two are for the service thread.
 */
void profil__backends_look(void);
void profil__backends_release_kept(void);
bool profil__backends_open(void);

/* Returns the name of the chosen back end; NULL: none was chosen. */
const char *profil__backends_name(void);

#endif
