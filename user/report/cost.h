/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_COST_H
#define PROFIL_REPORT_COST_H

#include <stdbool.h>

#include "profile/profile.h"

/* Whether each tick is an interrupt that would not come otherwise. */
bool cost_has_interrupt(const struct profile *p);

/*
 * The share of the target's CPU time that all ticks took, their interrupts included, in percent:
 * an estimate, for the interrupt is measured apart. false: the profile does not know enough.
 */
bool cost_cpu_percent(const struct profile *p, double *percent);

/*
 * The share of the whole machine's CPU time that was taken, idle or not: by all interrupts of the
 * clock, those that hit others included, and by the program.
 */
bool cost_machine_percent(const struct profile *p, double *percent);

#endif
