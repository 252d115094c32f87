/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_CODE_LOOPS_H
#define PROFIL_REPORT_CODE_LOOPS_H

#include <stddef.h>

#include "report/disassembly.h"

/*
 * Draws the loops of a disassembly beside it: / at the target of a jump back, \ at the last such
 * jump, | between them, inner loops to the right; < at an instruction that jumps to itself.
 * Bound: files: loops side by side; then: outer ones are not drawn; seen: not seen.
 */
#define CODE_LOOPS_MAX 4 /* side by side; outer loops that need more are not drawn */

struct code_loops {
	char (*marks)[CODE_LOOPS_MAX + 1]; /* of each instruction: `depth` characters */
	size_t depth;			   /* 0: there are no loops */
};

/* Returns 0 or -ENOMEM; call code_loops_free() in any case. */
int code_loops_draw(struct code_loops *l, const struct disassembly *d);
void code_loops_free(struct code_loops *l);

#endif
