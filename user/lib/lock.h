/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The one lock of all state of the library. Threads of the program take it by profil__enter(). */
#ifndef PROFIL_LIB_LOCK_H
#define PROFIL_LIB_LOCK_H

#include <stdbool.h>

void profil__lock(void);
bool profil__try_lock(void);
void profil__unlock(void);

/* In a child without fork handlers, whose copy another thread of the parent may have locked. */
void profil__lock_reset(void);

#endif
