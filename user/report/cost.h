/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_COST_H
#define PROFIL_REPORT_COST_H

#include <stdbool.h>

#include "profile/profile.h"

/* Whether the ticks' interrupts come only for the profile: the scheduler's come anyway. */
bool cost_has_interrupt(const struct profile *p);

/*
 * Both store a percentage and return true, or return false when the profile does not hold what it
 * is computed from. They are estimates, because the cost of an interrupt is measured apart.
 */

/* All ticks, their interrupts included, of the target's CPU time. */
bool cost_cpu_percent(const struct profile *p, double *percent);

/*
 * All interrupts of the clock, those that hit other processes included, the BPF program, and what
 * the recorder itself used, of the whole machine's CPU time, idle or not.
 */
bool cost_machine_percent(const struct profile *p, double *percent);

#endif
