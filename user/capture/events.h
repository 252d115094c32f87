/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_EVENTS_H
#define PROFIL_CAPTURE_EVENTS_H

#include <linux/perf_event.h>

#include "capture/capture.h"
#include "capture/members.h"

struct event {
	int fd, cpu;
	uint64_t enabled_ns; /* how long it has ticked, when that was last read; 0: never was */
};

/* The clocks of all CPUs: a perf event on each. Zero-initialised (but for attr) is none. */
struct event_set {
	struct perf_event_attr attr;
	uint64_t period_ns; /* between two ticks of a CPU; of cycles: about */
	struct event *events;
	size_t count, room;
	bool incomplete; /* some CPUs have none, as no member may run there */
};

/* Chooses the clock and fills in set->attr and set->period_ns. */
int events_prepare(struct event_set *set, enum capture_event event, unsigned int frequency,
		   struct error *e);

/* "cpu-clock" or "cycles". */
const char *events_name(const struct event_set *set);

/* Whether it is a clock, which ticks whatever the CPU does. */
bool events_count_time(const struct event_set *set);

/*
 * Opens one event for every CPU that is online and has none, with the BPF program on it, but for
 * those CPUs that no member may run on; members NULL: for all. From then on they tick. To be called
 * again now and then, as CPUs come and go.
 */
int events_open(struct event_set *set, const struct members *members, int program_fd,
		struct error *e);

/* Ends them: no tick comes any more after this. */
void events_stop(struct event_set *set);

void events_close(struct event_set *set);

/* The period of the scheduler's tick; 0: the kernel does not tell. */
uint64_t events_tick_ns(void);

#endif
