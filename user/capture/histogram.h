/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_HISTOGRAM_H
#define PROFIL_CAPTURE_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/profil.h"
#include "util/error.h"

/*
 * The histograms of profil(2), of any number of processes, and the clocks that they share: one for
 * each rate in use, which ticks on every CPU. Each tick is counted for the process that it hits, if
 * that has a histogram with this clock. Where perf events are refused there is one clock, the
 * scheduler's own tick, whatever the rate that is asked for.
 *
 * Calls come from one thread at a time.
 */
struct histograms;

/* Different rates in use at once. */
#define HISTOGRAM_CLOCKS 16

/*
 * Loads the program, with room for so many histograms. `threads`: what makes the kernel wait some
 * 10 ms at the begin and at the end of a histogram is done in threads that end by themselves, with
 * all signals blocked. *all is the caller's, to histograms_close() after the last of its
 * histograms.
 */
int histograms_open(unsigned int most, bool threads, struct histograms **all, struct error *e);
void histograms_close(struct histograms *all);

/* To be called now and then while there are histograms: has CPUs tick that came online since. */
int histograms_look_at_cpus(struct histograms *all, struct error *e);

/* Why there are no perf events, so that the scheduler's tick is the clock; "": there are. */
const char *histograms_without_events(const struct histograms *all);

/*
 * Sends all that another process takes to have histograms of its own by the same program and the
 * same clocks, which go on after those who opened them have ended. Returns 0 or a negative errno.
 */
int histograms_send(struct histograms *all, int socket);

/* Receives it: *all as from histograms_open(), without threads. */
int histograms_receive(int socket, struct histograms **all, struct error *e);

/*
 * The histogram of profil(2) about one process: all its threads, those to come included; its
 * children are not in it, and it ends at exec, in the kernel. A process can have several.
 */
struct histogram;

struct histogram_options {
	struct histograms *all;
	pid_t pid;
	pid_t except;			   /* a thread of it that is not to be counted; 0: none */
	unsigned int frequency;		   /* ticks per second of CPU time */
	const struct profil_range *ranges; /* sorted, apart from each other: bpf/profil.h */
	size_t range_count;		   /* 1 to PROFIL_RANGES */
	size_t cell_count;		   /* 1 to PROFIL_CELLS */
	bool elsewhere;			   /* histogram_cells() will not be called */
};

/*
 * Takes in the process. Until histogram_enable() nothing is counted in it, so that the caller can
 * make sure first that it is still the program that it was: another that it becomes after this
 * returned is never counted. *h is the caller's, to histogram_free(). Errors: -EAGAIN (one of the
 * limits above is reached), -EINVAL (the rate is above the kernel's limit), -ENOMEM, -ESRCH.
 */
int histogram_start(const struct histogram_options *options, struct histogram **h, struct error *e);

/* Begins to count. -ESRCH: the process has ended, or has become another program. */
int histogram_enable(struct histogram *h);

/* Ends the counting: when it returns, the counts do not change any more. They stay readable. */
void histogram_stop(struct histogram *h);

void histogram_free(struct histogram *h);

/* Of CPU time between two ticks: not exactly 1/frequency. */
uint64_t histogram_period_ns(const struct histogram *h);

/* The clock that it has, from 0 to below HISTOGRAM_CLOCKS: histograms of one clock share its cost.
 */
unsigned int histogram_clock(const struct histogram *h);

/* The kernel's own memory, until histogram_free(); to be read with atomic loads. */
struct profil_state *histogram_state(const struct histogram *h);
uint64_t *histogram_cells(const struct histogram *h); /* cell_count of them */

/*
 * The descriptor of the map behind them, for another process to map: profil_pages() of
 * bpf/profil.h. It stays the histogram's.
 */
int histogram_fd(const struct histogram *h);

#endif
