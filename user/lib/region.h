/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_REGION_H
#define PROFIL_LIB_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/profil.h"

/* A run of code with one offset and scale. */
struct region {
	uint64_t offset, bufsiz; /* as profil()'s */
	uint32_t scale;		 /* 0: all addresses from offset on are in the first cell */
	char *buffer;		 /* the caller's cells; NULL: the session has the counts */
	/* Set by profil__plan_make(): */
	uint32_t base; /* the number of the first cell among those of all regions */
	uint32_t cell_count;
};

/*
 * However so many overlap, they have no more than PROFIL_RANGES ranges.
 * Bound: caller: regions of one sprofil(); then: the call fails: EINVAL.
 */
#define MOST_REGIONS (PROFIL_RANGES / 2)

/* Regions, and the disjoint ranges of addresses that count in them. Zero-initialised: empty. */
struct plan {
	struct region *regions;
	size_t region_count;
	struct profil_range *ranges; /* sorted and disjoint */
	size_t range_count;
	uint32_t cell_count;
	bool wide;	      /* a buffer's cells have 32 bits, else 16 */
	bool buffers_overlap; /* some of the caller's cells are in several regions */
};

/*
 * Makes the plan for `count` regions, 1 to MOST_REGIONS, which it copies. An address that lies in
 * several regions counts in the first. A region may have no cell; if none has one, there are no
 * ranges. The caller frees *plan by profil__plan_free(). Returns 0, -EINVAL or -ENOMEM with
 * profil__error() set.
 */
int profil__plan_make(struct plan *plan, const struct region *regions, size_t count, bool wide);
void profil__plan_free(struct plan *plan);

/* Returns the region of a cell, by its number in the plan. */
const struct region *profil__plan_region(const struct plan *plan, uint32_t cell);

#endif
