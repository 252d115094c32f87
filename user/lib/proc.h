/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Facts about a process, from /proc and the kernel. A pid of 0 is this process. */
#ifndef PROFIL_LIB_PROC_H
#define PROFIL_LIB_PROC_H

#include <sys/types.h>

#include "lib/bytes.h"

/* Room for any path of profil__proc_path(). */
#define PROC_PATH_SIZE 40

/*
 * Whether there is such a process. Returns 0; -EINVAL for a negative pid; -ESRCH, also for the ID
 * of a thread that is not its process's first; with profil__error() set.
 */
int profil__proc_check(pid_t pid);

/* Makes the path of a file in the process's directory in /proc. */
void profil__proc_path(char path[static PROC_PATH_SIZE], pid_t pid, const char *name);

/*
 * Adds the text of /proc/PID/maps: nothing for a process that has ended but was not waited for, or
 * a kernel thread. Returns 0 or a negative errno with profil__error() set.
 */
int profil__proc_maps(struct bytes *text, pid_t pid);

#endif
