/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_SEGMENTS_H
#define PROFIL_REPORT_SEGMENTS_H

#include <stdbool.h>

#include "profile/profile.h"
#include "profile/thread_state.h"

/*
 * What threads did when: the waits of a recording, by thread and time. Files are not trusted: waits
 * of a thread that overlap are cut, so that it is in one state at a time.
 */

/* A wait. What is between two of a thread, it ran. */
struct segment {
	uint64_t since_ns, until_ns;
	uint32_t sample;
	uint32_t cpu; /* that the thread got next; WAIT_NO_CPU: unknown */
};

struct segment_thread {
	uint32_t pid, generation, tid;
	const char *comm;    /* the last one */
	const char *process; /* its process's name */
	size_t first, count; /* of its segments */
	size_t first_tick, tick_count;
	/*
	 * When it lived, as far as it was recorded. The account of wall time has how long, waits
	 * where that began.
	 */
	struct time_interval life;
	bool began, ended;   /* in the recording */
	uint64_t wall_ns;    /* its life by the account; 0: unknown */
	uint64_t ran_ns;     /* by the account */
	uint64_t untimed_ns; /* of its waits, by their sums: it is unknown when these were */
	/*
	 * The part of the time between its waits in which it did run: less than 1 where waits
	 * have no times.
	 */
	double certain;
};

/* Of the waits of a sample. */
struct segment_kind {
	uint32_t thread;    /* its number */
	uint32_t waker_tid; /* 0: unknown, or no thread */
	const char *waker;  /* its name; NULL: unknown */
	const char *peer;   /* whom they were for; NULL: unknown */
	const char *reason; /* reason_size bytes; NULL: it waited for a CPU */
	size_t reason_size;
	enum thread_state state;
	uint32_t place; /* number of where it slept */
};

/*
 * Where in its program a thread slept: the locations of the innermost functions that have names and
 * do not only wait for others; if some are an interpreter's, from the innermost of these on.
 */
#define SEGMENT_PLACE_DEPTH 3
struct segment_place {
	uint64_t functions[SEGMENT_PLACE_DEPTH]; /* segment_function(); UINT64_MAX: no more */
	uint32_t locations[SEGMENT_PLACE_DEPTH];
};

/* A thread ran, on a CPU that is known. */
struct segment_run {
	uint64_t since_ns, until_ns;
	uint32_t cpu, thread;
};

struct segments {
	const struct profile *p;
	struct time_interval recorded;
	struct segment_thread *threads;
	size_t thread_count;
	uint64_t unattributed_ns; /* waits of which it is unknown whose they were */
	struct segment *all;	  /* by thread and time */
	size_t count;
	struct segment_kind *kinds; /* by the number of the sample */
	struct segment_place *places;
	size_t place_count;
	struct segment_tick {
		uint64_t time_ns;
		uint32_t sample;
	} * ticks;		  /* by thread and time */
	struct segment_run *runs; /* by CPU and time, without overlap */
	size_t run_count;
	struct segment_wake {
		uint64_t time_ns;
		uint32_t tid;	  /* of the waker */
		uint32_t segment; /* that it ended */
	} * wakes;		  /* by TID and time */
	size_t wake_count;
	uint32_t *by_tid; /* numbers of threads, by TID and begin */
};

/* Returns 0 or -ENOMEM; segments_free() in any case. The profile must outlive them. */
int segments_make(const struct profile *p, struct segments *s);
void segments_free(struct segments *s);

/* The number of the thread with this TID that had begun by then; or PROFILE_NONE. */
uint32_t segments_thread(const struct segments *s, uint32_t tid, uint64_t time_ns);

/* The first of a thread's segments that ends behind a time, or the end of them. */
size_t segments_after(const struct segments *s, uint32_t thread, uint64_t time_ns);

/* The first of a thread's ticks from a time on, or the end of them. */
size_t segments_tick_after(const struct segments *s, uint32_t thread, uint64_t time_ns);

/* The first run on a CPU that ends behind a time; else what follows the CPU's last one. */
size_t segments_run_after(const struct segments *s, uint32_t cpu, uint64_t time_ns);

/* The first of a waker's wake-ups from a time on; else what follows its last one. */
size_t segments_wake_after(const struct segments *s, uint32_t tid, uint64_t time_ns);

/* The function of a location, or the location itself if it has no name; a key. */
static inline uint64_t segment_function(const struct profile *p, uint32_t location)
{
	const struct profile_location *l = &p->locations[location];

	return l->line_count ? p->lines[l->first_line].function : (1ULL << 32) + location;
}

static inline const struct segment_kind *segment_kind(const struct segments *s,
						      const struct segment *segment)
{
	return &s->kinds[segment->sample];
}

#endif
