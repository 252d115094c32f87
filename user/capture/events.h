/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_EVENTS_H
#define PROFIL_CAPTURE_EVENTS_H

#include "capture/apart.h"
#include "capture/capture.h"
#include "capture/cgroup.h"
#include "capture/perf_event.h"
#include "capture/program.h"

struct event {
	int fd;
	pid_t tid;		 /* -1 for an event of a CPU */
	unsigned int generation; /* of the program on it */
	uint64_t count; /* its own and that of the events inherited from it, once it has stopped */
	uint64_t group_ns; /* of a control group's event, once it has stopped: its CPU time there */
};

/* All open perf events of a capture. Zero-initialised (but for attr) is empty. */
struct event_set {
	struct perf_event_attr attr;
	struct event *events;
	struct apart apart; /* of the threads that have an event, and of those that made others */
	size_t count, room;
};

/* Whether events are of CPUs, whoever runs there, and not of tasks. */
bool events_are_of_cpus(const struct capture_options *options);

/* Chooses the clock and fills in set->attr. */
int events_prepare(struct event_set *set, const struct capture_options *options, struct error *e);

/* The task's clock, for threads and those that they make, until exec. */
int events_prepare_threads(struct event_set *set, unsigned int frequency, struct error *e);

/* "task-clock", "cpu-clock" or "cycles". */
const char *events_name(const struct event_set *set);

/* Whether the event's own count is CPU time in nanoseconds. */
bool events_count_time(const struct event_set *set);

/*
 * One event for one thread, with this generation of the program. -ESRCH when it has ended: then
 * the number may be that of a thread of another process than `pid` (0: any). No tick comes from
 * that one.
 */
int events_open_thread(struct event_set *set, pid_t pid, pid_t tid, struct program *program,
		       unsigned int generation, struct error *e);

/* One event for every CPU that is online; ticked by the group alone, unless it is NULL. */
int events_open_cpus(struct event_set *set, const struct cgroup *group, struct program *program,
		     struct error *e);

/* Ends them: no tick comes any more after this. Sets their counts. */
void events_stop(struct event_set *set);

/* The CPU time of the control group, after that. */
uint64_t events_group_ns(const struct event_set *set);

void events_close(struct event_set *set);

#endif
