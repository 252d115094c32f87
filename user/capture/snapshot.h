/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_SNAPSHOT_H
#define PROFIL_CAPTURE_SNAPSHOT_H

#include "capture/process.h"

/*
 * Reads a process's executable mappings and its threads' names from /proc, and adds the process to
 * the table if it is new; if it has ended, without mappings. To a known process it adds the
 * mappings that are missing, as mapped at time_ns (0: before the recording). Returns 0 or -ENOMEM.
 */
int snapshot_process(struct process_table *table, pid_t pid, uint64_t time_ns);

/* The same for all processes, with time_ns 0. */
int snapshot_all(struct process_table *table);

#endif
