/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_CALLGRIND_H
#define PROFIL_FORMAT_CALLGRIND_H

#include "format/format.h"

/*
 * The text format of valgrind's callgrind and cachegrind. A cost line becomes a sample of one
 * frame, a call or jump an arc.
 */
#define CALLGRIND_NAME "callgrind"

/* callgrind_write.c */
int callgrind_write(const struct profile *p, const struct format_options *options, FILE *out,
		    struct error *e);

#endif
