// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* libprofil's private module, which needs libbpf. */
#include "lib/bpf_module.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "capture/histogram.h"

/* How many processes, a parent and its children, can share a BPF program. */
#define MOST_PROCESSES 4096

/* The histograms of the process `owner`: a forked child finds its parent's here. */
static struct histograms *all;
static size_t count;
static pid_t owner;

static int open_all(int inherited, struct error *e)
{
	if (all && owner == getpid())
		return 0;
	all = NULL;
	count = 0;
	owner = getpid();
	if (inherited >= 0 && histograms_receive(inherited, &all, e) == 0)
		return 0;
	return histograms_open(MOST_PROCESSES, false, &all, e);
}

static void close_unused(void)
{
	if (count)
		return;
	histograms_close(all);
	all = NULL;
}

static int begin(const struct bpf_request *request, struct histogram **h, struct error *e)
{
	const struct histogram_options options = {
		.all = all,
		.pid = request->pid,
		.except = request->except,
		.frequency = request->frequency,
		.ranges = request->ranges,
		.range_count = request->range_count,
		.cell_count = request->cell_count,
	};
	int err = histogram_start(&options, h, e);

	if (err || (err = histogram_enable(*h)) == 0)
		return err;
	histogram_free(*h);
	return error_set(e, -err, "cannot profile process %d", request->pid);
}

static int start(const struct bpf_request *request, void **out, struct bpf_counts *counts,
		 char *why, size_t size)
{
	struct histogram *h;
	struct error e = { 0 };
	int err = open_all(request->inherited, &e);

	err = err ?: begin(request, &h, &e);
	if (err) {
		snprintf(why, size, "%s", e.what);
		close_unused();
		return err;
	}
	count++;
	*out = h;
	*counts = (struct bpf_counts){ histogram_state(h), histogram_cells(h),
				       histogram_period_ns(h) };
	return 0;
}

static int share(int socket)
{
	return all ? histograms_send(all, socket) : -ENOENT;
}

static void stop(void *histogram)
{
	histogram_stop(histogram);
}

static bool counts(const void *histogram)
{
	return histogram_counts(histogram);
}

static void free_histogram(void *histogram)
{
	histogram_free(histogram);
	count--;
	close_unused();
}

__attribute__((visibility("default"))) const struct bpf_module PROFIL_BPF_MODULE = {
	.start = start,
	.share = share,
	.stop = stop,
	.counts = counts,
	.free = free_histogram,
};
