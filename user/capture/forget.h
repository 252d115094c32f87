/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_FORGET_H
#define PROFIL_CAPTURE_FORGET_H

#include "capture/counts.h"
#include "capture/process.h"

/*
 * At the end of a window, the table forgets what no sample can refer to any more: processes and
 * threads that have ended and have none in this window, earlier programs of the others, and then
 * the images that nobody has mapped. What stays gets new numbers, in the same order. A child whose
 * parent is forgotten takes over the mappings that it has inherited.
 */

struct forgotten_of {
	uint32_t number; /* the process's new number, or INDEX_NONE: it is forgotten */
	uint32_t spaces; /* how many of its first address spaces are */
};

struct forgetting {
	struct forgotten_of *processes; /* by their old numbers */
	uint32_t *images;		/* by their old numbers: the new one, or INDEX_NONE */
	size_t process_count, image_count;
};

/*
 * Chooses the processes to forget; marks the samples' processes and threads, and reads where these
 * processes belong now. The window was [begin_ns, end_ns). Returns 0 or -ENOMEM; in any case the
 * caller frees *f.
 */
int forget_choose(struct process_table *table, const struct counts *counts, uint64_t begin_ns,
		  uint64_t end_ns, struct forgetting *f);

/* Forgets them. Returns 0 or -ENOMEM: then the table must only be freed. */
int forget_processes(struct process_table *table, struct forgetting *f, uint64_t end_ns);

void forget_free(struct forgetting *f);

#endif
