/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_LIVE_H
#define PROFIL_REPORT_LIVE_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "profile/profile.h"
#include "report/call_tree.h"
#include "report/rows.h"
#include "symbol/symbol.h"
#include "util/error.h"

/*
 * What is busy now, or was: a profile that grows while its older samples fade, or one that was
 * recorded; and the rows of it that are shown.
 */

enum live_sort {
	LIVE_BY_SELF,
	LIVE_BY_TOTAL, /* with stacks */
	LIVE_BY_NAME,
	LIVE_BY_IMAGE,	  /* threads and processes: by number */
	LIVE_BY_RUNNABLE, /* where that is known: threads and processes */
	LIVE_BY_DELAY,	  /* if the profile has it; only then it is shown */
	LIVE_SORTS,
};

extern const char *const live_sort_names[LIVE_SORTS + 1];

/* A place in a call tree: functions by name, from the root of the tree on. */
struct live_path {
	char *function; /* the root: call_tree_options; NULL: of all stacks */
	char *image;
	bool inverted;
	struct live_frame {
		char *name, *image;
	} * frames;
	size_t depth;
};

/* Shows only a part of the samples, of those that the zooms before it show. */
struct live_zoom {
	enum live_zoom_kind {
		LIVE_ROW,   /* those of a row that is not a function */
		LIVE_CALLS, /* those that pass through a node of a call tree */
		LIVE_STACK, /* those with a matching function, or image, in their stack */
		LIVE_TIME,  /* those of an interval */
		LIVE_QUERY, /* those of queries that match a shell pattern */
		LIVE_STATE, /* the time in some states, or for a reason */
	} kind;
	char *text;		     /* for the header */
	const struct row_view *from; /* what was shown before, with the cursor on `key` */
	struct callgraph_key key;    /* with copies of the texts; of a row */
	struct live_path path;
	regex_t regex;
	bool has_regex;
	struct time_interval interval;
	const char *pattern;		     /* of queries */
	const struct profile_filter *filter; /* of states */
};

/* Zero-initialised, except what live_init() sets. */
struct live {
	struct profile *p;
	bool recorded; /* it does not grow: target of live_status says when it was */
	bool waits;    /* it grows, and has waits: the time of threads is counted */
	/* The number of what is counted; of a growing profile without waits, PROFILE_CPU. */
	size_t value;
	const struct profile_filtered *filtered; /* what percentages count besides; or NULL */
	uint64_t half_life_ns;			 /* 0: each interval shows only its own samples */
	bool lines;	   /* look up source lines and inlined functions too */
	double elapsed_ns; /* time watched, faded like the samples */
	double machine_ns; /* time of all CPUs that were watched, faded too; 0: unknown */
	uint64_t wall_ns;  /* that of wall times, which do not fade: since the last update */

	const struct row_view *view;
	enum live_sort sort;
	struct live_zoom *zooms;
	size_t zoom_count, zoom_room;
	char *pattern; /* shows only rows with a text that matches; or NULL */
	regex_t regex; /* of pattern */

	/* What live_select() makes of the zooms, for rows_options and call_tree_options; or NULL */
	const char *image;
	bool *labels;
	int64_t *weights;

	struct rows rows;
	size_t *shown; /* numbers of the shown rows, in their order */
	size_t shown_count;
	size_t cursor; /* index in `shown`; if not 0, live_collect() keeps it on its row */
	const struct callgraph_key *chosen; /* where live_collect() puts it if it is 0; or NULL */

	/* private */
	struct symbol_cache *cache;
	struct live_zoom left; /* the last that ended: `chosen` is of it */
	bool partial;  /* only parts of what threads did are shown: their wall times are unknown */
	bool selected; /* image, labels and weights are those of profile and zooms */
	uint64_t sum, kernel; /* of the value: of all samples, and of those in the kernel */
	uint32_t tried;	      /* number of locations that were looked up: the first ones */
	int64_t naming_ns;    /* CPU time that looking up names may still take */
	uint64_t named_at_ns; /* when naming_ns was last increased */
};

/* Returns 0 or -ENOMEM; call live_free() in any case. */
int live_init(struct live *l, uint64_t half_life_ns);
void live_free(struct live *l);

/*
 * Fades the samples by `ns`, the length of the next interval, and removes wall times. Call it
 * before adding the samples of that interval, which are counted from its begin to its end and not
 * at other moments. machine_ns: the same, summed over the CPUs; 0: unknown.
 */
void live_fade(struct live *l, uint64_t ns, uint64_t machine_ns);

