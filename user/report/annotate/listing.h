/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_LISTING_H
#define PROFIL_REPORT_LISTING_H

#include "report/annotate/annotation.h"
#include "report/annotate/annotate.h"
#include "report/table.h"

/* What the listings of instructions and of source lines have in common: counts, then texts. */

struct listing_line {
	enum listing_kind {
		LISTING_COUNTED,
		LISTING_PLAIN, /* without counts */
		LISTING_TEXT,  /* a text alone */
	} kind;
	size_t number; /* in tallies; of a plain one: what `cell` makes of it */
	char *text;    /* in the last column, where it is not told by `cell`; or NULL */
};

struct listing {
	const struct annotation *a;
	const struct tallies *tallies;
	/* The columns behind the counts; the last is a text. */
	const struct table_column *columns;
	size_t column_count;
	const char *(*cell)(const struct listing *l, const struct listing_line *line, size_t column,
			    char buffer[TABLE_CELL_SIZE]);
	const void *context; /* of cell */

	struct listing_line *lines;
	size_t count, room;
};

/* Adds a line; takes `text` over, also when it fails. Both return 0 or -ENOMEM. */
int listing_add(struct listing *l, enum listing_kind kind, size_t number, char *text);

/* "... 12 lines": what is left out. */
int listing_add_left_out(struct listing *l, size_t count, const char *what);

int listing_print(const struct listing *l, const struct report_listing_options *o, FILE *out);
void listing_free(struct listing *l);

/* Whether it has no count of any value. */
bool listing_is_quiet(const struct listing *l, size_t number);

#endif
