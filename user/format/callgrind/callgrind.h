/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_CALLGRIND_H
#define PROFIL_FORMAT_CALLGRIND_H

#include "format/format.h"

/*
 * The text of valgrind's callgrind and cachegrind. Costs of positions are samples of one frame;
 * calls and jumps are arcs.
 */
extern const struct format format_callgrind;
#define CALLGRIND_NAME "callgrind"

/* callgrind_write.c */
int callgrind_write(const struct profile *p, const struct format_options *options, FILE *out,
		    struct error *e);

#endif
