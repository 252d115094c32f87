/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_REGION_H
#define PROFIL_LIB_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/profil.h"

/* A run of code that one offset and scale turn into cells. */
struct region {
	uint64_t offset, bufsiz; /* as profil()'s */
	uint32_t scale;		 /* 0: all addresses from offset on are in the first cell */
	char *buffer;		 /* the cells of the caller; NULL: counts are kept in a session */
	/* Set by profil__plan_make(): */
	uint32_t base; /* the number of the first cell among those of all regions */
	uint32_t cell_count;
};

/* However these overlap, they make no more ranges than PROFIL_RANGES. */
#define MOST_REGIONS (PROFIL_RANGES / 2)

/* How regions are counted. Zero-initialised is none. */
struct plan {
	struct region *regions;
	size_t region_count;
	struct profil_range *ranges; /* sorted, apart from each other */
	size_t range_count;
	uint32_t cell_count;
	bool wide;	      /* cells are 32 bits of a buffer, else 16 */
	bool buffers_overlap; /* some cells of a caller's are those of several regions */
};

/*
 * Makes the plan for a copy of the regions, 1 to MOST_REGIONS of them. An address in several of
 * them counts in the first. A region may have no cell; if none has any, there are no ranges.
 * *plan is the caller's, to profil__plan_free(). Returns 0, -EINVAL or -ENOMEM.
 */
int profil__plan_make(struct plan *plan, const struct region *regions, size_t count, bool wide);
void profil__plan_free(struct plan *plan);

/* The region that a cell belongs to. */
const struct region *profil__plan_region(const struct plan *plan, uint32_t cell);

#endif
