/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_WHEN_H
#define PROFIL_TOOL_WHEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Points in time as people write them. profiltool(1), TIMES, has the list. */

#define WHEN_FORMS                                                                              \
	"\"2026-11-21 03:00\", \"2026-11-21\", \"03:00\", \"yesterday 14:30\", \"Tue 14:30\", " \
	"\"Tue\", "                                                                             \
	"\"-2h\", \"2 hours ago\", \"now\" and \"@1795402800\" are understood"

/*
 * Parses a time in the time zone of TZ, or as the text says: Z, UTC, +01:00. A time of day or day
 * of the week without a date is the last one that is not after now_s. later: of a time that the
 * clock showed twice, when summer time ended, take the second. Returns 0 and sets *time_s, or
 * -EINVAL.
 */
int when_parse(const char *text, uint64_t now_s, bool later, uint64_t *time_s);

/* Writes a time as "2026-11-21 03:00:00 CET". */
#define WHEN_SIZE 64
void when_format(uint64_t time_s, char text[static WHEN_SIZE]);

/* Writes a length of time: "3 min 20 s", "2 h", "1 d 4 h". */
void when_format_length(uint64_t seconds, char text[static WHEN_SIZE]);

#endif
