/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_COMPARISON_H
#define PROFIL_REPORT_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/profile.h"
#include "report/rows.h"
#include "util/error.h"

/* Two profiles row by row: what changed, how much, and whether by more than chance. */

enum comparison_side {
	OLD,
	NEW,
	SIDES
};

enum comparison_amount {
	AMOUNT_SHARE, /* percent of all samples */
	AMOUNT_TIME,  /* seconds of CPU time, or of what else the samples are taken by */
};

struct comparison_options {
	struct rows_options rows; /* without extents */
	enum comparison_amount amount;
	bool significant; /* leave out rows that are not */
};

struct compared {
	const struct row *row; /* its columns are the sides */
	double amount[SIDES];
	double difference; /* new - old */
	/*
	 * With Holm's correction for all rows. Not meant where is_tested is false: the row has so
	 * few samples that none could be significant, and does not count as one of many either.
	 */
	double p;
	bool is_tested;
	bool is_significant;
};

struct comparison {
	const struct profile *profiles[SIDES];
	enum comparison_amount amount;
	struct rows rows;
	struct compared *compared; /* the largest difference first */
	size_t count;
	bool has_p;	    /* both sides count samples */
	size_t significant; /* how many are, */
	size_t left_out;    /* and how many rows are left out as they are not */
};

/*
 * Compares the values that two profiles show. Images are the same when their base names
 * are, processes and threads when their names are.
 * Returns 0, -ENOMEM, or -EINVAL when a profile does not tell the time of its samples or counts no
 * samples, and it was asked for, with e set; comparison_free() is due in any case.
 */
int comparison_make(struct comparison *c, const struct profile *earlier,
		    const struct profile *later, const struct comparison_options *o,
		    struct error *e);
void comparison_free(struct comparison *c);

/* What a profile's counts amount to in seconds; 0: it does not tell. */
double comparison_seconds(const struct profile *p);

#endif
