/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_UNWIND_SPACE_H
#define PROFIL_CAPTURE_UNWIND_SPACE_H

#include <stddef.h>

#include "bpf/unwind_table.h"

/* The current mappings of an address space: sorted, not overlapping. */
struct unwind_space {
	struct unwind_mapping *mappings;
	size_t count, room;
};

/*
 * Adds mappings one after the other; each replaces what it overlaps. Returns 0, -ENOMEM, or
 * -ENOSPC: some were dropped, as there are about UNWIND_PROCESS_MAPPINGS_MAX.
 */
int unwind_space_map(struct unwind_space *space, const struct unwind_mapping *mappings,
		     size_t count);

#endif
