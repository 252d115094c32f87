/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_ROWS_H
#define PROFIL_REPORT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/callgraph.h"
#include "profile/profile.h"
#include "report/row_view.h"
#include "symbol/symbol.h"

/*
 * Samples put together in rows: what every table of a profile is made of. A row is what is equal
 * in the fields that a view tells apart; a column is one value of one profile.
 */

struct row {
	const struct callgraph_key *key;
	/*
	 * The function's name as shown: IMAGE+0xADDRESS or 0xADDRESS when it has none, "[no pc]"
	 * of samples without a pc, and with ROW_ADDRESS NAME+0xOFFSET where that is known. NULL
	 * when the view does not tell functions apart.
	 */
	const char *name;
	const char *comm; /* of the thread, or the process's first; "" when not known */
	const struct callgraph_cost *counts; /* one for each column */
	uint64_t cumulative; /* self in the first column, of this row and all before it */

	/* private to rows.c */
	char *made_name;
	uint64_t function_start; /* 0: not known */
};

struct row_column {
	char *title;	  /* "samples", "cycles", "cpu/nanoseconds" */
	uint64_t samples; /* all, those in no row included */
};

struct rows {
	const struct row_view *view;
	struct row *rows;
	size_t count, room;
	struct row_column *columns;
	size_t column_count;
	bool stacks; /* false: total is self everywhere */
	bool by_total;

	/* private to rows.c */
	struct callgraph graph; /* whose nodes the rows are */
};

/* Zero-initialised: all functions. */
struct rows_options {
	const struct row_view *view; /* NULL: functions */
	const char *image;	     /* only what lies in it: its path or base name; NULL: all */
	uint32_t pid, tid;	     /* only samples of this process, of this thread; 0: of all */
	const struct symbol_extent *extents; /* of the functions at its locations; or NULL */
	/* For several runs: images, processes and threads are the same by their names. */
	bool base_names;
	bool by_total; /* ordered by total, then self */
};

/*
 * Collects the rows of a profile. The first column is the value that is shown
 * (profile_count_value()), the others are the other values that count events on their own; so the
 * profile of one clock has one column. Rows without a count are left out, negative values count
 * as 0, sums saturate. Rows are ordered by self, then total of the first column, both falling;
 * then by name, image and the rest.
 *
 * Totals come from stacks, when a sample has one (profile_stacks()); else from calls that were
 * counted apart with what was spent in them, as Callgrind has them. The total of a function is then
 * what KCachegrind calls its inclusive cost: the sum of all calls of it; or self and the calls that
 * it made, when no calls of it were counted, or nothing was spent in them. Calls within a row do
 * not count. Where rows call each other in a circle these sums have parts of the time twice: a
 * total is not more than all samples.
 *
 * Rows point into the profile. Returns 0 or -ENOMEM; rows_free() is due in any case.
 */
int rows_collect(struct rows *r, const struct profile *p, const struct rows_options *o);

/*
 * The same step by step, for columns that are from several profiles: rows_begin(), rows_add() for
 * each column, and rows_finish(), which names and orders the rows.
 */
int rows_begin(struct rows *r, const struct rows_options *o, size_t column_count);
int rows_add(struct rows *r, const struct profile *p, const struct rows_options *o, size_t value,
	     size_t column);
int rows_finish(struct rows *r);

/*
 * How many rows are to be shown: `limit` of them at most (0: all), each with so many percent of
 * all samples, of what it is ordered by.
 */
size_t rows_shown(const struct rows *r, size_t limit, double percent);

/* The order of struct rows after rows_finish(), by self, for qsort(3). */
int rows_compare(const void *one, const void *other);
void rows_free(struct rows *r);

/*
 * The numbers of the values that rows_collect() has columns for, in their order, in `values`, which
 * has room for value_type_count + 1. Returns how many they are: at least one.
 */
size_t rows_values(const struct profile *p, size_t *values);

/* What the column of a value is called; to be free()d. NULL when memory runs out. */
char *rows_title(const struct profile *p, size_t value);

#endif
