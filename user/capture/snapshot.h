/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_SNAPSHOT_H
#define PROFIL_CAPTURE_SNAPSHOT_H

#include "capture/process.h"

/*
 * Takes in a process as /proc shows it now: executable mappings and the names of its threads.
 * One that ended meanwhile is taken in without mappings. Again for a process that is there: adds
 * what its address space lacks, as of time_ns (0: the recording has only begun).
 */
int snapshot_process(struct process_table *table, pid_t pid, uint64_t time_ns);

/* The same for every process of the machine. */
int snapshot_all(struct process_table *table);

#endif
