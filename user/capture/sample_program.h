/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_SAMPLE_PROGRAM_H
#define PROFIL_CAPTURE_SAMPLE_PROGRAM_H

#include "bpf/sample.h"
#include "capture/counts.h"
#include "capture/program.h"

/* The program `sample` and what it shares with us. Zero-initialised is none. */
struct sample_program {
	struct program program; /* first, so that it is found from there */
	/* One for each generation; the first makes the maps, all share them. */
	struct sample_bpf *loads[PROGRAM_GENERATIONS];
	uint32_t sides;
	bool with_stacks;
	/* For tests: */
	uint64_t arena_words; /* how much of the arena is used; 0: all */
	bool one_hash;	      /* all stacks have the same */
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
 * Loads the program, to count pcs or call stacks on these sides (SAMPLE_USER, ...). What it counts
 * is added to `counts`, which must live as long as the program, by the calls below.
 */
int sample_program_load(struct sample_program *sample, uint32_t sides, bool with_stacks,
			struct counts *counts, struct error *e);
void sample_program_free(struct sample_program *sample);

/* What other programs that count in its maps are told: the object that has them, */
struct bpf_object *sample_program_object(const struct sample_program *sample);
/* and the inode of our pid namespace; 0: it is the initial one. */
uint32_t sample_program_pid_namespace(void);

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
