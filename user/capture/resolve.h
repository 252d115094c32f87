/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_RESOLVE_H
#define PROFIL_CAPTURE_RESOLVE_H

#include "capture/capture.h"
#include "capture/counts.h"
#include "capture/process.h"
#include "capture/scripts.h"

/*
 * Calls visit for each sample, with the mappings at its pcs at the time of its first tick, and the
 * name of its thread. Frame pointers may be wrong: frames after the last one with a mapping are
 * removed, unless `incomplete` (mapping records were lost). A frame without a mapping between
 * others stays: its code was moved there by mremap(2), or mapped by a process that shares the
 * memory. begin_ns: when the window began, for what samples have in recordings that are always on;
 * 0: they need it not. Stops when visit returns non-zero, and returns that, or -ENOMEM.
 */
int resolve_each(const struct counts *counts, enum capture_kind kind,
		 struct process_table *processes, struct scripts *scripts, bool incomplete,
		 uint64_t begin_ns,
		 int (*visit)(const struct capture_sample *sample, void *context), void *context);

#endif
