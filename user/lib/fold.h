/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_FOLD_H
#define PROFIL_LIB_FOLD_H

#include <stdbool.h>

struct profil_session;

/*
 * Takes what was counted since the last time out of the kernel's cells, and adds it to the cells of
 * the caller's buffers (modulo their width) or to the session's counts. Returns 0, or -EFAULT when
 * a buffer cannot be written.
 */
int profil__fold(struct profil_session *s);

/* Whether there is anything to take: not before the next tick that is counted in a cell. */
bool profil__fold_pending(const struct profil_session *s);

/* Whether the kernel lets us write to buffers in this way. Returns 0 or a negative errno. */
int profil__fold_check(void);

#endif
