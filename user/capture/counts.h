/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_COUNTS_H
#define PROFIL_CAPTURE_COUNTS_H

#include <stddef.h>

#include "bpf/sample.h"
#include "util/index.h"

/* Samples summed by pc and id, outside the kernel. Zero-initialised is empty. */
struct counts {
	struct sample *samples;
	size_t count, room;
	struct index index;
};

/* Adds a sample's count to its like. Returns 0 or -ENOMEM. */
int counts_add(struct counts *counts, const struct sample *sample);

/* Adds all that the kernel's table of so many buckets holds. */
int counts_add_table(struct counts *counts, const struct sample_bucket *table, size_t buckets);

/* The sum of all counts; *kernel receives how many of them came in the kernel. */
uint64_t counts_sum(const struct counts *counts, uint64_t *kernel);

/*
 * A thread that was ticked by programs of several generations had several events: takes away what
 * all but the lowest counted for it. *dropped receives how many ticks that were. Returns 0 or
 * -ENOMEM.
 */
int counts_drop_doubles(struct counts *counts, uint64_t *dropped);

/* Whether ticks of this generation were taken away from this thread. */
bool counts_has_double(const struct counts *counts, unsigned int tid, unsigned int generation);

void counts_free(struct counts *counts);

#endif
