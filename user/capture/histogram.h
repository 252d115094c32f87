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
 * The histograms of profil(2), for any number of processes, and the clocks that they share: one for
 * each rate in use, which ticks on every CPU. A tick is counted in the histograms with this clock
 * of the process that it interrupts. Where perf events are refused there is one clock, the
 * scheduler's own tick, for all rates.
 *
 * One thread at a time may make calls.
 */
struct histograms;

/*
 * How many different rates can be in use at once. One of them is always free for the usual one.
 * Bound: users: different rates of profil() at once, of all users; then: the call fails: EAGAIN;
 * again: when nobody uses one of them any more; share: --max-rates of each user; one is kept for
 * the usual rate; seen: in the client's error, and profild's log.
 */
#define HISTOGRAM_CLOCKS   16
#define HISTOGRAM_USUAL_HZ 100

/*
 * Loads the program, with room for max_count histograms. `threads`: the system calls at the start
 * and the end of a histogram in which the kernel waits some 10 ms are made in detached threads,
 * which block all signals; and histogram_start() waits no longer for a clock: histogram_wait_ns().
 * The caller owns *all: see histograms_close(), after its last histogram
 * was freed. Returns 0 or a negative errno with *e set.
 */
int histograms_open(unsigned int max_count, bool threads, struct histograms **all, struct error *e);
void histograms_close(struct histograms *all);

/*
 * Starts ticks on CPUs that have come online since, and stops clocks without a histogram for a
 * second; to be called about once a second while histograms_need_look().
 */
int histograms_look(struct histograms *all, struct error *e);
bool histograms_need_look(const struct histograms *all);

/*
 * False if a histogram of this frequency would need a new clock, and another process has the
 * program, too: if that also opens one, both would tick in both processes, and each tick would
 * count twice. Then other histograms have to be opened for it.
 */
bool histograms_may_start(struct histograms *all, unsigned int frequency);

/* How many histograms there are. */
size_t histograms_count(const struct histograms *all);

/* Why perf events are refused, so that the scheduler's tick is the clock; "": they are not. */
const char *histograms_without_events(const struct histograms *all);

/*
 * Sends another process the descriptors that it needs for histograms of its own with this program
 * and these clocks. They keep working after the sender has ended. Returns 0 or a negative errno.
 */
int histograms_send(struct histograms *all, int socket);

/* Receives what histograms_send() sent. *all is as from histograms_open(), without threads. */
int histograms_receive(int socket, struct histograms **all, struct error *e);

/*
 * A histogram of profil(2) of one process: of all its threads, later ones included, but not of its
 * children. The kernel ends it at exec. A process can have several.
 */
struct histogram;

struct histogram_options {
	struct histograms *all;
	pid_t pid;
	pid_t except;			   /* a thread that is not counted; 0: none */
	unsigned int frequency;		   /* ticks per second of CPU time */
	const struct profil_range *ranges; /* sorted, not overlapping: bpf/profil.h */
	size_t range_count;		   /* 1 to PROFIL_RANGES */
	size_t cell_count;		   /* 1 to PROFIL_CELLS */
	bool elsewhere;			   /* histogram_cells() will not be called */
};

/*
 * Prepares a histogram of a process. It counts from histogram_enable() on, so that the caller can
 * first check that the process still runs the same program: if it calls exec after this call, it is
 * never counted. The caller owns *h: see histogram_free(). Errors: -EAGAIN (one of the limits
 * above), -EINVAL (the rate is above the kernel's limit), -ENOMEM, -ESRCH.
 */
int histogram_start(const struct histogram_options *options, struct histogram **h, struct error *e);

/* Starts to count. Returns 0, or -ESRCH: the process has ended or called exec. */
int histogram_enable(struct histogram *h);

/* Whether it counts; not after its process has called exec, or has ended and been waited for. */
bool histogram_counts(const struct histogram *h);

/*
 * Stops counting. The counts stay readable, and are final when this returns; with `elsewhere`, when
 * their `done` equals `ticks`.
 */
void histogram_stop(struct histogram *h);

void histogram_free(struct histogram *h);

/* The CPU time between two ticks; not exactly 1 / frequency. */
uint64_t histogram_tick_ns(const struct histogram *h);

/*
 * With threads: for how long the process of a new histogram is to sleep, at random, as the first
 * tick of its clock is not due before; 0: it is.
 */
uint64_t histogram_wait_ns(const struct histogram *h);

/*
 * The number of its clock, below HISTOGRAM_CLOCKS. Histograms with the same clock share its cost.
 */
unsigned int histogram_clock(const struct histogram *h);

/* Memory shared with the BPF program, valid until histogram_free(). Read it with atomic loads. */
struct profil_state *histogram_state(const struct histogram *h);
uint64_t *histogram_cells(const struct histogram *h); /* cell_count of them */

/*
 * The descriptor of the map with state and cells, for another process to map: bpf/profil.h. Owned
 * by the histogram.
 */
int histogram_fd(const struct histogram *h);

#endif
