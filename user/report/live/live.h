/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_LIVE_H
#define PROFIL_REPORT_LIVE_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "profile/profile.h"
#include "report/rows.h"
#include "symbol/symbol.h"
#include "util/error.h"

/*
 * What is busy now: a profile that grows while its older samples fade, and the rows that are shown
 * of it.
 */

/* The values of its samples, as capture_profile_begin() has them. */
enum {
	LIVE_COUNT,  /* samples since the beginning */
	LIVE_WEIGHT, /* their CPU time in nanoseconds, as far as it has not faded */
};

enum live_sort {
	LIVE_BY_SELF,
	LIVE_BY_TOTAL, /* with stacks */
	LIVE_BY_NAME,
	LIVE_BY_IMAGE, /* of threads and processes: by number */
	LIVE_SORTS,
};

extern const char *const live_sort_names[LIVE_SORTS + 1];

/* Zero-initialised, but for what live_init() sets. */
struct live {
	struct profile *p;
	uint64_t half_life_ns; /* 0: only what came since the last time */
	bool lines;	       /* source lines and inlined functions, too */
	double elapsed_ns;     /* the time that was watched, faded like the samples */

	const struct row_view *view;
	enum live_sort sort;
	/* Rows are only of what is in this image, process and thread. NULL and 0: all. */
	char *image;
	uint32_t pid, tid;
	char *pattern; /* and only those whose text this matches; or NULL */
	regex_t regex;

	struct rows rows;
	size_t *shown; /* numbers of those rows that are shown, in their order */
	size_t shown_count;
	size_t cursor; /* the shown row that a person has chosen: it stays with it */

	/* private */
	struct symbol_cache *cache;
	uint32_t tried;	      /* locations before it were looked up */
	int64_t naming_ns;    /* of CPU time that may be spent on names */
	uint64_t named_at_ns; /* when that was last reckoned */
};

int live_init(struct live *l, uint64_t half_life_ns);
void live_free(struct live *l);

/* So much time has passed since the last call: to be called before samples are added. */
void live_fade(struct live *l, uint64_t ns);

/*
 * Looks up the names of what is there. Each address is tried once; and names may take no more than
 * a small share of a CPU, but for the first: what is too much now has its turn later.
 */
int live_name(struct live *l, struct error *e);

/* Makes the rows anew. Returns 0 or -ENOMEM. */
int live_collect(struct live *l);

/* Sets what rows must match, an extended regular expression; NULL or "": all do. */
int live_match(struct live *l, const char *pattern, struct error *e);

/* Shows rows of this kind, from the first on; looks up source lines if that needs them. */
void live_show(struct live *l, const struct row_view *view);

/* Shows the functions of a row of images, processes or threads. */
int live_enter(struct live *l, const struct row *row);

/* Shows those of everything again. Returns whether it did not before. */
bool live_leave(struct live *l);

/* The row at the cursor, or NULL. */
const struct row *live_row(const struct live *l);

/* Why a row has no name; NULL: it has one, or nobody knows. */
const char *live_unnamed(const struct live *l, const struct row *row);

/*
 * Takes a profile with only those samples that have not faded, so that memory follows what is
 * shown. What points into the old one is gone: rows, capture_profile_begin()'s.
 */
int live_compact(struct live *l);

/* --- Its text form --- */

/* What the header tells besides. */
struct live_status {
	const char *target; /* what is profiled */
	uint64_t lost;
	uint64_t bpf_ns_per_tick; /* 0: not known */
	double own_percent;	  /* CPU time of this program, of one CPU */
	bool frozen;
};

#define LIVE_HEADER_LINES 3

/* Up to LIVE_HEADER_LINES lines, as wide as the terminal at most; 0: a pipe. */
int live_header(const struct live *l, const struct live_status *s, unsigned int lines,
		unsigned int width, FILE *out);

struct live_table_options {
	size_t first, count; /* of the shown rows */
	unsigned int width;  /* as above */
	bool color;
};

/*
 * The table of the shown rows, of which those that are not printed make up a last line in a pipe.
 *
 *     [samples] self% [total%] cpu% function image
 *
 * Without stacks % stands for self%. cpu% is of one CPU. samples is there when nothing fades.
 */
int live_table(const struct live *l, const struct live_table_options *o, FILE *out);

/* Header and table as one JSON object on one line. count: rows at most. */
int live_json(const struct live *l, const struct live_status *s, size_t count, FILE *out);

#endif
