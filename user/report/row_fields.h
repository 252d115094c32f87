/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_ROW_FIELDS_H
#define PROFIL_REPORT_ROW_FIELDS_H

#include <json-c/json.h>
#include <stdio.h>

#include "report/rows.h"
#include "report/table.h"

/* Prints the fields that identify a row: the last columns of every table of rows. */

/* Bound: size. */
#define ROW_FIELDS_MAX 8

/* Stores the columns of a view, at most ROW_FIELDS_MAX, and returns their number. */
size_t row_field_columns(const struct row_view *view, struct table_column *columns);

/* The raw text of a row in one of these columns: a cell of struct table. */
const char *row_field_text(const struct row_view *view, const struct row *row, size_t column,
			   char buffer[TABLE_CELL_SIZE]);

/* Prints "... 12 more functions" and `after` as the last line of a table. Nothing if count is 0. */
void row_print_more(const struct row_view *view, size_t count, const char *after, FILE *out);

/*
 * The same with the share of all samples that these rows have: "... 12 more functions, 3.45 %". If
 * the limit is the terminal's (fits), with the option that prints all.
 */
void row_print_rest(const struct row_view *view, size_t count, double samples, double all,
		    bool fits, FILE *out);

/*
 * Adds the fields to an object: the function as "name" where rows are functions, else as
 * "function"; images as paths. Unknown numbers and names are omitted. Returns 0 or -ENOMEM.
 */
int row_fields_json(const struct row_view *view, const struct row *row, struct json_object *object);

#endif
