/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_PERIOD_H
#define PROFIL_CAPTURE_PERIOD_H

#include <stdint.h>

/*
 * The period of a clock that ticks `frequency` times a second, and is not in step with the
 * scheduler's tick, which comes every tick_ns (0: not known): what that wakes begins right behind
 * it and may always end before the next. It is the nearest to NS_PER_S / frequency, and at most 0.5
 * % from it, whose ticks come in all phases of the scheduler's within a second or 256 of them.
 */
uint64_t period_choose(unsigned int frequency, uint64_t tick_ns);

#endif
