/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_COST_H
#define PROFIL_REPORT_COST_H

#include <stdbool.h>

#include "profile/profile.h"

/*
 * True if the ticks' interrupts come only for the profile; the scheduler's ticks, and events, come
 * anyway.
 */
bool cost_has_interrupt(const struct profile *p);

/*
 * They store a percentage and return true, or return false when the profile does not hold what it
 * is computed from. They are estimates, because the cost of an interrupt is measured apart.
 */

/* Cost of all ticks with their interrupts, in percent of the target's CPU time. */
bool cost_cpu_percent(const struct profile *p, double *percent);

/* CPU time of the recorder itself meanwhile, in percent of the target's: in addition to that. */
bool cost_own_percent(const struct profile *p, double *percent);

/*
 * Cost of all interrupts of the clock, also those that hit other processes, of the BPF program and
 * of the recorder itself, in percent of the machine's CPU time, idle time included.
 */
bool cost_machine_percent(const struct profile *p, double *percent);

/*
 * True if the target ran for next to nothing of the time that was recorded: then shares of its CPU
 * time are no measure of what profiling costs.
 */
bool cost_target_is_idle(const struct profile *p);

#endif
