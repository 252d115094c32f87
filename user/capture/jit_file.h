/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_JIT_FILE_H
#define PROFIL_CAPTURE_JIT_FILE_H

#include "capture/process.h"

/*
 * Code that a process generates at run time is in memory without a file. The process writes its
 * names to a file while it runs: /tmp/perf-PID.map (its own PID and /tmp, if it is in a container),
 * or jit-PID.dump, which it maps to announce it. Each process has one image for such memory. Its
 * path is [anon] until there is a file with names; then the path is [jit PID], and fd is that file,
 * or another map that has taken its place.
 *
 * Anybody may create such a file in /tmp, so it has to be a regular file (not a link), owned by
 * root or by the process's user, not writable by all, and not older than the process: else an
 * earlier process with this PID wrote it. For a file that is refused, image.why says why.
 */

/* Whether a mapping with this name may be memory with generated code. */
bool jit_is_memory(const char *name);

/* Sets *image to the number of the process's image for such memory. Returns 0 or -ENOMEM. */
int jit_image(struct process_table *table, struct process *process,
	      const struct sideband_record *record, uint32_t *image);

/* To be called for each mapping of a file, `image`: it may be the process's jit-PID.dump. */
void jit_note_file(const struct process_table *table, struct process *process,
		   const struct sideband_record *record, uint32_t image);

/*
 * To be called when a process has called exec: what it maps from now on is another image, [jit
 * PID:2], and only a file that was written since names it. Returns 0 or -ENOMEM.
 */
int jit_end_program(struct process_table *table, struct process *process, uint64_t time_ns);

/* Looks for missing files, of each process less and less often. Returns 0 or -ENOMEM. */
int jit_look_soon(struct process_table *table);

/* Looks again for all files that were missing. Returns 0 or -ENOMEM. */
int jit_look_again(struct process_table *table);

#endif
