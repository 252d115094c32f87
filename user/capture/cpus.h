/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_CPUS_H
#define PROFIL_CAPTURE_CPUS_H

#include "util/clock.h"
#include "util/error.h"

/* How often to check which CPUs are online. Bound: pace. */
#define CPUS_LOOK_NS NS_PER_S

/*
 * Calls visit for each CPU of a list as the kernel writes it: "0-3,8,10-11". Stops when visit
 * returns non-zero, and returns that; -EINVAL: not such a list.
 */
int cpus_each(const char *list, int (*visit)(int cpu, void *context), void *context);

/* The same for the CPUs that are online. */
int cpus_each_online(int (*visit)(int cpu, void *context), void *context, struct error *e);

#endif
