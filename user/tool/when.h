/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_WHEN_H
#define PROFIL_TOOL_WHEN_H

#include <stdbool.h>
#include <stdint.h>

/* Points in time as people write them. profiltool(1), TIMES, has the list. */

#define WHEN_FORMS                                                                                \
	"\"2026-11-21 03:00\", \"2026-11-21\", \"03:00\", \"03:00:07.25\", \"yesterday 14:30\", " \
	"\"Tue 14:30\", \"Tue\", \"-2h\", \"2 hours ago\", \"now\", \"@1795402800\" and, of a "   \
	"file, "                                                                                  \
	"\"+2.5s\" from its start are understood"

/* What times are relative to. */
struct when_clock {
	uint64_t now_ns;
	/* When what is asked was recorded; 0 and now_ns for all that there is. */
	uint64_t start_ns, end_ns;
};

/*
 * Parses a time in the time zone of TZ, or as the text says: Z, UTC, +01:00. A time of day or day
 * of the week without a date is the last one in the recording, or the one nearest to it; never one
 * to come, nor a day of the week that begins after the recording. "+2.5s" is from its start, if
 * start_ns is not 0. later: of a time that the clock showed twice, when summer time ended, take the
 * second. Returns 0 and sets *time_ns, since the epoch; or -EINVAL.
 */
int when_parse(const char *text, const struct when_clock *clock, bool later, uint64_t *time_ns);

/* Parses a length of time above 0: "200ms", "2.5s", "1h30m", "2 hours". Returns 0 or -EINVAL. */
int when_parse_length(const char *text, uint64_t *ns);

/* Writes a time as "2026-11-21 03:00:00 CET", or "2026-11-21 03:00:00.250 CET". */
#define WHEN_SIZE 64
void when_format(uint64_t time_ns, char text[static WHEN_SIZE]);

/* Writes a length of time: "200 ms", "2.500 s", "3 min 20 s", "2 h", "1 d 4 h". */
void when_format_length(uint64_t ns, char text[static WHEN_SIZE]);

#endif
