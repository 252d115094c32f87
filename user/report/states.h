/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_STATES_H
#define PROFIL_REPORT_STATES_H

#include "report/json_writer.h"
#include "report/report.h"

/*
 * Where the time of threads went, for the first screen of a recording with waits: a line for each
 * state, then struct work of the program's own functions, then the waits by state, reason, the
 * function that waits (`--by wait`) and whom they were for or who ended them, those that are idle
 * behind all others.
 */

/* True if that belongs before a table of this profile: of samples by function, all of them. */
bool states_are_first(const struct profile *p, const struct rows_options *rows);

/* Prints them, in place of a table of samples. Returns 0 or -ENOMEM. */
int states_print(const struct profile *p, const struct report_table_options *o, FILE *out);

/* Adds the waits as the list "waits". Returns 0 or -ENOMEM. */
int states_json(const struct profile *p, const struct report_table_options *o,
		struct json_writer *w);

#endif
