/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_CODE_FRAMES_H
#define PROFIL_SYMBOL_CODE_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "capture/unwind/unwind_rows.h"
#include "symbol/cfi/cfi_frames.h"
#include "symbol/elf_file.h"

/*
 * Functions of x86-64 code that no call frame information describes (musl's C library, assembly),
 * and how to find callers in it, from the instructions themselves: each path through a function is
 * followed, and what it pushes and pops is added up.
 *
 * A function begins at a symbol, where a call or an address in other code leads, or behind the end
 * of another function. Its rows are used only if they prove themselves: each return finds the stack
 * as the call left it, and two paths to an instruction agree.
 */

struct code_row {
	uint64_t address;
	struct unwind_rule rule; /* UNWIND_GAP: from here on it is unknown */
};

struct cfi_function {
	uint64_t start, limit; /* ELF virtual addresses */
};

/* Both are sorted by address, without overlaps. Zero-initialised: none. */
struct code_frames {
	struct code_row *rows;
	size_t row_count, row_room;
	struct cfi_function *functions;
	size_t function_count, function_room;
};

/*
 * Reads the code of an x86-64 file that no FDE describes; other files have no functions. Returns 0,
 * also if there is no such code, or it is too much to read, or -ENOMEM and sets e.
 */
int code_frames_read(struct code_frames *c, const struct elf_file *file,
		     const struct cfi_frames *frames, struct error *e);
void code_frames_free(struct code_frames *c);

#endif
