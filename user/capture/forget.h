/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_FORGET_H
#define PROFIL_CAPTURE_FORGET_H

#include "capture/counts.h"
#include "capture/process.h"

/*
 * At the end of a window, the table forgets what no sample can refer to any more: processes and
 * threads that have ended and have none in this window, earlier programs of the others, and then
 * the images and control groups that nobody uses. Their slots become free.
 */

/*
 * Marks the processes to forget, and the processes and threads that have samples, which are of
 * several kinds; reads where the latter belong now. The window ended at end_ns. Returns 0 or
 * -ENOMEM.
 */
int forget_choose(struct process_table *table, const struct counts *const counts[], size_t kinds,
		  uint64_t end_ns);

/*
 * Forgets the marked processes, the programs that ended before the window, which began at begin_ns,
 * and what only these used. Returns 0 or -ENOMEM: then the table must only be freed.
 */
int forget_processes(struct process_table *table, uint64_t begin_ns, uint64_t end_ns);

#endif
