/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_SAMPLE_PROGRAM_H
#define PROFIL_CAPTURE_SAMPLE_PROGRAM_H

#include "bpf/sample.h"
#include "capture/calls.h"
#include "capture/counts.h"
#include "capture/program.h"
#include "capture/tick.h"
#include "capture/unwind/unwind.h"
#include "capture/waits.h"
#include "capture/cgroup.h"

struct bpf_object;
struct bpf_program;

/* Which ticks to count, and how. */
struct sample_settings {
	uint32_t sides;	       /* SAMPLE_USER, ... */
	bool stacks;	       /* record call stacks, not pcs */
	struct unwind *unwind; /* how: by call frame information; NULL: by frame pointers */
	bool everyone;	       /* count all ticks, else members': capture/members.h */
	struct whom whom;      /* with everyone: whose alone */
	struct sample_victim {
		enum sample_victims kind;
		uint32_t pid;
		char comm[SAMPLE_COMM_SIZE];
		uint64_t group;
		bool group_is_v1;
	} victim;			  /* whose waits count */
	const struct member_owner *owner; /* see bpf/owner.h; NULL: members may be anybody's */
	bool one_thread, inherit;	  /* for members: see bpf/members.h */
	const struct tick *tick;	  /* run at the scheduler's tick; NULL: at perf events */
	bool windows; /* ticks go on when one ends: so do waits, and values of contexts */
	bool waits;   /* of threads are recorded, too: with `stacks` */
	const struct capture_point *point; /* not a tick; with stacks */
	bool every_wait;		   /* with waits: each has its time */
	bool calls;			   /* with waits: of a function are recorded, too */
	unsigned int waits_percent;	   /* see struct capture_options */
	bool contexts; /* values of processes' variables are read: bpf/context.h */
	bool cpus;     /* samples of different CPUs differ: always, if always_on */
	const struct sample_cells *cells; /* see bpf/sample.h; NULL: none */
	bool always_on;			  /* for a recording without an end, at some 100 Hz */
	uint64_t tick_ns;		  /* between two ticks of a CPU; 0: any */
};

/* The BPF program `sample` and the memory that it shares. Zero-initialised is none. */
struct sample_program {
	struct sample_bpf *bpf;
	struct sample_settings settings;
	struct kernel_types types;
	bool knows_waiting; /* ticks count how many threads wait for their CPU */
	/* For tests: */
	uint64_t arena_words; /* how much of the arena to use; 0: all */
	bool one_hash;	      /* give all stacks the same hash */
	uint32_t members_max; /* 0: MEMBERS_MAX */
	bool keeps_records;   /* perf events also write a record of each tick */
	uint32_t buckets;     /* of a bank: a power of two */
	/* The program's maps: the buckets of table, or else of stacks. */
	struct sample_bucket *table;
	struct stack_bucket *stacks;
	struct stack_chunk *arena;
	struct sample_counters *counters; /* for each possible CPU one of each bank */
	struct sample_times *times;	  /* for each possible CPU */
	uint64_t *context_shares;	  /* of values of contexts; NULL: none are read */
	struct tick_list slots;		  /* what was read from them: of slots, CLOCK_MONOTONIC */
	size_t slots_max;		  /* the memory for them is limited */
	uint64_t no_room;		  /* times that did not get any */
	uint64_t times_lost;		  /* up to the last window */
	struct waits waits;
	struct calls calls;
	struct program_barrier barrier;
	size_t cpu_count;
	struct ring_buffer *ring;
	struct counts *counts; /* what was read from the ring buffer */
};

/*
 * Loads the program. `counts` receives what comes through the ring buffer, and must stay valid
 * until sample_program_free(). Returns 0 or a negative errno.
 */
int sample_program_load(struct sample_program *sample, const struct sample_settings *settings,
			struct counts *counts, struct error *e);
void sample_program_free(struct sample_program *sample);

/* The program to run at ticks, and its BPF object. */
const struct bpf_program *sample_program_on_tick(const struct sample_program *sample);
struct bpf_object *sample_program_object(const struct sample_program *sample);

/* A descriptor that is readable when the ring buffer fills up; owned by the program. */
int sample_program_ring_fd(const struct sample_program *sample);

/*
 * Reads the times of ticks, and adds the samples in the ring buffer to the counts. Returns 0 or a
 * negative errno.
 */
int sample_program_read(struct sample_program *sample);

/*
 * With windows, clears the values of contexts that the last window had, and adds further ones to
 * them. Those of the present window stay until this is called again. Returns 0 or a negative errno.
 */
int sample_program_renew_contexts(struct sample_program *sample);

/* Whether the bank in which ticks count is half full: it should be taken soon. */
bool sample_program_fills_up(const struct sample_program *sample);

/*
 * Ticks count in the other bank from now on. When this returns, no tick counts in the earlier one:
 * sample_program_read() is to be called before the bank is taken. Returns 0 or a negative errno.
 */
int sample_program_switch(struct sample_program *sample);

struct sample_window {
	uint64_t ticks;			 /* of the targets, whatever became of them */
	uint64_t counted;		 /* of these, in the bank */
	struct sample_counters counters; /* sums over all CPUs */
	uint64_t times_lost;		 /* of ticks that are counted */
};

/*
 * Adds what the bank counted that sample_program_switch() has ended to `counts`, and clears it.
 * Returns 0 or -ENOMEM.
 */
int sample_program_take(struct sample_program *sample, struct counts *counts,
			struct sample_window *window);

/* How many ticks of the targets are not taken yet, whatever became of them. */
uint64_t sample_program_ticks(const struct sample_program *sample);

/*
 * At how many events, of whatever thread, the kernel did not run the program: within another BPF
 * program at a tracepoint, on the same CPU.
 */
uint64_t sample_program_missed(const struct sample_program *sample);

/* Whether thread-local variables were not read, as their C library is unknown. */
bool sample_program_lacks_thread_locals(const struct sample_program *sample);

#endif
