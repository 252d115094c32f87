/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_EVENTS_H
#define PROFIL_CAPTURE_EVENTS_H

#include <linux/perf_event.h>

#include "capture/capture.h"

/* The programs to run on a tick. */
struct event_programs {
	int sample_fd;
	int late_fd; /* for threads that may have inherited an event as well */
};

struct event {
	int fd;
	pid_t tid; /* 0 for an event of a CPU */
	bool late;
};

/* All open perf events of a capture. Zero-initialised (but for attr) is empty. */
struct event_set {
	struct perf_event_attr attr;
	struct event *events;
	size_t count, room;
};

/* Chooses the clock and fills in set->attr. */
int events_prepare(struct event_set *set, const struct capture_options *options, struct error *e);

/* "task-clock", "cpu-clock" or "cycles". */
const char *events_name(const struct event_set *set);

/* Whether the event's own count is CPU time in nanoseconds. */
bool events_count_time(const struct event_set *set);

/*
 * One event for every thread that the processes have, until no new thread appears. A thread
 * that appears in a later look may be the child of one that had its event already and so have
 * inherited it: it gets the `late` program, and whoever reads the counts drops the late ones of
 * a thread that has both.
 */
int events_open_processes(struct event_set *set, const pid_t *pids, size_t pid_count,
			  const struct event_programs *programs, struct error *e);

/* One event for one thread. -ESRCH when it has ended. */
int events_open_thread(struct event_set *set, pid_t tid, const struct event_programs *programs,
		       struct error *e);

/* One event for every CPU that is online. */
int events_open_cpus(struct event_set *set, const struct event_programs *programs, struct error *e);

/* No tick comes any more after this. */
void events_disable(struct event_set *set);

/* What an event and the ones inherited from it counted so far, 0 when it cannot be read. */
uint64_t events_read(const struct event *event);

void events_close(struct event_set *set);

/* perf_event_open(2), which has no wrapper in libc. Returns a descriptor or -errno. */
int perf_event_open(struct perf_event_attr *attr, pid_t tid, int cpu, int flags);

/* Explains a perf_event_open() that failed with `code`. Returns -code. */
int perf_event_error(struct error *e, int code, const char *what);

#endif
