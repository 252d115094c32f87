/* SPDX-License-Identifier: GPL-2.0-only */
/* Module parameters, which root may change at any time. */
#ifndef PROFIL_KMOD_SETTINGS_H
#define PROFIL_KMOD_SETTINGS_H

#include <linux/types.h>

/* The highest rate a request may ask for, in ticks per second of CPU time. */
u32 settings_max_hz(void);

/* The most regions a request may have. */
u32 settings_max_regions(void);

/* How many processes of one user may be profiled at once. */
u32 settings_max_processes(void);

/* Whether there are ticks on CPUs that are isolated (isolcpus, cpusets) or nohz_full. */
bool settings_isolated_cpus(void);

#endif
