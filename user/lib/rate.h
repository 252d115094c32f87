/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_RATE_H
#define PROFIL_LIB_RATE_H

#include <stdbool.h>

/*
 * Sets *hz to the ticks per second of CPU time: PROFIL_HZ, or else 100 (1000 if `fast`). Returns 0,
 * or -EINVAL with profil__error() set if PROFIL_HZ is invalid.
 */
int profil__rate(bool fast, unsigned int *hz);

/* Whether a rate is in range; `name` is for the message. Returns 0 or -EINVAL. */
int profil__rate_check(unsigned long hz, const char *name);

#endif
