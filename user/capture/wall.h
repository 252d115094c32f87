/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_WALL_H
#define PROFIL_CAPTURE_WALL_H

#include "bpf/wall.h"
#include "capture/capture.h"
#include "capture/process.h"
#include "capture/cgroup.h"
#include "util/error.h"
#include "util/index.h"

struct bpf_object;
struct kernel_types;

/* Whose threads are in the account. */
struct wall_settings {
	bool everyone;	 /* else only members of this object: capture/members.h */
	bool one_thread; /* members are threads */
	const struct bpf_object *members;
	struct kernel_types *types;
	struct whom whom; /* with everyone: whose alone */
};

/* Threads, and where each of them is. */
struct wall_threads {
	struct wall_thread *list;
	size_t count, room;
	struct index index;
};

/* They follow which control groups are made, and which threads enter. Bound: size. */
#define WALL_GROUP_PROGRAMS 2

/* A control group with a quota, or above one. */
struct wall_quota {
	uint64_t id;
	struct wall_group group;
};

/* Sorted by ID. */
struct wall_quotas {
	struct wall_quota *list;
	size_t count, room;
};

/* The account of wall time. Zero-initialised is none. */
struct wall {
	struct wall_bpf *bpf;
	int look, exits; /* descriptors of the iterator, and of the program at exits; 0: none */
	int group_fds[WALL_GROUP_PROGRAMS]; /* of those that follow control groups */
	struct ring_buffer *ring;
	struct wall_threads last;  /* as they were when the window began */
	struct wall_threads ended; /* since then: their last values */
	uint64_t exits_lost_before, quotas_lost_before;
	uint64_t next_clock_ns; /* when to measure the scheduler's clock again */
	uint64_t begin_ns;	/* of the window: CLOCK_MONOTONIC */
	int64_t begin_offset;
	struct wall_threads now;		/* at the last wall_look() */
	uint64_t look_ns;			/* when that was: CLOCK_MONOTONIC */
	struct wall_quotas last_quotas, quotas; /* when the window began, and at the last look */
	/* The last window: */
	struct capture_wall *rows;
	size_t row_count, row_room;
	uint64_t exits_lost, quotas_lost;
	char **groups; /* copies of table->groups[], which may be forgotten; NULL: not needed */
	size_t group_count;
	struct capture_throttled *throttled;
	size_t throttled_count, throttled_room;
};

/* Loads the programs. Returns 0 or a negative errno with *e set, as do the calls below. */
int wall_open(struct wall *wall, const struct wall_settings *settings, struct error *e);

/* A descriptor that is readable when many threads have ended; owned by wall. */
int wall_fd(const struct wall *wall);

/* From CLOCK_MONOTONIC to the scheduler's clock, as measured last. */
int64_t wall_clock_offset(const struct wall *wall);

/* The account begins: members_add() has been called for those that run. */
int wall_begin(struct wall *wall, struct error *e);

/* Reads the values of threads that have ended: to be called ten times a second. */
int wall_handle(struct wall *wall, struct error *e);

/*
 * Ends a window: asks the kernel about all threads. Each one's window ends when its turn has come,
 * and its next begins there.
 */
int wall_look(struct wall *wall, struct error *e);

/* After wall_look(): makes a row for each thread that was there in the window. table: names them.
 */
int wall_cut(struct wall *wall, struct process_table *table, struct error *e);

void wall_free(struct wall *wall);

#endif
