/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_TABLE_H
#define PROFIL_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A table of text: one header line, one line per row, columns two blanks apart. Numbers are at the
 * right of their column and whole; texts are at the left, and in a terminal the widest gives way
 * until all fits. Where even that is not enough, columns are left out.
 */

#define TABLE_CELL_SIZE 32

/* What has this part of the samples, in percent, is hot: red in a terminal. */
#define TABLE_HOT_PERCENT 5

struct table_column {
	const char *title;
	bool is_text;
	bool is_path;	  /* a text whose end says the most */
	bool is_hot;	  /* in red where the row is */
	bool is_optional; /* the first to be left out */
	size_t width;	  /* at least, where there is room; 0: as its texts need */
};

struct table {
	const struct table_column *columns;
	size_t column_count;
	size_t row_count;
	/* The raw text of a cell: in `buffer`, or anywhere that outlives table_print(). */
	const char *(*cell)(const void *context, size_t row, size_t column,
			    char buffer[TABLE_CELL_SIZE]);
	bool (*is_hot)(const void *context, size_t row);
	bool (*is_faint)(const void *context, size_t row); /* shown so; NULL: none is */
	bool (*is_line)(const void *context, size_t row);  /* its text is no name; NULL: none is */
	const void *context;
	unsigned int width; /* columns of the terminal; 0: shorten nothing, it is a pipe */
	bool color;
};

/* Whether `part` is hot. false: `whole` is 0. */
bool table_is_hot(uint64_t part, uint64_t whole);

/* Returns 0 or -ENOMEM. Whether printing succeeded, ferror(out) says. */
int table_print(const struct table *t, FILE *out);

#endif
