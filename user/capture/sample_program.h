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
	const struct sample_bucket *table;	/* the kernel's own, SAMPLE_BUCKETS of them */
	const struct sample_counters *counters; /* one for each possible CPU */
	size_t cpu_count;
	struct ring_buffer *ring;
};

/*
 * Loads the program, to count on these sides (SAMPLE_USER, ...). What comes through the ring
 * buffer is added to `counts`, which must live as long as the program.
 */
int sample_program_load(struct sample_program *sample, uint32_t sides, struct counts *counts,
			struct error *e);
void sample_program_free(struct sample_program *sample);

/* Readable when the ring buffer fills up. */
int sample_program_ring_fd(const struct sample_program *sample);

/* Adds what is in the ring buffer to the counts. Returns 0 or -errno. */
int sample_program_read_ring(struct sample_program *sample);

/* The sum over all CPUs. */
struct sample_counters sample_program_counters(const struct sample_program *sample);

/* Every run of the program so far. */
uint64_t sample_program_ticks(const struct sample_program *sample);

#endif
