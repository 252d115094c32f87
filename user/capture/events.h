/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_EVENTS_H
#define PROFIL_CAPTURE_EVENTS_H

#include <linux/perf_event.h>

#include "capture/capture.h"
#include "capture/members.h"

struct event {
	int fd, cpu;
	uint64_t enabled_ns; /* for how long it has ticked, as last read; 0: not yet read */
};

/* The clocks of all CPUs: a perf event on each. Zero-initialised, except attr, is empty. */
struct event_set {
	struct perf_event_attr attr;
	enum capture_event kind; /* CAPTURE_CPU_CLOCK, CAPTURE_CYCLES or no clock */
	uint64_t tick_ns;  /* 0: no clock; between two ticks of a CPU; with cycles: approximately */
	uint64_t phase_ns; /* for how long events_open() waits, which makes the first tick random */
	uint64_t begin_ns; /* CLOCK_MONOTONIC: from here on those that it has opened last tick */
	struct event *events;
	size_t count, room;
	bool incomplete; /* some CPUs have no event, as no member may run there */
};

/* Chooses the clock; sets set->attr, kind, tick_ns and phase_ns. Returns 0 or a negative errno.
 */
int events_prepare(struct event_set *set, enum capture_event event, unsigned int frequency,
		   struct error *e);

/*
 * Opens an event with the BPF program on each online CPU that has none, if a member may run there;
 * members NULL: on all. They tick from then on. To be called again from time to time, as CPUs come
 * and go. Returns 0 or a negative errno.
 */
int events_open(struct event_set *set, const struct members *members, int program_fd,
		struct error *e);

/* Closes the events: no tick after this. */
void events_stop(struct event_set *set);

/* Frees the set; closes its events, if that was not done. */
void events_close(struct event_set *set);

/* The period of the scheduler's tick; 0: unknown. */
uint64_t events_tick_ns(void);

#endif
