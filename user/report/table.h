/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_TABLE_H
#define PROFIL_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A table of text: one header line, one line per row, two blanks between columns. Numbers are
 * right-aligned and never shortened. Texts are left-aligned; to fit a terminal the widest text is
 * shortened, and where that is not enough, columns are omitted.
 */

#define TABLE_CELL_SIZE 32

/* Rows with at least this percentage of the samples are hot: red in a terminal. */
#define TABLE_HOT_PERCENT 5

struct table_column {
	const char *title;
	bool is_text;
	bool is_path;	  /* a text that is shortened from its start */
	bool is_whole;	  /* a text that is never shortened */
	bool is_hot;	  /* red in hot rows */
	bool is_optional; /* omitted before others */

	unsigned int rank; /* 0: a number; else it identifies the row */
	size_t number;	   /* as it is described */
};

struct columns;
typedef void columns_function(struct columns *c, const void *view, size_t row);

struct table {
	columns_function *describe; /* of its context: what cells hold outlives table_print() */
	const void *context;
	size_t row_count;
	unsigned int width; /* columns of the terminal; 0: shorten nothing, the output is a pipe */
	bool is_live;	    /* printed again and again: columns are to stay where they are */
	bool color;
};

/* How a row looks: LOOKS() of columns.h. */
struct table_looks {
	bool hot, faint;
	bool is_line; /* its texts are lines, whose beginnings are kept, not names */
};

/* True if `part` of `whole` is hot; false if `whole` is 0. */
bool table_is_hot(double part, double whole);

/* Returns 0 or -ENOMEM. Errors of printing are left to ferror(out). */
int table_print(const struct table *table, FILE *out);

#endif
