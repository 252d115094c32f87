/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_LATENCY_H
#define PROFIL_PROFILE_LATENCY_H

#include "profile/profile.h"

/*
 * Adds a value to the samples, as the last one, PROFILE_SUM_LATENCY: the time of each tick divided
 * by how many threads ran then. So it sums up how long any ran: what runs alone counts in full. How
 * many ran follows from how many ticks came in three periods around it; what changes within less is
 * averaged. Ticks without a time count nothing. Before any are removed, by filters of code or
 * threads. Returns 0; -EINVAL: there are no times, or no clock; or -ENOMEM.
 */
int profile_add_latency(struct profile *p);

#endif
