/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_TICK_COST_H
#define PROFIL_CAPTURE_TICK_COST_H

#include <stdint.h>

/*
 * What one tick of a timer perf event costs on this machine without any program on it, in ns:
 * the gaps that it tears into a loop that reads the clock. Spins for 3 ms, on a busy machine 30.
 * 0: could not be measured.
 */
uint64_t cost_of_interrupt(void);

#endif
