/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_KMOD_CLOCK_H
#define PROFIL_KMOD_CLOCK_H

#include "kmod/rates.h"

/* Puts a rate to use and has the timers that run tick fast enough for it. Sleeps. */
void clock_add(struct rate *rate);

/* Starts the timers of the CPUs where the current process runs, which is profiled now. Sleeps. */
void clock_start(void);

/* Returns 0 or a negative errno. */
int clock_init(void);

/* No rate may be in use any more. */
void clock_exit(void);

#endif
