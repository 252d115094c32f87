/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_ROW_FIELDS_H
#define PROFIL_REPORT_ROW_FIELDS_H

#include <stdio.h>

#include "report/columns.h"
#include "report/rows.h"

/*
 * Describes the fields that identify a row: the last columns of a table of rows, the first members
 * in JSON. There the function is "name" where rows are functions, else "function"; images are
 * paths; unknown numbers and names are omitted.
 */
void row_columns(struct columns *c, const struct row_view *view, const struct row *row);

/* Those of a view by states alone: "blocked: lock"; JSON has "state" and "reason". */
void row_state_columns(struct columns *c, const struct row *row);

/* The text of the first of these columns: of a row without a function, what it is called. */
const char *row_first_text(const struct row_view *view, const struct row *row,
			   char buffer[TABLE_CELL_SIZE]);

/* Prints "... 12 more functions" and `after` as the last line of a table. Nothing if count is 0. */
void row_print_more(const struct row_view *view, size_t count, const char *after, FILE *out);

/*
 * The same with the share of all samples that these rows have: "... 12 more functions, 3.45 %". If
 * the limit is the terminal's (fits), with the option that prints all.
 */
void row_print_rest(const struct row_view *view, size_t count, double samples, double all,
		    bool fits, FILE *out);

#endif
