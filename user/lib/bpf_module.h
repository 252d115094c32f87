/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The interface between libprofil and its private module, which has the eBPF back end and needs
 * libbpf. The module exports one symbol, PROFIL_BPF_MODULE, whose number changes with this file.
 */
#ifndef PROFIL_LIB_BPF_MODULE_H
#define PROFIL_LIB_BPF_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/profil.h"

#define PROFIL_BPF_MODULE profil_bpf_module_4

struct histogram;

struct bpf_request {
	pid_t pid;
	pid_t except; /* a thread that is not counted; 0: none */
	unsigned int frequency;
	const struct profil_range *ranges;
	size_t range_count, cell_count;
	/* In a forked child: the other end of the socket of its parent's share(); -1: none. */
	int inherited;
};

struct bpf_counts {
	struct profil_state *state; /* at the start of profil_pages() pages */
	uint64_t *cells;	    /* in the same pages */
	uint64_t tick_ns;	    /* the CPU time that a tick stands for */
};

/* The service thread makes all calls: the module's descriptors are in its table. */
struct bpf_module {
	/*
	 * Starts to count. The caller releases *histogram by free() below. Returns 0, or a negative
	 * errno and the reason in `why`, which has `size` bytes.
	 */
	int (*start)(const struct bpf_request *request, struct histogram **histogram,
		     struct bpf_counts *counts, char *why, size_t size);
	/*
	 * Sends the BPF program and the clocks through `socket` to a child that is about to be
	 * forked. Returns 0 or a negative errno.
	 */
	int (*share)(int socket);
	/* Stops counting: the counts do not change any more. */
	void (*stop)(struct histogram *h);
	/* Whether it counts; not after its process has called exec or ended. */
	bool (*counts)(const struct histogram *h);
	/*
	 * Frees the histogram and its counts. The BPF program and the clocks are kept for a second,
	 * so that the next start does not have to load them.
	 */
	void (*free)(struct histogram *h);
	/*
	 * To be called about once a second while is_open(): starts ticks on CPUs that have come
	 * online, and closes what has not been used for a second.
	 */
	void (*look)(void);
	/* Whether the program is loaded, used or not. Any thread may call, with the lock held. */
	bool (*is_open)(void);
	/* Closes all; after the last histogram was freed. */
	void (*close)(void);
};

#endif
