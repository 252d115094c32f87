// SPDX-License-Identifier: GPL-2.0-only
#include "capture/attach.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "util/array.h"
#include "util/clock.h"
#include "util/number.h"

/*
 * fork(2) passes events on some time before it tells of the birth. A birth that is told longer
 * than this after its maker's event was there has inherited it.
 */
#define FORK_NS (2 * NS_PER_MS)
/* A birth that is not told after so long is not going to be: its record was lost. */
#define RECORD_NS (100 * NS_PER_MS)

/* The kernel tells of a birth right after a look can see it. */
static const struct timespec record_delay = { .tv_nsec = NS_PER_MS };

/* What is known of a thread's events: sets of generations. */
struct coverage {
	pid_t tid;
	uint8_t has;	  /* it surely has an event of these */
	uint8_t may_have; /* it may have one of these */
	/* Its own event: opened in this time, with a program of this generation */
	unsigned int generation;
	uint64_t begin_ns, end_ns; /* 0: it has none of its own */
};

struct thread_list {
	pid_t *tids;
	size_t count, room;
};

struct attaching {
	struct event_set *set;
	struct program *program;
	struct sideband *sideband;
	const struct attach_request *request;
	struct coverage *threads;
	size_t count, room;
	struct index by_tid;
	struct thread_list *found; /* in one look: of each process */
	size_t needed, untold;	   /* in one look: threads that needed an event, or may need one */
	uint64_t start_ns;
};

static bool tid_equal(const void *array, uint32_t number, const void *key)
{
	return ((const struct coverage *)array)[number].tid == *(const pid_t *)key;
}

static struct coverage *find(const struct attaching *a, pid_t tid)
{
	uint32_t number = index_find(&a->by_tid, hash_u64(tid, 0), tid_equal, a->threads, &tid);

	return number == INDEX_NONE ? NULL : &a->threads[number];
}

static int set_coverage(struct attaching *a, const struct coverage *coverage)
{
	struct coverage *thread = find(a, coverage->tid);

	if (thread) {
		*thread = *coverage;
		return 0;
	}
	if (array_reserve(&a->threads, &a->room, a->count + 1, sizeof(*a->threads)) ||
	    index_add(&a->by_tid, hash_u64(coverage->tid, 0), a->count))
		return -ENOMEM;
	a->threads[a->count++] = *coverage;
	return 0;
}

/* What a thread that was made at this time has from its maker; NULL: a maker without events. */
static struct coverage inherit(pid_t tid, const struct coverage *maker, uint64_t time_ns)
{
	struct coverage born = { .tid = tid };
	uint8_t own;

	if (!maker)
		return born;
	own = 1 << maker->generation;
	born.has = maker->has;
	born.may_have = maker->may_have;
	if (!maker->end_ns)
		return born;
	if (time_ns <= maker->end_ns + FORK_NS)
		born.has &= ~own;
	if (time_ns >= maker->begin_ns && time_ns <= maker->end_ns + FORK_NS)
		born.may_have |= own;
	return born;
}

static int take_record(const struct sideband_record *record, void *context)
{
	struct attaching *a = context;
	struct coverage born;

	if (record->type == SIDEBAND_FORK) {
		born = inherit(record->tid, find(a, record->parent_tid), record->time_ns);
		if (set_coverage(a, &born))
			return -ENOMEM;
	}
	return a->request->take ? a->request->take(record, a->request->context) : 0;
}

static int list_threads(struct thread_list *list, pid_t pid, struct error *e)
{
	char path[64];
	struct dirent *entry;
	uint64_t tid;
	DIR *directory;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	directory = opendir(path);
	if (!directory)
		return errno == ENOENT ? 0 : error_set(e, errno, "cannot read %s", path);
	while (!err && (entry = readdir(directory))) {
		if (number_parse(entry->d_name, 1, INT32_MAX, &tid))
			continue;
		if (array_reserve(&list->tids, &list->room, list->count + 1, sizeof(pid_t)))
			err = error_no_memory(e);
		else
			list->tids[list->count++] = tid;
	}
	closedir(directory);
	return err;
}

