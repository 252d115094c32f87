// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* libprofil's private module: what needs libbpf. */
#include "lib/bpf_module.h"

#include <bpf/libbpf.h>
#include <stdio.h>

#include "capture/histogram.h"

/* The program may use the same libbpf: what it does with libbpf's messages is its own affair. */
static libbpf_print_fn_t program_print;

static void enter(void)
{
	program_print = libbpf_set_print(NULL);
}

static void leave(void)
{
	libbpf_set_print(program_print);
}

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

	enter();
	err = histogram_start(&options, &h, &e);
	leave();
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
	int err;

	enter();
	err = histogram_rescan(histogram, &e);
	leave();
	return err;
}

static void stop(void *histogram)
{
	enter();
	histogram_stop(histogram);
	leave();
}

static void free_histogram(void *histogram)
{
	enter();
	histogram_free(histogram);
	leave();
}

__attribute__((visibility("default"))) const struct bpf_module PROFIL_BPF_MODULE = {
	.start = start,
	.rescan = rescan,
	.stop = stop,
	.free = free_histogram,
};
