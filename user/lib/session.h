/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A histogram: profil()'s own, or one of profil_attach(). sessions.h makes, starts and stops it. */
#ifndef PROFIL_LIB_SESSION_H
#define PROFIL_LIB_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/bytes.h"
#include "lib/region.h"

/* How ticks are counted. */
struct counting {
	uint64_t tick_ns;  /* the CPU time that a tick stands for: not exactly 1/hz */
	uint64_t start_ns; /* when counting began, since 1970 */
};

/* Guarded by the lock. */
struct profil_session {
	struct profil_session *next; /* in the list of those that are on */
	pid_t pid;		     /* 0: this process */
	unsigned int hz;	     /* requested rate */
	struct counting counting;
	struct bytes maps; /* of another process: /proc/PID/maps at that time */
	struct plan plan;
	/* One for each cell, for profil_attach(). NULL: the counts go to the regions' buffers. */
	uint64_t *counts;
	uint64_t in_range; /* the sum of all that was added to counts, or to the buffers */
	/* Of kernel memory that was released, and of the present one when last read. */
	uint64_t out_of_range, latest_out_of_range;
	uint64_t lost, latest_lost;
	/* The three sums of ticks, lost, and cpu_ns, which a forked child has from its parent. */
	uint64_t parents_ticks, parents_lost, parents_cpu_ns;

	const struct backend *backend; /* NULL: never started */
	bool on;		       /* in the list: it counts, or does as soon as it can */
	bool attached;		       /* the back end counts */
	bool trial;		       /* to see whether the back end works, not to count */
	bool no_ticks;		       /* the back end does not say how many it counts */
	int fd;			       /* the back end's; -1: none */
	uint32_t version;	       /* of the protocol with profild */
	void *handle;		       /* the back end's */
	struct profil_state *state;    /* shared with the kernel; NULL: none */
	uint64_t *cells;	       /* shared with the kernel */
	uint64_t check_ns;	       /* CLOCK_MONOTONIC: when to check the back end */
	/* CPU time while on, up to the moment at which the process's CPU clock was cpu_at. */
	uint64_t cpu_ns, cpu_at;
	uint64_t target; /* PROFIL_TARGET_RUNS, or why another process is not counted any more */
	/* cpu_ns, and the back end's ticks, when the back end was last known to count. */
	uint64_t alive_cpu_ns, alive_ticks;
};

#endif
