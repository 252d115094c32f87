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

#define PROFIL_BPF_MODULE profil_bpf_module_1

struct bpf_request {
	pid_t pid;
	pid_t except; /* a thread that is not counted; 0: none */
	unsigned int frequency;
	const struct profil_range *ranges;
	size_t range_count, cell_count;
};

/* All are called by one thread, the one whose descriptors those of the module are. */
struct bpf_module {
	/*
	 * Begins to count. *histogram is the caller's, to free(). Returns 0 or a negative errno
	 * with the reason in `why`, of `size` bytes.
	 */
	int (*start)(const struct bpf_request *request, void **histogram,
		     struct profil_state **state, uint64_t **cells, char *why, size_t size);
	/* Looks for threads that came since. Returns 0 or a negative errno. */
	int (*rescan)(void *histogram);
	/* The counts do not change any more. */
	void (*stop)(void *histogram);
	/* Frees it, and state and cells with it. */
	void (*free)(void *histogram);
};

#endif
