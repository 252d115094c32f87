/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_LISTING_H
#define PROFIL_REPORT_LISTING_H

#include "report/annotation.h"
#include "report/annotate/annotate.h"
#include "report/table.h"

/* What listings of instructions and of source lines share: columns of counts, then of texts. */

struct listing_line {
	enum listing_kind {
		LISTING_COUNTED,
		LISTING_PLAIN, /* without counts */
		LISTING_TEXT,  /* only `text` */
	} kind;
	size_t number; /* COUNTED: index of tallies; PLAIN: for `cell` */
	char *text;    /* of the last column; NULL: from `cell` */
};

struct listing {
	const struct annotation *a;
	const struct tallies *tallies;
	/* The columns after the counts; the last is a text. */
	const struct table_column *columns;
	size_t column_count;
	const char *(*cell)(const struct listing *l, const struct listing_line *line, size_t column,
			    char buffer[TABLE_CELL_SIZE]);
	const void *context; /* for `cell` */

	struct listing_line *lines;
	size_t count, room;
};

/* Adds a line. Takes over `text`, even on errors. Both return 0 or -ENOMEM. */
int listing_add(struct listing *l, enum listing_kind kind, size_t number, char *text);

/* Adds "... 12 lines". what: "lines" or "instructions", which are omitted. */
int listing_add_omitted(struct listing *l, size_t count, const char *what);

/* Returns 0 or -ENOMEM. */
int listing_print(const struct listing *l, const struct report_listing_options *o, FILE *out);
void listing_free(struct listing *l);

/* True if it has no count of any value. number: index of tallies. */
bool listing_is_quiet(const struct listing *l, size_t number);

/* annotate_source.c: report_listing() of source lines. */
int annotate_source(struct annotation *a, const struct report_listing_options *o, FILE *out);

#endif
