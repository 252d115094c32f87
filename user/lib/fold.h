/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_FOLD_H
#define PROFIL_LIB_FOLD_H

#include <stdbool.h>

struct profil_session;

/*
 * Moves the counts from the cells that are shared with the kernel to the caller's buffers (modulo
 * the width of their cells) or to the session's counts. Returns 0, or -EFAULT when a buffer cannot
 * be written.
 */
int profil__fold(struct profil_session *s);

/* Whether there are counts to move. */
bool profil__fold_pending(const struct profil_session *s);

/*
 * In the service thread: whether process_vm_readv(2) and process_vm_writev(2) are permitted, if the
 * session's counts go to buffers. Returns 0 or a negative errno with profil__error() set.
 */
int profil__fold_check(struct profil_session *s);

#endif