/*
 * Looks up names of locations, each once. That may take a small share of a CPU, more at the start;
 * what would take more is left to a later call. Returns 0, or a negative errno with e set.
 */
int live_name(struct live *l, struct error *e);

/*
 * Looks up all names of a window with waits that is to be added: by functions it is known for what
 * threads wait. The same.
 */
int live_name_waits(struct live *l, struct profile *window, struct error *e);

/* Makes the rows again. Returns 0 or -ENOMEM. */
int live_collect(struct live *l);

/* Lists the rows again, after another sort or pattern. Returns 0 or -ENOMEM. */
int live_list(struct live *l);

/*
 * Sets the extended regular expression that shown rows must match; NULL or "": all rows. Returns 0,
 * or a negative errno with e set; then the old one stays.
 */
int live_match(struct live *l, const char *pattern, struct error *e);

/* Shows rows of this view, from the first on; looks up source lines if it needs them. */
void live_show(struct live *l, const struct row_view *view);

/*
 * Shows functions of only a part of the samples: those of a row; those that pass through a place of
 * a call tree; those in whose stack something matches; those of an interval; those of queries that
 * match a pattern, or the states of a filter, both of which must outlive l. live_enter_path() takes
 * over the path. Return 0, or a negative errno with e set.
 */
int live_enter(struct live *l, const struct row *row, struct error *e);
int live_enter_path(struct live *l, struct live_path *path, const char *text, struct error *e);
int live_enter_stack(struct live *l, const char *pattern, struct error *e);
int live_enter_time(struct live *l, const struct time_interval *interval, const char *text,
		    struct error *e);
int live_enter_query(struct live *l, const char *pattern, struct error *e);
int live_enter_states(struct live *l, const struct profile_filter *filter, struct error *e);

/*
 * Ends the last zoom: shows the rows from where it began, with the cursor where it was. Returns
 * whether there was one.
 */
bool live_leave(struct live *l);

/* Makes image, labels and weights, unless they are. Returns 0 or -ENOMEM. */
int live_select(struct live *l);

/* Compiles what a person searches for. Returns 0, or -EINVAL with e set. */
int live_compile(regex_t *regex, const char *pattern, struct error *e);

/* True if a text matches; of long ones only the beginning is looked at. text: may be NULL. */
bool live_matches(const regex_t *regex, const char *text);

void live_path_free(struct live_path *path);

/* A number of the value, in `text`: CPU time of a clock as samples, other times in seconds. */
const char *live_number(const struct live *l, int64_t value, char text[static 32]);

/* What a column of numbers of the value is called: "samples", "s". */
const char *live_title(const struct live *l);

/* The type of the value, for call_tree_options; NULL: the default. */
const char *live_value(const struct live *l);

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
 *     [samples] self% [total%] [cpu%] [runnable%] [delay%] function image
 *
 * Without stacks self% is called %. In place of samples is what is counted, where that is not CPU
 * time. cpu% is of one CPU; delay% is of the time for which one thread
 * waits. samples is there if nothing fades, runnable% if rows are threads or processes: how many
 * of them were runnable, in percent of one.
 */
int live_table(const struct live *l, const struct live_table_options *o, FILE *out);

/*
 * Prints what threads did since the last update: for how long those of each row of the view, which
 * is of threads or processes, were in each state. Only those of the process and
 * thread that is shown. Two lines about all of them, a third if the profile has the reasons of
 * waits, and a table. count: rows at most.
 */
int live_states(const struct live *l, const struct row_view *view, unsigned int width, bool color,
		size_t count, FILE *out);

/* Prints header and table as one JSON object on one line. count: rows at most. */
int live_json(const struct live *l, const struct live_status *s, size_t count, FILE *out);

/* --- Over time --- */

/* How many CPUs the samples that a live view shows kept busy in each slot of time. */
struct live_time {
	struct time_interval all; /* of the last zoom into time, or of the recording */
	uint64_t step_ns;
	uint64_t *ticks; /* of each slot */
	size_t count;
	size_t cursor;
};

/* Returns 0, or a negative errno with e set: ticks have no times. live_time_free() is due. */
int live_time_make(struct live_time *t, const struct live *l, struct error *e);
void live_time_free(struct live_time *t);

/* The part of the interval that is in the slot at the cursor. */
struct time_interval live_time_slot(const struct live_time *t);

/*
 * Prints a title and slots: those from `first` on.
 *
 *     samples CPUs time, and a bar
 *
 * Returns 0 or -ENOMEM.
 */
int live_time_print(const struct live_time *t, const struct live *l, size_t first, size_t count,
		    unsigned int width, FILE *out);

#endif
