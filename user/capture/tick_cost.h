/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_TICK_COST_H
#define PROFIL_CAPTURE_TICK_COST_H

#include <stdint.h>

/*
 * Measures the cost of a tick of a timer perf event without a program, in ns: by the gaps that it
 * causes in a loop that reads the clock. Takes 3 ms, up to 30 ms on a busy machine. Returns 0 if it
 * cannot be measured.
 */
uint64_t cost_of_interrupt(void);

#endif
