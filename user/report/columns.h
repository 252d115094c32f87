/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_COLUMNS_H
#define PROFIL_REPORT_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "report/json_writer.h"

#define TABLE_CELL_SIZE 32

/* Rows with at least this percentage of the samples are hot: red in a terminal. */
#define TABLE_HOT_PERCENT 5

/* How a row looks in a table: LOOKS(). */
struct table_looks {
	bool hot, faint;
	bool is_line; /* its texts are lines, whose beginnings are kept, not names */
};

/*
 * The columns of a view, each described once, for tables and JSON: by a function of the view that
 * goes through those of a row:
 *
 *	static void slot_columns(struct columns *c, const void *view, size_t row)
 *	{
 *		const struct timeline *t = view;
 *		const struct slot *slot = &t->slots[row];
 *
 *		COLUMN(c, "samples", "samples", 0, slot->samples);
 *		if (profile_tick_ns(t->p))
 *			COLUMN(c, "cpu s", "cpu_s", 3, cpu_s(t, slot));
 *	}
 *
 * A column without a title is in JSON alone, one without a key in tables alone. JSON has them in
 * this order; a table has those that say what the row is last. A value is evaluated only where it
 * is printed: for the titles of a table the function is called with row 0, which there may not be.
 * So which columns a table has depends on the view, not on the row.
 */
struct columns {
	bool json;    /* the row is printed as JSON, not in a table */
	char *buffer; /* of TABLE_CELL_SIZE, for a text of COLUMN() */
	/* Set by the view: cells of a table are blank from here on; their values are not evaluated.
	 */
	bool is_blank;

	/* private */
	struct json_object *object;
	struct table_looks *looks; /* gets how the row looks; NULL: nobody asks */
	struct table_column *list; /* gets the titles; NULL: a cell is printed */
	size_t list_count, list_room;
	size_t number, wanted; /* of the column among those that tables have */
	const char *key, *text;
	unsigned int format;
	int err;
};

/* How a value is printed: the number of decimals of a double, and */
enum column_format {
	COLUMN_DECIMALS = 15,
	COLUMN_NS = 1 << 4,	/* an integer in nanoseconds; tables have seconds, of 3 decimals */
	COLUMN_SIGNED = 1 << 5, /* tables: with a "+" if it is above 0 */
	COLUMN_KNOWN = 1 << 6,	/* 0 is unknown: "-" in tables, omitted in JSON */
	COLUMN_OWNER = 1 << 7,	/* what identifies the row: a process or thread */
	COLUMN_NAMES =
		2 << 7, /* what else identifies it: in a table behind the owner and the numbers */
	COLUMN_TEXT = 1 << 9,	   /* the looks in a table: left-aligned, may be shortened */
	COLUMN_PATH = 1 << 10,	   /* a text that is shortened from its start */
	COLUMN_HOT = 1 << 11,	   /* red in hot rows */
	COLUMN_OPTIONAL = 1 << 12, /* omitted before others */
	COLUMN_WHOLE = 1 << 13,	   /* a text that is never shortened */
};

/* JSON has so many decimals instead. */
#define COLUMN_JSON_DECIMALS(n) ((n) << 14)

/* A value that is printed in percent, with two decimals. */
struct column_share {
	double part, whole;
};

static inline struct column_share column_share(double part, double whole)
{
	return (struct column_share){ part, whole };
}

/*
 * Describes a column. value: an integer; a double; a share; a text, which JSON omits if
 * it is NULL or ""; or of JSON alone, an object, which is consumed.
 */
#ifdef __cppcheck__ /* it does not know _Generic */
#define COLUMN(c, title, key, format, value) \
	((void)columns_next(c, title, key, format), (void)(value))
#else
#define COLUMN(c, title, key, format, value)                                                         \
	do {                                                                                         \
		if (columns_next(c, title, key, format))                                             \
			_Generic((value),                                                          \
				int: columns_integer,                                              \
				unsigned int: columns_integer,                                     \
				int64_t: columns_integer,                                          \
				uint64_t: columns_integer,                                         \
				double: columns_double,                                            \
				struct column_share: columns_share,                                \
				char *: columns_text,                                              \
				const char *: columns_text,                                        \
				struct json_object *: columns_json_value)(c, value); \
	} while (0)
#endif

/* Describes how a row looks in a table, by members of struct table_looks. */
#define LOOKS(c, ...)                                                      \
	do {                                                               \
		if ((c)->looks)                                            \
			*(c)->looks = (struct table_looks){ __VA_ARGS__ }; \
	} while (0)

/* For COLUMN(): true if the value is to be given to one of the others. */
bool columns_next(struct columns *c, const char *title, const char *key, unsigned int format);
void columns_integer(struct columns *c, __int128 value);
void columns_double(struct columns *c, double value);
void columns_share(struct columns *c, struct column_share value);
void columns_text(struct columns *c, const char *raw);
void columns_json_value(struct columns *c, struct json_object *value);

typedef void columns_function(struct columns *c, const void *view, size_t row);

/* A row as an object, or NULL: memory ran out. */
struct json_object *columns_json(columns_function *describe, const void *view, size_t row);

/* Writes the first rows as a list. */
void columns_list(struct json_writer *w, const char *key, columns_function *describe,
		  const void *view, size_t rows);

/* How a table looks. */
enum table_style {
	TABLE_COLOR = 1 << 0,
	TABLE_LIVE = 1 << 1, /* printed again and again: columns are to stay where they are */
};

/*
 * Prints the first rows as a table of text: one header line, one line per row, two blanks between
 * columns. Numbers are right-aligned and never shortened. Texts are left-aligned; to fit a terminal
 * the widest text is shortened, and where that is not enough, columns are omitted. width: columns
 * of the terminal; 0: shorten nothing, the output is a pipe. Texts of cells outlive the call.
 * Returns 0 or -ENOMEM. Errors of printing are left to ferror(out).
 */
int table_print(columns_function *describe, const void *view, size_t rows, unsigned int width,
		unsigned int style, FILE *out);

/* True if `part` of `whole` is hot; false if `whole` is 0. */
bool table_is_hot(double part, double whole);

#endif
