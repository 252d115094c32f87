/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_PROGRAM_H
#define PROFIL_CAPTURE_PROGRAM_H

#include "bpf/sample.h"
#include "capture/counts.h"
#include "util/error.h"

/* The loaded BPF program and what it shares with us. Zero-initialised is none. */
struct program {
	/* One for each generation; the first makes the maps, all share them. */
	struct sample_bpf *loads[SAMPLE_GENERATIONS];
	int fds[SAMPLE_GENERATIONS];
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
int program_load(struct program *program, uint32_t sides, struct counts *counts, struct error *e);
void program_free(struct program *program);

/*
 * The program of a generation: the same program, but what it counts can be told apart. Those after
 * the first are loaded when they are asked for. Returns a descriptor, which stays the program's, or
 * a negative errno.
 */
int program_fd(struct program *program, unsigned int generation, struct error *e);

/* Readable when the ring buffer fills up. */
int program_ring_fd(const struct program *program);

/* Adds what is in the ring buffer to the counts. Returns 0 or -errno. */
int program_read_ring(struct program *program);

/* The sum over all CPUs. */
struct sample_counters program_counters(const struct program *program);

/* Every run of the program so far. */
uint64_t program_ticks(const struct program *program);

#endif
