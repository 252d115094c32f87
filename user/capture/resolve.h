/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_RESOLVE_H
#define PROFIL_CAPTURE_RESOLVE_H

#include "capture/capture.h"
#include "capture/counts.h"
#include "capture/process.h"

/*
 * Calls visit for each sample, with the mappings that held its pcs when its first tick came and the
 * name of its thread. Where frame pointers lead to memory that holds no code, and to none that does
 * behind it, they have led astray, and the stack ends in front of it; but not if what is known is
 * incomplete. With code behind it, it is code that moved there unseen, by mremap(2) or a process
 * that shares the memory. Stops when visit returns non-zero, and returns that, or -ENOMEM.
 */
int resolve_each(const struct counts *counts, struct process_table *processes, bool incomplete,
		 int (*visit)(const struct capture_sample *sample, void *context), void *context);

#endif
