/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_KMOD_CLOCK_H
#define PROFIL_KMOD_CLOCK_H

#include "kmod/rates.h"

/* Puts a rate to use and has the timers tick fast enough for it. Sleeps. */
void clock_add(struct rate *rate);

/* Returns 0 or a negative errno. */
int clock_init(void);

/* No rate may be in use any more. */
void clock_exit(void);

#endif
