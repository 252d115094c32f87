/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_ATTACH_H
#define PROFIL_CAPTURE_ATTACH_H

#include "capture/events.h"
#include "capture/process.h"
#include "capture/sideband.h"

/*
 * Gives every thread of the processes its event while they go on making and ending threads.
 *
 * Threads to come inherit the events of the thread that makes them, so a new one must get an event
 * of its own if, and only if, its maker had none when it made it. The kernel's records of births
 * tell makers and times. Where a birth and the opening of its maker's event overlap, nobody can
 * tell. Such a thread gets an event of the next generation of the program; when it turns out to
 * have ticks of several generations, only those of the lowest count (counts_drop_doubles()).
 *
 * Records that come meanwhile are applied to `table` too.
 */
int attach_processes(struct event_set *set, const pid_t *pids, size_t pid_count,
		     struct program *program, struct sideband *sideband,
		     struct process_table *table, struct error *e);

#endif
