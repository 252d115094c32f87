// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* libprofil's private module: what needs libbpf. */
#include "lib/bpf_module.h"

#include <stdio.h>

#include "capture/histogram.h"

static int start(const struct bpf_request *request, void **out, struct profil_state **state,
		 uint64_t **cells, char *why, size_t size)
{
	const struct histogram_options options = {
		.pid = request->pid,
		.except = request->except,
		.frequency = request->frequency,
		.ranges = request->ranges,
		.range_count = request->range_count,
		.cell_count = request->cell_count,
	};
	struct histogram *h;
	struct error e = { 0 };
	int err;

	err = histogram_start(&options, &h, &e);
	if (err) {
		snprintf(why, size, "%s", e.what);
		return err;
	}
	histogram_enable(h);
	*out = h;
	*state = histogram_state(h);
	*cells = histogram_cells(h);
	return 0;
}

static int rescan(void *histogram)
{
	struct error e;

	return histogram_rescan(histogram, 0, &e);
}

static void stop(void *histogram)
{
	histogram_stop(histogram);
}

static void free_histogram(void *histogram)
{
	histogram_free(histogram);
}

__attribute__((visibility("default"))) const struct bpf_module PROFIL_BPF_MODULE = {
	.start = start,
	.rescan = rescan,
	.stop = stop,
	.free = free_histogram,
};
