/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_THREAD_WALLS_H
#define PROFIL_PROFILE_THREAD_WALLS_H

#include "profile/profile.h"

/*
 * Divides the time in which each thread slept, in the account of wall time, into blocked_ns and
 * idle_ns: idle is what its samples say. Call it when they have changed. Returns 0 or -ENOMEM.
 */
int profile_split_idle(struct profile *p);

/*
 * Replaces the threads' account by what the samples that are left say of them: the time in which
 * they were on a CPU is that of their ticks. Drops it where the profile does not tell when they
 * waited. Returns 0 or -ENOMEM.
 */
int profile_cut_walls(struct profile *p);

#endif
