/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_UNWIND_SPACE_H
#define PROFIL_CAPTURE_UNWIND_SPACE_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_table.h"

/* The mappings of an address space that hold now: sorted, none overlaps. */
struct unwind_space {
	struct unwind_mapping *mappings;
	size_t count, room;
};

/*
 * Maps one after the other over what was there. Returns 0, -ENOMEM, or -ENOSPC: there are about
 * UNWIND_PROCESS_MAPPINGS_MAX already, and some were left out.
 */
int unwind_space_map(struct unwind_space *space, const struct unwind_mapping *mappings,
		     size_t count);

#endif
