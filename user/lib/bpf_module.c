// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* libprofil's private module, which needs libbpf. */
#include "lib/bpf_module.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/histogram.h"
#include "util/clock.h"

/*
 * How many processes, a parent and its children, can share a BPF program.
 * Bound: caller: processes that share a BPF program, a parent and its children; then: the call
 * fails: EAGAIN.
 */
#define MOST_PROCESSES 4096

/* How long they stay loaded after the last histogram: loading takes 30 ms or more. Bound: pace. */
#define KEEP_NS NS_PER_S

/*
 * The histograms of the process `owner`: a forked child finds its parent's here. There are several
 * where processes share the first ones and turn profiling on at another rate after the fork.
 */
static struct set {
	struct histograms *all;
	uint64_t unused_ns; /* since when there is no histogram; 0: there are some */
	struct set *next;
} * sets;
static pid_t owner;
static uint64_t looked_ns; /* at the last histograms_look() */

static bool is_open(void)
{
	return sets && owner == getpid();
}

/* Adds a set: the parent's, from a socket, or a new one (-1). Returns 0 or a negative errno. */
static int add_set(int inherited, struct error *e)
{
	struct set *set = calloc(1, sizeof(*set));
	int err;

	if (!set)
		return error_no_memory(e);
	if (inherited < 0)
		err = histograms_open(MOST_PROCESSES, false, &set->all, e);
	else
		err = histograms_receive(inherited, &set->all, e);
	if (err) {
		free(set);
		return err;
	}
	set->unused_ns = now_ns();
	set->next = sets;
	sets = set;
	return 0;
}

/*
 * Sets *set to one in which a histogram of this frequency can be started. Returns 0 or a negative
 * errno with *e set.
 */
static int find_set(int inherited, unsigned int frequency, struct set **set, struct error *e)
{
	int err;

	if (!is_open()) {
		sets = NULL;
		owner = getpid();
		if (inherited >= 0)
			add_set(inherited, e); /* if that fails, a new one */
	}
	for (*set = sets; *set; *set = (*set)->next)
		if (histograms_may_start((*set)->all, frequency))
			return 0;
	err = add_set(-1, e);
	*set = sets;
	return err;
}

/* Closes the sets that have been without a histogram since then. */
static void close_unused(uint64_t until_ns)
{
	struct set **link = &sets, *set;

	while (is_open() && (set = *link)) {
		if (!set->unused_ns || set->unused_ns > until_ns) {
			link = &set->next;
			continue;
		}
		*link = set->next;
		histograms_close(set->all);
		free(set);
	}
}

static void close_all(void)
{
	close_unused(UINT64_MAX);
}

static int start_histogram(const struct bpf_request *request, struct histogram **h,
			   struct bpf_counts *counts, char *why, size_t size)
{
	struct histogram_options options = {
		.pid = request->pid,
		.except = request->except,
		.frequency = request->frequency,
		.ranges = request->ranges,
		.range_count = request->range_count,
		.cell_count = request->cell_count,
	};
	struct error e = { 0 };
	struct set *set;
	int err = find_set(request->inherited, request->frequency, &set, &e);

	if (!err) {
		options.all = set->all;
		err = histogram_start(&options, h, &e);
	}
	if (!err) {
		err = histogram_enable(*h);
		if (err) {
			histogram_free(*h);
			error_set(&e, -err, "cannot profile process %d", request->pid);
		}
	}
	if (err) {
		snprintf(why, size, "%s", e.what);
		close_all();
		return err;
	}
	set->unused_ns = 0;
	*counts = (struct bpf_counts){ histogram_state(*h), histogram_cells(*h),
				       histogram_tick_ns(*h) };
	return 0;
}

/* A child gets the newest set; it opens its own for histograms at other rates. */
static int share_all(int socket)
{
	return is_open() ? histograms_send(sets->all, socket) : -ENOENT;
}

static void free_histogram(struct histogram *h)
{
	histogram_free(h);
	for (struct set *set = sets; set; set = set->next)
		if (!set->unused_ns && !histograms_count(set->all))
			set->unused_ns = now_ns();
}

/* A CPU on which no clock can be opened has none until the next look. */
static void look_at_all(void)
{
	uint64_t now = now_ns();
	struct error e = { 0 };

	if (!is_open() || now - looked_ns < NS_PER_S)
		return;
	looked_ns = now;
	close_unused(now - KEEP_NS);
	for (struct set *set = sets; set; set = set->next)
		histograms_look(set->all, &e);
}

__attribute__((visibility("default"))) const struct bpf_module PROFIL_BPF_MODULE = {
	.start = start_histogram,
	.share = share_all,
	.stop = histogram_stop,
	.counts = histogram_counts,
	.free = free_histogram,
	.look = look_at_all,
	.is_open = is_open,
	.close = close_all,
};
