/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_JIT_FILE_H
#define PROFIL_CAPTURE_JIT_FILE_H

#include "capture/process.h"

/*
 * Code that a process has made at run time lies in memory without a file. What it is called stands
 * in a file that the process writes while it runs: /tmp/perf-PID.map, with the PID and the /tmp
 * that the process itself sees; or jit-PID.dump, which it maps to make it known. Such memory is an
 * image of its own for each process. Its path becomes [jit PID], and its fd that file, as soon as
 * there is one; without, it is [anon].
 *
 * Anybody may put a file of that name into /tmp. One is taken only if it is a regular file, no link
 * to one, belongs to the user that the process runs as or to root, and cannot be written by all.
 * Neither may it be older than the process: then it was written by one that had this number before.
 * Else image.why says what is wrong with it.
 */

/* Whether a mapping of this name may hold code that its process has made. */
bool jit_is_memory(const char *name);

/* The image of such a mapping. Returns 0 or -ENOMEM. */
int jit_image(struct process_table *table, struct process *process,
	      const struct sideband_record *record, uint32_t *image);

/* Notes a mapping of a file, which may be the process's jit-PID.dump. Returns 0 or -ENOMEM. */
int jit_note_file(struct process_table *table, struct process *process,
		  const struct sideband_record *record, uint32_t image);

/* Looks once more for what was not there yet. The processes may have ended. */
int jit_look_again(struct process_table *table);

#endif
