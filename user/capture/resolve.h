/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_RESOLVE_H
#define PROFIL_CAPTURE_RESOLVE_H

#include "capture/capture.h"
#include "capture/counts.h"
#include "capture/process.h"

/*
 * Calls visit for each sample, with the mapping that held its pc when its first tick came and the
 * name of its thread. Stops when visit returns non-zero, and returns that, or -ENOMEM.
 */
int resolve_each(const struct counts *counts, struct process_table *processes,
		 int (*visit)(const struct capture_sample *sample, void *context), void *context);

#endif
