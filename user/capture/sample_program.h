/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_SAMPLE_PROGRAM_H
#define PROFIL_CAPTURE_SAMPLE_PROGRAM_H

#include "bpf/sample.h"
#include "capture/counts.h"
#include "capture/program.h"
#include "capture/tick.h"
#include "capture/unwind/unwind.h"

struct bpf_object;
struct bpf_program;

/* How ticks are to be counted, and whose. */
struct sample_settings {
	uint32_t sides;		  /* SAMPLE_USER, ... */
	bool stacks;		  /* call stacks instead of pcs, by frame pointers, */
	struct unwind *unwind;	  /* or, if not NULL, by call frame information */
	bool everyone;		  /* else of members: capture/members.h */
	uint64_t group;		  /* of everyone: who is in this control group, by its ID; 0: all */
	bool group_is_v1;	  /* it is in a hierarchy of cgroup v1 */
	bool one_thread, inherit; /* of members: bpf/members.h */
	const struct tick *tick;  /* it traces the scheduler's tick; NULL: perf events have it */
};

/* The program `sample` and what it shares with us. Zero-initialised is none. */
struct sample_program {
	struct sample_bpf *bpf;
	struct sample_settings settings;
	/* For tests: */
	uint64_t arena_words; /* how much of the arena is used; 0: all */
	bool one_hash;	      /* all stacks have the same */
	uint32_t members_max; /* 0: MEMBERS_MAX */
	bool keeps_records;   /* perf events write a record of each tick, too */
	/* The kernel's own, SAMPLE_BUCKETS of them; with stacks: */
	const struct sample_bucket *table;
	const struct stack_bucket *stacks;
	const struct stack_chunk *arena;
	const struct sample_counters *counters; /* one for each possible CPU */
	size_t cpu_count;
	struct ring_buffer *ring;
	struct counts *counts; /* what was taken of the table and the ring buffer */
	uint64_t *taken;       /* of each sample of the table */
};

/*
 * Loads the program. What it counts is added to `counts`, which must live as long as the program,
 * by the calls below.
 */
int sample_program_load(struct sample_program *sample, const struct sample_settings *settings,
			struct counts *counts, struct error *e);
void sample_program_free(struct sample_program *sample);

/* What is to be on the tick, and the object that it is of. */
const struct bpf_program *sample_program_on_tick(const struct sample_program *sample);
struct bpf_object *sample_program_object(const struct sample_program *sample);

/* Readable when the ring buffer fills up. */
int sample_program_ring_fd(const struct sample_program *sample);

/* Adds what is in the ring buffer to the counts. Returns 0 or -errno. */
int sample_program_read_ring(struct sample_program *sample);

/* Adds what the table counted since the last call. Returns 0 or -ENOMEM. */
int sample_program_read_table(struct sample_program *sample);

/* The sum over all CPUs. */
struct sample_counters sample_program_counters(const struct sample_program *sample);

/* Every run of the program so far. */
uint64_t sample_program_ticks(const struct sample_program *sample);

#endif
