/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_ROWS_H
#define PROFIL_REPORT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "profile/callgraph.h"
#include "profile/filter.h"
#include "profile/profile.h"
#include "report/row_view.h"
#include "symbol/symbol.h"
#include "report/columns.h"

/*
 * Rows: the samples of one or several profiles, grouped by the fields of a view. Every table of
 * profiles is made of rows. A column is one value of one profile.
 */

struct row {
	const struct callgraph_key *key;
	/*
	 * The function's name. If it has none: IMAGE+0xADDRESS, 0xADDRESS, or "[no pc]" for samples
	 * without a pc. With ROW_ADDRESS: NAME+0xOFFSET if the offset is known. NULL: the view does
	 * not separate functions.
	 */
	const char *name;
	const char *comm; /* of the thread; of the process: its main thread's; "": unknown */
	/*
	 * Of a row of a container whose name is known: that, and how it is shown: by its name, as a
	 * person does, but two of one name apart. Else NULL.
	 */
	const char *container_name;
	char *shown_container;
	const struct callgraph_cost *counts; /* one for each column */
	/* Of the threads in it; NULL: not asked for, of code, or unknown. */
	const struct profile_wall *wall;
	int64_t cumulative; /* self in the first column: sum of this row and those before it */

	/* private to rows.c */
	char *made_name;
	uint64_t function_start; /* 0: unknown */
};

struct row_column {
	char *title; /* "samples", "cycles", "cpu/nanoseconds" */
	/* The magnitudes of all samples of the profile, whether they are in a row or not */
	magnitude_sum samples;
};

struct rows {
	const struct row_view *view;
	struct row *rows;
	size_t count, room;
	struct row_column *columns;
	size_t column_count;
	/* One for each row, in another order, of views by labels; NULL: they are unknown. */
	struct profile_wall *walls;
	size_t delay; /* the column of the delay; 0: there is none, or it is the first */
	size_t cpu;   /* that of the CPU time beside another value; 0: none */
	size_t doubt; /* of what TAG_IN_DOUBT marks in the first column; 0: nothing */
	bool stacks;  /* false: every total equals self */
	bool by_total;
	size_t by_wall;

	/* private to rows.c */
	struct callgraph graph; /* a row is a node of it */
};

/* Zero-initialised: functions, all of them. */
struct rows_options {
	const struct row_view *view; /* NULL: functions */
	const char *value;	     /* what is counted: profile_value() */
	const char *image;	     /* only code in it: its path or base name; NULL: all */
	/*
	 * Only samples and wall times with these labels, of label_count + 1: the last is for
	 * samples without labels; NULL: all.
	 */
	const bool *labels;
	/* What each sample counts in rows_add() instead of its value, 0: nothing; NULL: its value
	 */
	const int64_t *weights;
	const struct profile_filtered *filtered; /* what percentages count besides; or NULL */
	const struct symbol_extent *extents;	 /* of the function at each location; or NULL */
	bool base_names; /* for several runs: names alone identify images, processes, threads */
	bool by_total;	 /* order rows by total, then self */
	/* Order rows that have it by this member of struct profile_wall: its offset; 0: not */
	size_t by_wall;
	bool walls; /* with wall times; rows_collect() has them in any case */
	bool delay; /* a column of the delay, too, if the profile has it: the last */
	bool cpu;   /* the same of the CPU time, before that */
};

/*
 * Collects the rows of a profile. The first column is o->value, the others are the other values
 * that count an event each; a profile of one clock has one column. Rows without a count or wall
 * time are omitted, sums saturate. Rows are ordered by the magnitudes of self, then total of the
 * first column, largest first; then by wall time, name, image and the other fields.
 *
 * Totals are those of callgraph_count(): by stacks if any sample has one (profile_stacks()), else
 * by recorded calls whose costs are known. Calls from a row to itself do not count.
 *
 * Rows point into the profile. Returns 0 or -ENOMEM; call rows_free() in any case.
 */
int rows_collect(struct rows *r, const struct profile *p, const struct rows_options *o);

/*
 * True if rows_collect() counts calls, in one column "calls": the profile has recorded calls but no
 * sample, and neither a value nor a filter was asked for.
 */
bool rows_count_calls(const struct profile *p, const struct rows_options *o);

/*
 * The same step by step, for columns of several profiles: rows_begin(); rows_add() for each column;
 * rows_finish(), which names and orders the rows. Each returns 0 or -ENOMEM.
 */
int rows_begin(struct rows *r, const struct rows_options *o, size_t column_count);
int rows_add(struct rows *r, const struct profile *p, const struct rows_options *o, size_t value,
	     size_t column);
int rows_finish(struct rows *r);

/*
 * Sets labels[], of label_count + 1, to whether samples with them are of the row with this key, in
 * a view that separates samples by labels.
 */
void rows_match_labels(const struct profile *p, const struct row_view *view,
		       const struct callgraph_key *key, bool *labels);

/*
 * How many rows to print: `limit` at most (0: all), each with at least `percent` of all samples,
 * by the number that rows are ordered by.
 */
size_t rows_shown(const struct rows *r, size_t limit, double percent);

/* Drops finished rows that have nothing of the first column, nor an account of their threads. */
void rows_drop_zero(struct rows *r);

/* Compares finished struct rows by self, for qsort(3). */
int rows_compare(const void *one, const void *other);
void rows_free(struct rows *r);

/*
 * Stores in `values` the numbers of the values that rows_collect() makes columns of, without
 * o->delay, in their order: profile_value(p, type) is the first. There is room for value_type_count
 * + 1. Returns how many they are, at least 1.
 */
size_t rows_values(const struct profile *p, const char *type, size_t *values);

/* The title of a value's column; to be free()d. NULL: memory ran out. */
char *rows_title(const struct profile *p, size_t value);

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