int attach_list_threads(pid_t pid, pid_t **tids, size_t *count, struct error *e)
{
	struct thread_list list = { 0 };
	int err = list_threads(&list, pid, e);

	if (!err && list.count == 0)
		err = error_set(e, ESRCH, "cannot profile process %d", pid);
	if (err)
		free(list.tids);
	*tids = err ? NULL : list.tids;
	*count = list.count;
	return err;
}

static int check_events(const struct attaching *a, struct error *e)
{
	const struct attach_request *request = a->request;

	if (!request->most_events || a->set->count < request->most_events)
		return 0;
	return error_set(e, EDQUOT, "process %d takes more than %zu perf events", request->pids[0],
			 request->most_events);
}

static int check_time(const struct attaching *a, struct error *e)
{
	const struct attach_request *request = a->request;

	if (!request->most_ns || now_ns() - a->start_ns < request->most_ns)
		return 0;
	return error_set(e, EAGAIN, "process %d makes threads faster than they can be attached to",
			 request->pids[0]);
}

/* An event of the lowest generation that the thread surely has none of. */
static int open_thread(struct attaching *a, pid_t pid, struct coverage coverage, struct error *e)
{
	int err = check_events(a, e);

	if (err)
		return err;
	while (coverage.may_have & 1 << coverage.generation)
		coverage.generation++;
	if (coverage.generation == PROGRAM_GENERATIONS)
		return 0; /* so often in doubt that it surely has inherited one */
	coverage.begin_ns = now_ns();
	err = events_open_thread(a->set, pid, coverage.tid, a->program, coverage.generation, e);
	if (err && err != -ESRCH)
		return err;
	/*
	 * One that has ended needs none, and is marked so: a first thread stays in sight as long as
	 * there are others. But since the look it may have made another, that has none either.
	 */
	coverage.end_ns = now_ns();
	coverage.has |= 1 << coverage.generation;
	a->needed++;
	return set_coverage(a, &coverage) ? error_no_memory(e) : 0;
}

static int cover_thread(struct attaching *a, pid_t pid, pid_t tid, bool first_look, struct error *e)
{
	const struct coverage *known = find(a, tid);
	struct coverage untold = { .tid = tid };

	if (tid == a->request->except)
		return 0;
	if (known)
		return known->has ? 0 : open_thread(a, pid, *known, e);
	if (first_look) /* it was there before there was any event */
		return open_thread(a, pid, untold, e);
	if (now_ns() - a->start_ns < RECORD_NS) {
		a->untold++;
		return 0;
	}
	untold.may_have = 1;
	return open_thread(a, pid, untold, e);
}

/* One look at all threads. The lists are made before the first event of the look is opened. */
static int look(struct attaching *a, bool first_look, struct error *e)
{
	const struct attach_request *request = a->request;
	int err = 0;

	a->needed = a->untold = 0;
	for (size_t i = 0; i < request->pid_count && !err; i++) {
		a->found[i].count = 0;
		err = list_threads(&a->found[i], request->pids[i], e);
	}
	if (!err && sideband_read(a->sideband, take_record, a))
		err = error_no_memory(e);
	for (size_t i = 0; i < request->pid_count; i++)
		for (size_t k = 0; k < a->found[i].count && !err; k++)
			err = cover_thread(a, request->pids[i], a->found[i].tids[k], first_look, e);
	return err;
}

static void free_attaching(struct attaching *a)
{
	for (size_t i = 0; i < a->request->pid_count; i++)
		free(a->found[i].tids);
	free(a->found);
	free(a->threads);
	index_free(&a->by_tid);
}

int attach_processes(struct event_set *set, struct program *program, struct sideband *sideband,
		     const struct attach_request *request, struct error *e)
{
	struct attaching a = {
		.set = set,
		.program = program,
		.sideband = sideband,
		.request = request,
		.found = calloc(request->pid_count, sizeof(*a.found)),
		.start_ns = now_ns(),
	};
	int err;

	if (!a.found)
		return error_no_memory(e);
	err = look(&a, true, e);
	/* Until a look finds no thread that needs an event, or may need one. */
	while (!err && (a.needed || a.untold)) {
		if (!a.needed)
			nanosleep(&record_delay, NULL);
		err = check_time(&a, e);
		err = err ?: look(&a, false, e);
	}
	free_attaching(&a);
	return err;
}
