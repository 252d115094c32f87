/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_CODE_LOOPS_H
#define PROFIL_REPORT_CODE_LOOPS_H

#include <stddef.h>

#include "report/annotate/disassembly.h"

/*
 * Loops of a disassembly, drawn beside it: from an instruction that is jumped back to, which has a
 * /, to the last that does so, which has a \, with | between; inner loops to the right. One
 * instruction alone has a <.
 */
#define CODE_LOOPS_MAX 4 /* that are drawn side by side: inner ones first */

struct code_loops {
	char (*marks)[CODE_LOOPS_MAX + 1]; /* of each instruction: `depth` of them */
	size_t depth;			   /* 0: there are no loops */
};

/* Returns 0 or -ENOMEM; code_loops_free() is due in any case. */
int code_loops_draw(struct code_loops *l, const struct disassembly *d);
void code_loops_free(struct code_loops *l);

#endif
