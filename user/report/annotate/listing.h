/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_LISTING_H
#define PROFIL_REPORT_LISTING_H

#include "report/annotation.h"
#include "report/annotate/annotate.h"
#include "report/columns.h"

/* What listings of instructions and of source lines share: columns of counts, then of texts. */

struct listing_line {
	enum listing_kind {
		LISTING_COUNTED,
		LISTING_PLAIN, /* without counts */
		LISTING_TEXT,  /* only `text` */
	} kind;
	size_t number; /* COUNTED: index of tallies; PLAIN: for `describe` */
	char *text;    /* of the last column; NULL: by `describe` */
};

struct listing {
	const struct annotation *a;
	const struct tallies *tallies;
	/* Describes the columns after the counts. */
	void (*describe)(struct columns *c, const struct listing *l,
			 const struct listing_line *line);
	const void *context; /* for `describe` */

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

/* annotate_source.c: report_listing() of source lines. */
int annotate_source(struct annotation *a, const struct report_listing_options *o, FILE *out);

#endif
