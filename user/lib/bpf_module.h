/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What libprofil and its private module with the eBPF back end agree on. The module has one symbol,
 * PROFIL_BPF_MODULE; when anything here changes, its number does.
 */
#ifndef PROFIL_LIB_BPF_MODULE_H
#define PROFIL_LIB_BPF_MODULE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/profil.h"

#define PROFIL_BPF_MODULE profil_bpf_module_2

struct bpf_request {
	pid_t pid;
	pid_t except; /* a thread that is not counted; 0: none */
	unsigned int frequency;
	const struct profil_range *ranges;
	size_t range_count, cell_count;
	/* In a forked child: where its parent's share() has sent to; -1: nowhere. */
	int inherited;
};

struct bpf_counts {
	struct profil_state *state; /* profil_pages() */
	uint64_t *cells;	    /* which these are part of */
	uint64_t period_ns;	    /* of CPU time between two ticks */
};

/* All are called by one thread, the one whose descriptors those of the module are. */
struct bpf_module {
	/*
	 * Begins to count. *histogram is the caller's, to free(). Returns 0 or a negative errno
	 * with the reason in `why`, of `size` bytes.
	 */
	int (*start)(const struct bpf_request *request, void **histogram, struct bpf_counts *counts,
		     char *why, size_t size);
	/* Has a child that is about to be forked count by the same program and clocks. */
	int (*share)(int socket);
	/* The counts do not change any more. */
	void (*stop)(void *histogram);
	/* Frees it, and the counts with it. */
	void (*free)(void *histogram);
};

#endif
