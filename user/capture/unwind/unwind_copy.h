/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_UNWIND_COPY_H
#define PROFIL_CAPTURE_UNWIND_COPY_H

#include "capture/scripts.h"
#include "capture/unwind/unwind_space.h"
#include "capture/unwind/unwind_tables.h"

/* The result of a walk. */
struct unwind_found {
	uint64_t pcs[2 * 127]; /* kernel frames, then user frames, as in struct stack */
	uint32_t user_depth;
	uint8_t end, by_frame_pointer;
};

/* A thread that waits: what its script's frames and functions are is still in its memory. */
struct unwind_live {
	const struct opener_memory *memory;
	uint64_t thread_pointer;
	struct scripts *scripts; /* receives its functions */
	uint64_t since_ns;	 /* as in struct language_code */
	uint32_t uid;
	bool native; /* keep the frames of the interpreter */
};

/*
 * Walks the copy of a stack with the mappings that the process had, as the BPF program walks a
 * stack. live: the thread still has this stack; NULL: it runs, and frames of a script are not
 * found. Returns 0 or -ENOMEM.
 */
int unwind_copy_walk(const struct unwind_copy *copy, const struct unwind_tables *tables,
		     const struct unwind_space *space, const struct unwind_live *live,
		     struct unwind_found *found);

#endif
