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
 * What is busy now: a profile that grows while its older samples fade, and the rows of it that are
 * shown.
 */

enum live_sort {
	LIVE_BY_SELF,
	LIVE_BY_TOTAL, /* with stacks */
	LIVE_BY_NAME,
	LIVE_BY_IMAGE, /* threads and processes: by number */
	LIVE_BY_WAIT,  /* for a CPU, where that is known: threads and processes */
	LIVE_BY_DELAY, /* if the profile has it; only then it is shown */
	LIVE_SORTS,
};

extern const char *const live_sort_names[LIVE_SORTS + 1];

/* Zero-initialised, except what live_init() sets. */
struct live {
	struct profile *p;
	uint64_t half_life_ns; /* 0: each interval shows only its own samples */
	bool lines;	       /* look up source lines and inlined functions too */
	double elapsed_ns;     /* time watched, faded like the samples */
	uint64_t wall_ns;      /* that of wall times, which do not fade: since the last update */

	const struct row_view *view;
	enum live_sort sort;
	/* Rows are only of this image, process and thread. NULL and 0: all. */
	char *image;
	uint32_t pid, generation, tid;
	char *comm;    /* and in threads with this name; NULL: all */
	char *pattern; /* shows only rows with a text that matches; or NULL */
	regex_t regex; /* of pattern */

	struct rows rows;
	size_t *shown; /* numbers of the shown rows, in their order */
	size_t shown_count;
	size_t cursor; /* index in `shown`; if not 0, live_collect() keeps it on its row */

	/* private */
	struct symbol_cache *cache;
	uint32_t tried;	      /* number of locations that were looked up: the first ones */
	int64_t naming_ns;    /* CPU time that looking up names may still take */
	uint64_t named_at_ns; /* when naming_ns was last increased */
};

/* Returns 0 or -ENOMEM; call live_free() in any case. */
int live_init(struct live *l, uint64_t half_life_ns);
void live_free(struct live *l);

/*
 * Fades the samples by `ns`, the time since the last call, and removes wall times. Call it before
 * adding those of that time.
 */
void live_fade(struct live *l, uint64_t ns);

/*
 * Looks up names of locations, each once. That may take a small share of a CPU, more at the start;
 * what would take more is left to a later call. Returns 0, or a negative errno with e set.
 */
int live_name(struct live *l, struct error *e);

/* Makes the rows again. Returns 0 or -ENOMEM. */
int live_collect(struct live *l);

/*
 * Sets the extended regular expression that shown rows must match; NULL or "": all rows. Returns 0,
 * or a negative errno with e set; then the old one stays.
 */
int live_match(struct live *l, const char *pattern, struct error *e);

/* Shows rows of this view, from the first on; looks up source lines if it needs them. */
void live_show(struct live *l, const struct row_view *view);

/* Shows the functions of a row: of an image, process or thread. Returns 0 or -ENOMEM. */
int live_enter(struct live *l, const struct row *row);

/* Ends live_enter(): shows the functions of everything. Returns whether only some were shown. */
bool live_leave(struct live *l);

/* The row at the cursor, or NULL. */
const struct row *live_row(const struct live *l);

/* Why a row has no name; NULL: it has one, or the reason is unknown. */
const char *live_unnamed(const struct live *l, const struct row *row);

/*
 * Replaces the profile by one without the faded samples, so that memory use follows what is shown.
 * Invalidates what points into the old one: rows, and what capture_profile_begin() was given.
 * Returns 0 or -ENOMEM.
 */
int live_compact(struct live *l);

/* Its text form. */

/* Contents of the header that are not in struct live. */
struct live_status {
	const char *target; /* the profiled processes, as text */
	uint64_t lost;
	uint64_t bpf_ns_per_tick; /* 0: unknown */
	double own_percent;	  /* CPU time of this program, in percent of one CPU */
	bool frozen;
	bool recorded; /* it is over: target says when it was */
};

#define LIVE_HEADER_LINES 3

/*
 * Prints the first `lines` lines of the header, LIVE_HEADER_LINES at most, shortened to the width
 * of the terminal; 0: a pipe. Returns 0 or -ENOMEM, as do the functions below.
 */
int live_header(const struct live *l, const struct live_status *s, unsigned int lines,
		unsigned int width, FILE *out);

struct live_table_options {
	size_t first, count; /* of the shown rows */
	unsigned int width;  /* as above */
	bool color;
};

/*
 * Prints the table of the shown rows; in a pipe, a last line sums up those after first + count.
 *
 *     [samples] self% [total%] cpu% [wait%] [delay%] function image
 *
 * Without stacks self% is called %. cpu% is of one CPU; delay% is of the time for which one thread
 * waits. samples is there if nothing fades, wait% if rows are threads or processes: how many of
 * them waited for a CPU, in percent of one.
 */
int live_table(const struct live *l, const struct live_table_options *o, FILE *out);

/*
 * Prints what threads did since the last update: for how long those of each row of the view, which
 * is of threads or processes, ran, waited for a CPU and were blocked. Only those of the process and
 * thread that is shown. Two lines about all of them, a third if the profile has the reasons of
 * waits, and a table. count: rows at most.
 */
int live_states(const struct live *l, const struct row_view *view, unsigned int width, bool color,
		size_t count, FILE *out);

/* Prints header and table as one JSON object on one line. count: rows at most. */
int live_json(const struct live *l, const struct live_status *s, size_t count, FILE *out);

#endif
