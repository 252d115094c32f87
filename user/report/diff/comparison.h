/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_COMPARISON_H
#define PROFIL_REPORT_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/profile.h"
#include "report/chance.h"
#include "report/rows.h"
#include "util/error.h"
#include "report/report.h"

/* Compares two profiles row by row: what changed, by how much, and whether by more than chance. */

enum comparison_side {
	OLD,
	NEW,
	SIDES
};

enum comparison_amount {
	/*
	 * AMOUNT_RATE if samples were selected and the profiles hold what it needs: what is left
	 * out of them can have changed as much, so that a share of the rest says nothing. So it is
	 * with the time of waits, of which a longer one makes all others smaller. Else
	 * AMOUNT_SHARE.
	 */
	AMOUNT_AUTO,
	AMOUNT_SHARE, /* percent of all samples */
	AMOUNT_TIME,  /* seconds of CPU time, or of the other clock that takes the samples */
	AMOUNT_RATE,  /* milliseconds of that in each second of the recording */
};

struct comparison_options {
	struct rows_options rows; /* without extents; by_total: compare totals, not self */
	enum comparison_amount amount;
	bool significant; /* omit rows that are not significant */
};

struct compared {
	const struct row *row; /* its columns are the sides */
	double amount[SIDES];
	double difference;    /* new - old */
	struct chance chance; /* p is corrected for all rows with enough samples; of others, 1 */
};

struct comparison {
	const struct profile *profiles[SIDES];
	const char *value;	       /* what is compared: profile_value() */
	enum comparison_amount amount; /* not AMOUNT_AUTO */
	struct rows rows;	       /* rows.by_total: their totals are compared */
	struct compared *compared;     /* the largest difference first */
	size_t count;
	/* The rate of all samples, in the unit of AMOUNT_RATE; 0: it is unknown of one side */
	double all_rate[SIDES];
	double all_p;	    /* of the difference of these; 1 if !has_p */
	bool has_p;	    /* both sides count samples */
	size_t significant; /* number of significant rows */
	size_t omitted;	    /* number of omitted rows, which are not significant */
};

/*
 * Compares two profiles. Base names identify images, and names identify
 * processes and threads. Returns 0; -ENOMEM; or -EINVAL if AMOUNT_TIME or AMOUNT_RATE is asked for
 * and the time of a profile's samples, or the length of a recording, is unknown, or `significant`
 * and a profile counts no samples. On errors e is set. Call comparison_free() in any case.
 */
int comparison_make(struct comparison *c, const struct profile *earlier,
		    const struct profile *later, const struct comparison_options *o,
		    struct error *e);
void comparison_free(struct comparison *c);

/* True if what is compared is a sum of times, as of waits, not one of samples. */
bool comparison_is_of_times(const struct comparison *c);

/* What is compared of a row: its self, or its total. */
int64_t comparison_value(const struct comparison *c, const struct row *row,
			 enum comparison_side side);

/* The time in seconds that a side's samples stand for; 0: unknown. */
double comparison_seconds(const struct comparison *c, enum comparison_side side);

/* Rows of wall time of two profiles, with what chance needs to know of their waits. */

/* The columns: of each side the time, then how many waits it is of, and the sum of their squares.
 */
#define WAIT_ROWS_COLUMNS (3 * SIDES)

/*
 * Adds the wall time of a side, which has that value, to rows of WAIT_ROWS_COLUMNS columns. Ticks
 * on a CPU count as so many times of their period; time of which it is unknown when it was, as one
 * wait. Returns 0 or -ENOMEM.
 */
int wait_rows_add(struct rows *rows, const struct profile *p, const struct rows_options *o,
		  enum comparison_side side);

/* How many waits a row has. */
uint64_t wait_rows_count(const struct row *row, enum comparison_side side);

/* Of what a row has as self, or as total. exposure: of each side, what its time is a part of. */
struct chance wait_rows_chance(const struct row *row, bool by_total, const double exposure[SIDES]);

/*
 * Prints two profiles side by side, the largest difference first: samples in each; their share of
 * all and its difference in percentage points, or their time in seconds and its difference, or
 * that in a second of the recording, in milliseconds;
 * the normalised range, |old - new| / (|old| + |new|) of these shares or times; and the
 * significance. Samples are those of each row's self, or of its total. options->rows has no effect.
 *
 *     old  old%  new  new%  diff  range%  p  function  image
 *     old  old s  new  new s  diff s  range%  p  function  image
 *     old  old ms/s  new  new ms/s  diff ms/s  range%  p  function  image
 *
 * p begins with `~` if it is above 0.05, and is `~` alone if there are too few samples for a test.
 * The column is omitted if a profile counts no samples. Narrow terminals omit range%.
 */
int report_diff(const struct comparison *c, const struct report_table_options *options, FILE *out);
int report_diff_json(const struct comparison *c, const struct report_table_options *options,
		     FILE *out);

/*
 * Prints up to five lines, begun by `prefix`: the profiles, what is compared, and how many rows
 * really differ.
 */
void report_diff_summary(const struct comparison *c, const char *const *names, const char *prefix,
			 FILE *out);

#endif
