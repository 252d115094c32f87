/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_DUMP_H
#define PROFIL_REPORT_DUMP_H

#include <stdio.h>

#include "profile/profile.h"

/*
 * Prints everything that the profile holds, in its own order, without interpretation. Header lines
 * `key value` (unknown values are omitted), then
 *
 *     mappings:
 *     START-LIMIT OFFSET PATH [build-id=HEX] [text_start=HEX text_size=HEX] [provider=UID]
 *         [file=HEX] [linked], in one line
 *     stacks:
 *     COUNT PC... [PID/TID COMM kernel KEY=VALUE...] # NAME;NAME...
 *     times:
 *     STACK SECONDS...
 *     calls:
 *     COUNT COST CALLER CALLEE [labels] # NAME;NAME
 *     jumps:
 *     COUNT[/EXECUTED] FROM TO [labels] # NAME;NAME
 *     extras:
 *     FORMAT [PATH]: TEXT
 *
 * PCs are as in the file, the leaf's first. Known labels are in brackets. Names are printed if any
 * is known: one for each pc, `?` if it has none, with its known source line in parentheses; the
 * functions inlined there precede it, marked `(inlined)`. `times` has for each stack, by its number
 * from 1 on, when its ticks came, in seconds since time_ns. Each of the last four sections is
 * omitted if it has no lines.
 *
 * If the profile counts something other than samples and their time, the header has a line
 * `value TYPE UNIT` for each of its values, and COUNT and COST are all of them, separated by
 * commas.
 */
int report_dump(const struct profile *p, FILE *out);

/* The same as one JSON object; see profiltool-json(5) for its keys. */
int report_dump_json(const struct profile *p, FILE *out);

#endif
