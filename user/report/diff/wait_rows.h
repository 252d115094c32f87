/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_WAIT_ROWS_H
#define PROFIL_REPORT_WAIT_ROWS_H

#include "report/chance.h"
#include "report/diff/comparison.h"

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

#endif
