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
	enum capture_event kind;	   /* CAPTURE_CPU_CLOCK, CAPTURE_CYCLES or no clock */
	const struct capture_point *point; /* the one of all CPUs is enough for it */
	uint64_t tick_ns;  /* 0: no clock; between two ticks of a CPU; with cycles: approximately */
	uint64_t phase_ns; /* for how long events_open() waits, which makes the first tick random */
	uint64_t begin_ns; /* CLOCK_MONOTONIC: from here on those that it has opened last tick */
	struct event *events;
	size_t count, room;
	bool incomplete; /* some CPUs have no event, as no member may run there */
};

/*
 * Chooses the clock, or the event; sets set->attr, kind, point, tick_ns and phase_ns. point: stays
 * valid, its file until it is opened; NULL: it is none. Returns 0 or a negative errno.
 */
int events_prepare(struct event_set *set, enum capture_event event,
		   const struct capture_point *point, unsigned int frequency, struct error *e);

/*
 * Opens an event with the BPF program on each online CPU that has none, if a member may run there;
 * members NULL: on all. They tick from then on. To be called again from time to time, as CPUs come
 * and go. Returns 0 or a negative errno.
 */
int events_open(struct event_set *set, const struct members *members, int program_fd,
		struct error *e);

/* Closes the events: no tick after this. */
void events_stop(struct event_set *set);

/*
 * Opens the directory of tracefs, where it is mounted or not. Returns a descriptor, or a negative
 * errno.
 */
int events_open_tracefs(struct error *e);

/* Frees the set; closes its events, if that was not done. */
void events_close(struct event_set *set);

/* The period of the scheduler's tick; 0: unknown. */
uint64_t events_tick_ns(void);

/*
 * Returns the period of a clock with `frequency` ticks a second that is not in step with the
 * scheduler's tick, whose period is tick_ns (0: unknown): a task that the scheduler's tick wakes
 * runs right after it and may always be done before the next, so a clock in step would never meet
 * it. It is the period nearest to NS_PER_S / frequency, at most 0.5 % off, whose ticks meet all
 * phases of the scheduler's period within a second or 256 ticks, whichever is longer.
 */
uint64_t period_choose(unsigned int frequency, uint64_t tick_ns);

/* What a tick of a timer perf event costs without a program. Zero-initialised is unknown. */
struct tick_cost {
	uint64_t ns;	  /* 0: unknown */
	uint64_t next_ns; /* when it is measured again */
	long cpus;	  /* that there were when it was measured */
};

/*
 * Measures it: by the gaps that such an event causes in a loop that reads the clock. Takes 3 ms, up
 * to 30 ms on a busy machine, so it is done each hour, when CPUs have come or gone, and while it is
 * unknown. If it cannot be measured now, the last one stays.
 */
void tick_cost_update(struct tick_cost *cost, uint64_t now);

#endif
