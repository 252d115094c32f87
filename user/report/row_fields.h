/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_ROW_FIELDS_H
#define PROFIL_REPORT_ROW_FIELDS_H

#include <json-c/json.h>

#include "report/rows.h"
#include "report/table.h"

/* How what tells rows apart is shown: the last columns of every table of rows. */

#define ROW_FIELDS_MAX 8

/* The columns of a view, at most ROW_FIELDS_MAX, and the field of each. Returns their number. */
size_t row_field_columns(const struct row_view *view, struct table_column *columns,
			 enum row_field *fields);

/* The raw text of a row's field, as a table wants it. */
const char *row_field_text(const struct row_view *view, const struct row *row, enum row_field field,
			   char buffer[TABLE_CELL_SIZE]);

/*
 * Adds the fields to an object: the function as "name" where rows are functions, else as
 * "function"; images as paths. Numbers and names that are not known are left out. Returns 0 or
 * -ENOMEM.
 */
int row_fields_json(const struct row_view *view, const struct row *row, struct json_object *object);

#endif
