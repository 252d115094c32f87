/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_ORIGIN_H
#define PROFIL_CAPTURE_ORIGIN_H

#include "capture/process.h"

/*
 * Where a process belongs: its control group and its effective user, as /proc has them now. A
 * process may change both at any time, and may be gone when its records are read: a child has its
 * parent's until it calls exec.
 */

/*
 * Reads the user, and if table->notes_origins the control group. If the process is gone they stay.
 * Returns 0 or -ENOMEM.
 */
int origin_read(struct process_table *table, struct process *process);

/*
 * Reads the title that the process gave itself in place of its command line, for other processes to
 * see: "nginx: worker process", "postgres: checkpointer". It is the first word of the command line
 * with a blank in it, unless it is a path: then it may have arguments, which may be secret. A title
 * may change all the time, so it is read once: when the process is first seen, or if it has none by
 * then (a child has its parent's command line), when its samples are first looked at. Returns 0 or
 * -ENOMEM.
 */
int origin_read_title(struct process_table *table, struct process *process);

/* Frees the slot of a control group. */
void origin_remove_group(struct process_table *table, uint32_t number);

/*
 * Finds the process's control group in the text of /proc/PID/cgroup: in the hierarchy of cgroup v2,
 * else in systemd's of cgroup v1, else in the first hierarchy in which it is not in the root.
 * Returns its path, which ends at the line's end, with *size; NULL: none.
 */
const char *origin_group(const char *text, size_t *size);

#endif
