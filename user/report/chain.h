/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_CHAIN_H
#define PROFIL_REPORT_CHAIN_H

#include <stdbool.h>
#include <string.h>

#include "profile/profile.h"
#include "profile/thread_state.h"
#include "util/index.h"

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
	uint32_t holder;    /* of a lock: the thread that had it; 0: unknown */
	const char *label;  /* for whom it worked; NULL: unknown. Equal texts are one. */
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
	const char *label; /* the name of a label; NULL: no sample has it */
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
	bool *is_libc;	  /* of each image */
};

/*
 * label: the name of the label that says for whom threads worked, as "query"; NULL: none. Returns 0
 * or -ENOMEM; segments_free() in any case. The profile must outlive them.
 */
int segments_make(const struct profile *p, const char *label, struct segments *s);
void segments_free(struct segments *s);

/* The first of a thread's segments that ends behind a time, or the end of them. */
size_t segments_after(const struct segments *s, uint32_t thread, uint64_t time_ns);

/* For whom a thread worked in an interval without waits; NULL: unknown. */
const char *segments_run_label(const struct segments *s, uint32_t thread,
			       const struct time_interval *run);

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

/* Whether a wait has this reason. */
static inline bool segment_is_for(const struct segment_kind *kind, const char *reason)
{
	return kind->reason_size == strlen(reason) &&
	       memcmp(kind->reason, reason, kind->reason_size) == 0;
}

/*
 * Why an interval took a thread so long: a tree. Below the time in which a thread was blocked is
 * what the thread that ended that did meanwhile, and so on. What a node took is the sum of what its
 * children took, if it has any.
 *
 * - A thread that was idle meanwhile began to work for the other only when that ended: before, the
 *   thread that woke it counts. Not if the other waits for what this one holds, or for its end.
 * - One that woke another thread in the same state meanwhile worked for that one first.
 * - Who waited for a lock when another began to, and then got it before, had no part in that: the
 *   one before it counts, up to the holder.
 * - A thread that the waiting one woke before it slept was runnable from then on, even if its CPU
 *   noticed that later.
 * - Before a thread began, its creator counts, as of a server that makes a process for each client.
 * - A wait for a lock that has not ended is for who has it.
 * - A timer that ends a wait which then goes on at the same place (poll with a time limit) is not
 *   the cause.
 */

enum chain_kind {
	CHAIN_WHOLE, /* the first node */
	CHAIN_RAN,
	CHAIN_FUNCTION,	  /* below it, by ticks: the location `what` */
	CHAIN_RUNNABLE,	  /* no free CPU */
	CHAIN_OTHER,	  /* below it: the thread ran there */
	CHAIN_UNRECORDED, /* below it: nobody who was recorded did */
	CHAIN_SLEPT,	  /* blocked or idle */
	CHAIN_EARLIER,	  /* the thread was busy with something else before */
	CHAIN_UNKNOWN,	  /* `what`: enum chain_unknown */
};

enum chain_unknown {
	CHAIN_NO_WAKER,	 /* it is unknown who ended the wait */
	CHAIN_NOT_ENDED, /* the wait had not ended when the recording did */
	CHAIN_NOT_SEEN,	 /* that thread was not recorded */
	CHAIN_NOT_ALIVE, /* the thread had not begun, or was exiting */
	CHAIN_LOST,	 /* times of waits were lost */
	CHAIN_NO_CPU,	 /* on which CPU it was to run */
	CHAIN_CIRCLE,	 /* threads that wait for each other: the file is wrong */
	CHAIN_TOO_LONG,	 /* more than is followed */
	CHAIN_UNKNOWNS,
};

#define CHAIN_NONE UINT32_MAX

/* Two sums: of all turns, and of those that are compared with them; or the first alone. */
#define CHAIN_SUMS 2

struct chain_node {
	enum chain_kind kind;
	uint32_t thread; /* number of one of the threads that it stands for */
	uint32_t what;	 /* by its kind; of CHAIN_SLEPT a sample with its state, reason and waker */
	const char *label; /* for whom the thread worked: segments.label; NULL: unknown */
	uint64_t ns[CHAIN_SUMS];
	uint64_t ticks[CHAIN_SUMS];
	/* Of these, those whose stack chain.within has: of ns, where it waited; of ticks. */
	uint64_t within_ns[CHAIN_SUMS], within_ticks[CHAIN_SUMS];
	uint32_t parent, first_child, next;
	uint32_t children;
};

struct chain {
	const struct segments *s;
	bool by_name;	    /* threads of one name are one */
	unsigned int sums;  /* bits: to which of them what follows is added */
	const bool *within; /* of each sample: its stack has a function; or NULL */
	struct chain_node *nodes;
	size_t count, room;
	struct index index;
	uint64_t steps; /* so far */
	bool cut;	/* there were too many */
};

/* Returns 0 or -ENOMEM; chain_free() in any case. It has one node, number 0, without a time. */
int chain_begin(struct chain *c, const struct segments *s, bool by_name);

/* Adds what a thread did in an interval below the first node. Returns 0 or -ENOMEM. */
int chain_add(struct chain *c, uint32_t thread, const struct time_interval *interval);

/*
 * Adds each part of an interval in which a thread was blocked below the first node. Returns 0 or
 * -ENOMEM.
 */
int chain_add_blocked(struct chain *c, uint32_t thread, const struct time_interval *interval);

/*
 * When all has been added: splits what ran among functions by their ticks, and sorts children, most
 * of the given sum first.
 */
int chain_end(struct chain *c, int sum);

/*
 * Whom a sample's waits are for, where nodes show it: who has the lock, unless threads of one name
 * are one; the disk. NULL: none, or unknown.
 */
const char *chain_peer(const struct chain *c, uint32_t sample);
void chain_free(struct chain *c);

#endif
