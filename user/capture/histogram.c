// SPDX-License-Identifier: GPL-2.0-only
#include "capture/histogram.h"

#include <errno.h>
#include <stdlib.h>

#include "capture/attach.h"
#include "capture/events.h"
#include "capture/profil_program.h"
#include "capture/sideband.h"
#include "util/clock.h"

/* Nobody shall be able to hold up its profiler by making threads without end. */
#define MOST_ATTACH_NS (200 * NS_PER_MS)

struct histogram {
	struct histogram_options options; /* but the ranges */
	struct profil_program profil;
	struct event_set events;
};

/* The threads that are to be counted, at *tids, which is the caller's to free(). */
static int list_counted(const struct histogram *h, pid_t **tids, size_t *count, struct error *e)
{
	size_t kept = 0;
	int err = attach_list_threads(h->options.pid, tids, count, e);

	for (size_t i = 0; i < *count && !err; i++)
		if ((*tids)[i] != h->options.except)
			(*tids)[kept++] = (*tids)[i];
	*count = kept;
	return err;
}

static int load(struct histogram *h, bool churning, struct error *e)
{
	h->profil.range_count = h->options.range_count;
	h->profil.cell_count = h->options.cell_count;
	h->profil.pid = h->options.pid;
	h->profil.churning = churning;
	return profil_program_load(&h->profil, h->options.ranges, e);
}

/*
 * Most often the process has one thread, and that one is waiting for us: then nothing can go wrong,
 * and the records of all births on the machine are not needed. *done tells whether it was so.
 */
static int attach_only_thread(struct histogram *h, bool *done, struct error *e)
{
	size_t count;
	pid_t *tids;
	pid_t tid;
	int err = list_counted(h, &tids, &count, e);

	*done = false;
	if (err)
		return err;
	tid = count == 1 ? tids[0] : 0;
	free(tids);
	if (!tid)
		return 0;
	err = load(h, false, e);
	err = err ?: events_open_thread(&h->events, h->options.pid, tid, &h->profil.program, 0, e);
	if (err == -ESRCH)
		return 0; /* it ended, but others may be there by now */
	err = err ?: list_counted(h, &tids, &count, e);
	if (err)
		return err;
	*done = count == 1 && tids[0] == tid;
	free(tids);
	return 0;
}

static int attach_all_threads(struct histogram *h, struct error *e)
{
	struct attach_request request = {
		.pids = &h->options.pid,
		.pid_count = 1,
		.except = h->options.except,
		.most_events = h->options.most_events,
		.most_ns = MOST_ATTACH_NS,
	};
	struct sideband *sideband;
	int err;

	events_close(&h->events);
	profil_program_free(&h->profil);
	err = load(h, true, e);
	err = err ?: sideband_open(&sideband, e);
	if (err)
		return err;
	err = attach_processes(&h->events, &h->profil.program, sideband, &request, e);
	sideband_free(sideband);
	if (!err && h->events.count == 0)
		err = error_set(e, ESRCH, "cannot profile process %d", h->options.pid);
	return err;
}

static int start(struct histogram *h, struct error *e)
{
	bool done;
	int err;

	err = events_prepare_threads(&h->events, h->options.frequency, e);
	err = err ?: attach_only_thread(h, &done, e);
	if (!err && !done)
		err = attach_all_threads(h, e);
	h->options.ranges = NULL; /* the caller's, who may free them now */
	return err;
}

int histogram_start(const struct histogram_options *options, struct histogram **out,
		    struct error *e)
{
	struct histogram *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return error_no_memory(e);
	h->options = *options;
	err = start(h, e);
	if (err)
		histogram_free(h);
	else
		*out = h;
	return err;
}

void histogram_enable(struct histogram *h)
{
	__atomic_store_n(&h->profil.state->range_count, h->options.range_count, __ATOMIC_SEQ_CST);
}

int histogram_rescan(struct histogram *h, size_t most_events, struct error *e)
{
	size_t count;
	pid_t *tids;
	int err = list_counted(h, &tids, &count, e);

	if (err)
		return err;
	if (most_events && h->events.count + count > most_events)
		err = error_set(e, EDQUOT, "process %d takes more than %zu perf events",
				h->options.pid, most_events);
	else
		apart_update(&h->events.apart, tids, count);
	free(tids);
	return err;
}

void histogram_stop(struct histogram *h)
{
	events_stop(&h->events);
}

void histogram_free(struct histogram *h)
{
	if (!h)
		return;
	events_close(&h->events);
	profil_program_free(&h->profil);
	free(h);
}

struct profil_state *histogram_state(const struct histogram *h)
{
	return h->profil.state;
}

uint64_t *histogram_cells(const struct histogram *h)
{
	return h->profil.cells;
}

int histogram_state_fd(const struct histogram *h)
{
	return profil_program_state_fd(&h->profil);
}

int histogram_cells_fd(const struct histogram *h)
{
	return profil_program_cells_fd(&h->profil);
}

size_t histogram_events(const struct histogram *h)
{
	return h->events.count + h->events.apart.open;
}
