/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_PERIOD_H
#define PROFIL_CAPTURE_PERIOD_H

#include <stdint.h>

/*
 * Returns the period of a clock with `frequency` ticks a second that is not in step with the
 * scheduler's tick, whose period is tick_ns (0: unknown): a task that the scheduler's tick wakes
 * runs right after it and may always be done before the next, so a clock in step would never meet
 * it. It is the period nearest to NS_PER_S / frequency, at most 0.5 % off, whose ticks meet all
 * phases of the scheduler's period within a second or 256 ticks, whichever is longer.
 */
uint64_t period_choose(unsigned int frequency, uint64_t tick_ns);

#endif
