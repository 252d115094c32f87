/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_COUNTS_H
#define PROFIL_CAPTURE_COUNTS_H

#include <stddef.h>

#include "bpf/sample.h"
#include "util/index.h"

/* A stack, or one pc, of one thread in one mode. */
struct counted {
	uint64_t id; /* bpf/sample.h */
	uint64_t first_ns;
	uint64_t count;
	/* Its pcs, leaf first: the kernel's are counts.pcs[first_pc ..], the user's come behind. */
	size_t first_pc;
	uint32_t kernel_depth, user_depth;
	uint8_t end, by_frame_pointer; /* as in struct stack */
};

/* Samples summed by pcs and id, outside the kernel. Zero-initialised is empty. */
struct counts {
	struct counted *samples; /* their numbers never change */
	size_t count, room;
	uint64_t *pcs;
	size_t pc_count, pc_room;
	struct index index;
};

/*
 * Adds a sample's count to its like. pcs holds kernel_depth + user_depth of them; first_pc is
 * ignored. Callers that cannot be addresses of user space, and all behind, are left out: there the
 * frame pointers have led astray. Returns 0 or -ENOMEM.
 */
int counts_add(struct counts *counts, const struct counted *sample, const uint64_t *pcs);

/*
 * Adds what the kernel's table of so many buckets holds beyond what was taken of it before:
 * taken[], one number for each sample of it, 0 at first.
 */
int counts_add_table(struct counts *counts, const struct sample_bucket *table, size_t buckets,
		     uint64_t *taken);

/* The same for the kernel's table of stacks, which are in the arena. */
int counts_add_stacks(struct counts *counts, const struct stack_bucket *stacks, size_t buckets,
		      const struct stack_chunk *arena, uint64_t *taken);

/* Adds one tick that came through the ring buffer. */
int counts_add_record(struct counts *counts, const struct stack_sample *record);

/* Makes all counts 0. The samples stay, each at its number. */
void counts_clear(struct counts *counts);

/* The sum of all counts; *kernel receives how many of them came in the kernel. */
uint64_t counts_sum(const struct counts *counts, uint64_t *kernel);

void counts_free(struct counts *counts);

#endif
