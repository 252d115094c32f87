/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_COUNTS_H
#define PROFIL_CAPTURE_COUNTS_H

#include <stddef.h>

#include "bpf/script/language.h"
#include "bpf/sample.h"
#include "util/index.h"
#include "util/tick_list.h"
#include "util/wait_list.h"

#define COUNTED_NO_CPU UINT16_MAX

/* A stack, or a pc, of one thread in one mode, with its counts. */
struct counted {
	uint64_t id; /* bpf/sample.h */
	uint64_t first_ns;
	uint64_t count;
	uint64_t waiting; /* how many threads waited for the CPU, summed over its ticks; or: how
			     many waits */
	/* Its pcs, leaf first: the kernel's from counts.pcs[first_pc] on, then the user's. */
	size_t first_pc;
	uint32_t kernel_depth, user_depth;
	uint8_t end, by_frame_pointer; /* as in struct stack */
	uint16_t cpu;		       /* as in struct stack, or COUNTED_NO_CPU */
	uint16_t context;	       /* as in struct stack */
	/* Of a wait: the numbers of who ended it, and whom it was for; of a waker: its own. Or 0.
	 */
	uint16_t waker, whom;
	uint32_t entry; /* of a wait: where it was added up; samples are equal without it */
};

/* All samples, summed by pcs, ID, CPU, waker and whom. Zero-initialised is empty. */
struct counts {
	struct counted *samples; /* their numbers never change */
	size_t count, room;
	uint64_t *pcs;
	size_t pc_count, pc_room;
	struct index index;
	struct tick_list ticks;	   /* CLOCK_MONOTONIC; of as many as have a time */
	struct tick_groups groups; /* by sample, once counts_group_ticks() was called */
	/* Instead, with counts in nanoseconds: when waits were; grouped by counts_group_waits(). */
	struct wait_list waits;
	struct wait_groups wait_groups;
};

/* Moves the CPU from an ID of the table of pcs to where the sample has it. */
static inline void counts_split_cpu(struct counted *sample)
{
	uint64_t number = (sample->id & SAMPLE_CPU_MASK) >> SAMPLE_CPU_SHIFT;

	sample->cpu = number ? number - 1 : COUNTED_NO_CPU;
	sample->id &= ~SAMPLE_CPU_MASK;
}

/*
 * Adds a sample: its counts, if one with the same pcs, ID, CPU, waker and whom is there. `pcs`:
 * kernel_depth + user_depth of them; first_pc is ignored. From the first caller on that cannot be
 * an address of user space the frames are dropped: the frame pointers were wrong. *number: its
 * number in samples. Returns 0 or -ENOMEM, as do the calls below.
 */
int counts_add(struct counts *counts, const struct counted *sample, const uint64_t *pcs,
	       uint32_t *number);

/* Adds one tick, which came at first_ns. */
int counts_add_tick(struct counts *counts, const struct counted *sample, const uint64_t *pcs);

/*
 * Adds what the BPF program has counted in its table. numbers[]: receives the number of each slot's
 * sample, TICK_REMOVED for an empty slot; buckets * SAMPLE_PER_BUCKET of them.
 */
int counts_add_table(struct counts *counts, const struct sample_bucket *table, size_t buckets,
		     uint32_t *numbers);

/* The same for the table of stacks. */
int counts_add_stacks(struct counts *counts, const struct stack_bucket *stacks, size_t buckets,
		      const struct stack_chunk *arena, uint32_t *numbers);

/* Adds one tick from the ring buffer. */
int counts_add_record(struct counts *counts, const struct stack_sample *record);

/* Groups the ticks by sample, when all have been added; and the same for waits. */
int counts_group_ticks(struct counts *counts);
int counts_group_waits(struct counts *counts);

/* Returns the times of a sample's ticks, the earliest first; *count: how many, at most its count.
 */
const uint64_t *counts_times(const struct counts *counts, size_t number, size_t *count);

/* The same for waits. */
const struct timed_wait *counts_waits(const struct counts *counts, size_t number, size_t *count);

/* Returns the sum of all counts; *kernel receives the part in the kernel. */
uint64_t counts_sum(const struct counts *counts, uint64_t *kernel);

void counts_free(struct counts *counts);

#endif
