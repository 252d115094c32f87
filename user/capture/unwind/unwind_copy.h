/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_UNWIND_COPY_H
#define PROFIL_CAPTURE_UNWIND_COPY_H

#include "capture/unwind/unwind_space.h"
#include "capture/unwind/unwind_tables.h"

/* The result of a walk. */
struct unwind_found {
	uint64_t pcs[2 * 127]; /* kernel frames, then user frames, as in struct stack */
	uint32_t user_depth;
	uint8_t end, by_frame_pointer;
};

/*
 * Walks the copy of a stack with the mappings that the process had, as the BPF program walks a
 * stack.
 */
void unwind_copy_walk(const struct unwind_copy *copy, const struct unwind_tables *tables,
		      const struct unwind_space *space, struct unwind_found *found);

#endif
