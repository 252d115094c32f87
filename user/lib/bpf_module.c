// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* libprofil's private module, which needs libbpf. */
#include "lib/bpf_module.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "capture/histogram.h"
#include "util/clock.h"

/* How many processes, a parent and its children, can share a BPF program. */
#define MOST_PROCESSES 4096

/* How long they stay loaded after the last histogram: loading takes 30 ms or more. */
#define KEEP_NS NS_PER_S

/* The histograms of the process `owner`: a forked child finds its parent's here. */
static struct histograms *all;
static size_t count;
static pid_t owner;
static uint64_t unused_ns; /* since when there is no histogram */
static uint64_t looked_ns; /* at the last histograms_look() */

static bool is_open(void)
{
	return all && owner == getpid();
}

static int open_all(int inherited, struct error *e)
{
	if (is_open())
		return 0;
	all = NULL;
	count = 0;
	owner = getpid();
	if (inherited >= 0 && histograms_receive(inherited, &all, e) == 0)
		return 0;
	return histograms_open(MOST_PROCESSES, false, &all, e);
}

static void close_all(void)
{
	if (!is_open() || count)
		return;
	histograms_close(all);
	all = NULL;
}

static int start_histogram(const struct bpf_request *request, void **out, struct bpf_counts *counts,
			   char *why, size_t size)
{
	struct histogram_options options = {
		.pid = request->pid,
		.except = request->except,
		.frequency = request->frequency,
		.ranges = request->ranges,
		.range_count = request->range_count,
		.cell_count = request->cell_count,
	};
	struct histogram *h;
	struct error e = { 0 };
	int err = open_all(request->inherited, &e);

	options.all = all;
	err = err ?: histogram_start(&options, &h, &e);
	if (!err) {
		err = histogram_enable(h);
		if (err) {
			histogram_free(h);
			error_set(&e, -err, "cannot profile process %d", request->pid);
		}
	}
	if (err) {
		snprintf(why, size, "%s", e.what);
		close_all();
		return err;
	}
	count++;
	*out = h;
	*counts = (struct bpf_counts){ histogram_state(h), histogram_cells(h),
				       histogram_period_ns(h) };
	return 0;
}

static int share_all(int socket)
{
	return all ? histograms_send(all, socket) : -ENOENT;
}

static void stop_histogram(void *histogram)
{
	histogram_stop(histogram);
}

static bool is_counting(const void *histogram)
{
	return histogram_counts(histogram);
}

static void free_histogram(void *histogram)
{
	histogram_free(histogram);
	if (--count == 0)
		unused_ns = now_ns();
}

/* A CPU on which no clock can be opened has none until the next look. */
static void look_at_all(void)
{
	uint64_t now = now_ns();
	struct error e = { 0 };

	if (!is_open() || now - looked_ns < NS_PER_S)
		return;
	looked_ns = now;
	if (!count && now - unused_ns >= KEEP_NS)
		close_all();
	else
		histograms_look(all, &e);
}

__attribute__((visibility("default"))) const struct bpf_module PROFIL_BPF_MODULE = {
	.start = start_histogram,
	.share = share_all,
	.stop = stop_histogram,
	.counts = is_counting,
	.free = free_histogram,
	.look = look_at_all,
	.is_open = is_open,
	.close = close_all,
};
