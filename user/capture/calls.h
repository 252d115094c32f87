/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_CALLS_H
#define PROFIL_CAPTURE_CALLS_H

#include "capture/counts.h"
#include "util/error.h"

struct sample_bpf;
struct capture_function;

/* When a function was called: bpf/calls.h. Zero-initialised is none. */
struct calls {
	int *fds; /* of attached programs */
	size_t fd_count;
	/* The count of each sample is in nanoseconds, its `waiting` the number of calls. */
	struct counts counts;
	size_t max; /* the memory for them is limited */
	uint64_t lost;
};

/* Before the load: chooses the programs and maps. */
void calls_choose(struct sample_bpf *bpf, bool wanted);

/* After the choice of members: calls that begin from now on are followed. */
int calls_attach(struct calls *calls, const struct sample_bpf *bpf,
		 const struct capture_function *function, struct error *e);

/* For the ring buffer: adds a call. Returns 0 or -ENOMEM. */
int calls_take(void *calls, void *record, size_t size);

/* Ends it: calls under way are not recorded. */
void calls_stop(struct calls *calls);
void calls_free(struct calls *calls);

#endif
