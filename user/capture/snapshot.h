/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_SNAPSHOT_H
#define PROFIL_CAPTURE_SNAPSHOT_H

#include "capture/process.h"

/*
 * Reads a process's executable mappings and its threads' names from /proc, and adds the process to
 * the table if it is new; if it has ended, without mappings. To a known process it adds the
 * mappings that are missing, as mapped at time_ns (0: before the recording). If it runs another
 * program than is known, it has called exec at table->known_ns. By now, another process may have
 * the number: one that has begun after time_ns is left to its records; an earlier one is added if
 * everyone is. Returns 0 or -ENOMEM.
 */
int snapshot_process(struct process_table *table, pid_t pid, uint64_t time_ns);

/* The same for all processes of the machine. */
int snapshot_all(struct process_table *table, uint64_t time_ns);

/*
 * Replaces the mappings of a process by those that it has now, from time_ns on: it has had more
 * than are kept. Returns 0 or -ENOMEM.
 */
int snapshot_replace(struct process_table *table, struct process *process, uint64_t time_ns);

/*
 * The same for one process of those that have had more than are kept, and may have it again:
 * without it, none of what such a process maps from then on would be known. Records were taken up
 * to until_ns. It takes a small part of the time: else it does nothing, and a later call does;
 * users take turns. A process is read again `most` times.
 */
int snapshot_if_crowded(struct process_table *table, uint64_t until_ns, unsigned int most);

/* snapshot_process() for all processes that may be in the table, once more. */
int snapshot_again(struct process_table *table, uint64_t time_ns);

/*
 * The same if the kernel has dropped more sideband records than at the last call, or may have:
 * `lost` and `complete_ns` are sideband_lost() and sideband_complete_ns(). The others were taken up
 * to until_ns, some milliseconds ago at most. It takes 1 / part of the time at most: else it does
 * nothing, and a later call does.
 */
int snapshot_if_lost(struct process_table *table, uint64_t lost, uint64_t complete_ns,
		     uint64_t until_ns, unsigned int part);

#endif
