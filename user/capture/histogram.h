/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_HISTOGRAM_H
#define PROFIL_CAPTURE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/profil.h"
#include "util/error.h"

/*
 * The histogram of profil(2) about one process: every thread that it has gets a task-clock event
 * with the profil program, and so does every thread to come; its children do not, and it all ends
 * at exec. Calls for one histogram come from one thread at a time.
 */
struct histogram;

struct histogram_options {
	pid_t pid;
	pid_t except;			   /* a thread of it that is not to be counted; 0: none */
	unsigned int frequency;		   /* ticks per second of CPU time */
	const struct profil_range *ranges; /* sorted, apart from each other: bpf/profil.h */
	size_t range_count;		   /* 1 to PROFIL_RANGES */
	size_t cell_count;		   /* 1 to PROFIL_CELLS */
	size_t most_events;		   /* -EDQUOT when it takes more; 0: no limit */
};

/*
 * Attaches to the process. Until histogram_enable() ticks come but are not counted, so that the
 * caller can make sure first that it is still the program that it was. *h is the caller's, to
 * histogram_free().
 */
int histogram_start(const struct histogram_options *options, struct histogram **h, struct error *e);

void histogram_enable(struct histogram *h);

/*
 * Looks for threads that came since. They are counted in any case; but the ticks of one that makes
 * threads which end soon get lost with these (user/capture/apart.h) until this has seen it. -EDQUOT
 * when more than most_events would be held then; 0: no limit.
 */
int histogram_rescan(struct histogram *h, size_t most_events, struct error *e);

/* Ends the ticks: when it returns, the counts do not change any more. They stay readable. */
void histogram_stop(struct histogram *h);

void histogram_free(struct histogram *h);

/* The kernel's own memory, until histogram_free(); to be read with atomic loads. */
struct profil_state *histogram_state(const struct histogram *h);
uint64_t *histogram_cells(const struct histogram *h); /* cell_count of them */

/* The descriptors of the maps behind them, for another process to map; they stay the histogram's.
 */
int histogram_state_fd(const struct histogram *h);
int histogram_cells_fd(const struct histogram *h);

/* How many perf events it holds. */
size_t histogram_events(const struct histogram *h);

#endif
