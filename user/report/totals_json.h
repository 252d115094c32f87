/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_TOTALS_JSON_H
#define PROFIL_REPORT_TOTALS_JSON_H

#include "profile/profile.h"
#include "report/json_writer.h"

/* The account of ticks and what they cost, as members; none when the profile has no account. */
void totals_json(struct json_writer *w, const struct profile *p);

/* The same after the value that is shown and what was recorded: the clock and how long. */
void recording_json(struct json_writer *w, const struct profile *p);

#endif
