/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_KMOD_COUNT_TICK_H
#define PROFIL_KMOD_COUNT_TICK_H

#include <linux/types.h>

/*
 * Counts a timer interrupt for the current task, if its process is profiled. `now` is the time of
 * this CPU, in ns, `before` that of its last interrupt; both include `phase`. Interrupt context.
 * Returns whether it is profiled.
 */
bool count_tick(u64 before, u64 now, u64 phase);

#endif
