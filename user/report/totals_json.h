/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_TOTALS_JSON_H
#define PROFIL_REPORT_TOTALS_JSON_H

#include "profile/profile.h"
#include "report/columns.h"
#include "report/json_writer.h"

/*
 * Describes the columns of what threads did, by the kernel's account. wall: may be NULL for the
 * titles. has_samples: there are columns of samples, too, which say what ran. has_unknown: with the
 * time of which nothing is known.
 */
void wall_columns(struct columns *c, const struct profile_wall *wall, bool has_samples,
		  bool has_unknown);

/* The same as an object. NULL: memory ran out. */
struct json_object *wall_json(const struct profile_wall *wall);

/*
 * Writes the account of ticks and their cost; nothing if the profile has no account. stacks: the
 * name of the object that says how stacks end.
 */
void totals_json(struct json_writer *w, const struct profile *p, const char *stacks);

/*
 * Writes which value is shown, by its title (of rows_title(), or "calls"), the clock and the
 * duration of the recording, and the totals.
 */
void recording_json(struct json_writer *w, const struct profile *p, const char *title);

#endif
