/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_DUMP_H
#define PROFIL_REPORT_DUMP_H

#include <stdio.h>

#include "profile/profile.h"

/*
 * Everything the profile holds, in its own order, without interpretation. Header lines `key value`
 * (what is not known is left out), then
 *
 *     mappings:
 *     START-LIMIT OFFSET PATH [build-id=HEX] [text_start=HEX text_size=HEX] [linked]
 *     stacks:
 *     COUNT PC... [PID/TID COMM kernel KEY=VALUE...] # NAME;NAME...
 *     calls:
 *     COUNT COST CALLER CALLEE [labels] # NAME;NAME
 *     jumps:
 *     COUNT[/EXECUTED] FROM TO [labels] # NAME;NAME
 *     extras:
 *     FORMAT [PATH]: TEXT
 *
 * with the leaf's pc first and callers as the file holds them. The labels are there when known
 * (and then in brackets), the names when any is known: one for each pc, `?` when it has none, with
 * its source line in parentheses when that is known, and the functions inlined there before it,
 * marked `(inlined)`. The last three sections are there when they have a line.
 *
 * When the profile counts something else than samples and their time, the header has a line
 * `value TYPE UNIT` for each of its values, and COUNT (COST) is all of them, with commas between.
 */
int report_dump(const struct profile *p, FILE *out);

/* The same as one JSON object; see profiltool(5) for its keys. */
int report_dump_json(const struct profile *p, FILE *out);

#endif
