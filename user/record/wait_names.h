/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_RECORD_WAIT_NAMES_H
#define PROFIL_RECORD_WAIT_NAMES_H

#include "profile/profile.h"

/*
 * Corrects the state and reason of waits, once functions have names: libraries and runtimes wait
 * for all kinds of things by the same system call, and by their functions it is known for which: a
 * sleeping thread of Java waits for a condition, Go's threads without work sleep on a futex.
 *
 * A wait without a stack, which would have cost too much, is idle if most of the time of such waits
 * was that have one: of the thread's waits for the same reason that the same waker ended; if there
 * are none, of the thread's; of its process's that the waker ended; of its process's. Where there
 * are none either, it is blocked.
 *
 * Also divides the account of wall time again. Returns 0 or -ENOMEM.
 */
int wait_names_apply(struct profile *p);

/* True if a function only waits for others, as a condition variable does: its caller knows more. */
bool wait_names_for_others(const struct profile_function *f);

#endif
