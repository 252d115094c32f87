/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_WAITS_H
#define PROFIL_CAPTURE_WAITS_H

#include "bpf/wait.h"
#include "capture/counts.h"
#include "capture/program.h"
#include "util/error.h"

struct sample_bpf;
struct unwind;
struct unwind_found;

/* A user stack that was walked here: of a thread that waited when the recording began, or of a
 * copy. */
struct waits_walked {
	uint32_t slot; /* of its wait, in entries */
	uint32_t depth;
	uint8_t end, by_frame_pointer;
	uint64_t *pcs;
};

/* As a struct wait_record, with CLOCK_MONOTONIC. */
struct waits_timed {
	uint64_t end_ns, blocked_ns, runnable_ns;
	uint16_t slot, waker, whom; /* in entries; the last two as wait_ends() */
	uint16_t cpu;		    /* that the thread got then, or TIMED_NO_CPU */
};

#define TIMED_NO_CPU UINT16_MAX

/* What the programs have added up, and what belongs to it. */
struct waits_window {
	struct wait_entry *entries;
	struct wake_entry *wakes;
	struct wait_peer *peers; /* of each entry */
	struct wait_share *shares;
	struct wait_counters counters; /* of all CPUs */
};

/* What was read meanwhile. */
struct waits_read {
	struct waits_walked *walked; /* by slot, ascending, once it has ended */
	size_t walked_count, walked_room;
	struct waits_timed *timed;
	size_t timed_count, timed_room;
	size_t untimed_count; /* so many found no room there */
};

/* How long threads wait, by stack and reason: bpf/waits.h. Zero-initialised is none. */
struct waits {
	/* descriptors of attached programs; 0: none */
	int program, forks, exits, waking, completions, begin, end;
	struct wait_entry *entries;
	struct wake_entry *wakes;
	struct wait_counters *counters; /* of each CPU */
	struct wait_share *shares;
	struct wait_peer *peers;
	size_t cpus;
	struct wait_ring *rings;	    /* for each possible CPU */
	struct waits_read now, ended;	    /* of the window, and of the one before */
	struct waits_window taken;	    /* copies, of the one before */
	uint64_t ended_ns;		    /* CLOCK_MONOTONIC: when that ended; 0: none has */
	size_t timed_max;		    /* the memory for times is limited */
	uint64_t position, words;	    /* as wait_position and wait_words of the programs */
	volatile uint32_t *window, *paused; /* of the programs */
	volatile int64_t *clock_offset;	    /* of the programs */
};

/*
 * Before the load of the sample program: chooses the programs and maps. every: the time of each
 * wait is kept, not of long ones alone. Returns 0 or -errno.
 */
int waits_choose(struct sample_bpf *bpf, bool cfi, bool every, size_t cpus,
		 struct kernel_types *types);

/* After the load and the choice of members: waits that begin from now on are followed. */
int waits_attach(struct waits *w, const struct sample_bpf *bpf, bool cfi, size_t cpus,
		 struct error *e);

/*
 * And those that are under way, as from now on. `unwind`, or NULL: walks their stacks.
 * clock_offset, also below: see struct wall_shared.
 */
int waits_begin(struct waits *w, int64_t clock_offset, struct unwind *unwind, struct error *e);

/*
 * Adds the user stack of an entry, as it was at a time: what is found behind kernel_depth frames.
 * Returns 0 or -ENOMEM.
 */
int waits_add_walked(struct waits *w, uint32_t slot, uint64_t time_ns, uint32_t kernel_depth,
		     const struct unwind_found *found);

/* Reads when waits were. Returns 0 or -ENOMEM. */
int waits_read(struct waits *w, int64_t clock_offset);

/*
 * Ends a window, or with `last` the recording: waits under way are added up to now. What was added
 * up is taken from the programs, which begin with nothing: waits_begin() is to follow at once.
 * arena: see waits_take(). Returns 0 or a negative errno with e set.
 */
int waits_end(struct waits *w, int64_t clock_offset, struct stack_chunk *arena, bool last,
	      const struct program_barrier *barrier, struct error *e);

/*
 * Adds those of the window that has ended to `counts`: the count of each is its nanoseconds, its
 * `waiting` how many waits these were, its cpu the reason (enum wait_reason). A stack whose thread
 * then was runnable has another one, with WAIT_CPU. When they were is in counts.waits; without room
 * for that, a part of it. Adds who ended them to `wakers`: the count of each is the nanoseconds of
 * these waits, and its cpu WAKER_THREAD and the like. The arena is still that of the waits.
 * blocked_ns: how long all threads were blocked, by the account of wall time. Returns 0 or -ENOMEM.
 */
int waits_take(struct waits *w, const struct stack_chunk *arena, uint64_t blocked_ns,
	       struct counts *counts, struct counts *wakers);

/*
 * How many waits of that window are without their stack, as there was no room for it. most: the
 * share of the user who has the most of them.
 */
uint64_t waits_no_room(const struct waits *w, struct wait_share *most);

/* bpf: of waits_attach(), if that was called. */
void waits_free(struct waits *w, const struct sample_bpf *bpf);

#endif
