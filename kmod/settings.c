// SPDX-License-Identifier: GPL-2.0-only
#include <linux/minmax.h>
#include <linux/module.h>

#include "kmod/settings.h"

/*
 * No timer runs faster, whatever root sets.
 * Bound: caller: ticks per second that root may allow; then: less is allowed.
 */
#define MAX_HZ_LIMIT 100000

/*
 * Bounds the memory of a region table to a megabyte, whatever root sets.
 * Bound: caller: regions of a process that root may allow; then: the call fails: E2BIG.
 */
#define MAX_REGIONS_LIMIT 16384

static unsigned int max_hz = 10000;
module_param(max_hz, uint, 0644);
MODULE_PARM_DESC(max_hz, "ticks per second of CPU time that a process may ask for");

static unsigned int max_regions = 2048;
module_param(max_regions, uint, 0644);
MODULE_PARM_DESC(max_regions, "regions that a process may ask for");

static unsigned int max_processes = 1024;
module_param(max_processes, uint, 0644);
MODULE_PARM_DESC(max_processes, "processes of one user that are profiled at once");

static bool isolated_cpus;
module_param(isolated_cpus, bool, 0644);
MODULE_PARM_DESC(isolated_cpus, "tick on isolated and nohz_full CPUs, too");

u32 settings_max_hz(void)
{
	return min_t(u32, READ_ONCE(max_hz), MAX_HZ_LIMIT);
}

u32 settings_max_regions(void)
{
	return min_t(u32, READ_ONCE(max_regions), MAX_REGIONS_LIMIT);
}

u32 settings_max_processes(void)
{
	return READ_ONCE(max_processes);
}

bool settings_isolated_cpus(void)
{
	return READ_ONCE(isolated_cpus);
}
