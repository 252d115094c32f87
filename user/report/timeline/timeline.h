/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_TIMELINE_H
#define PROFIL_REPORT_TIMELINE_H

#include "report/report.h"

/*
 * How much CPU time was used in each of many slots of time, which are equally long and begin at
 * multiples of their length since the epoch:
 *
 *     samples  cpu s  CPUs  time
 *
 * Where waits of threads have times, there are three more columns:
 *
 *     samples  cpu s  CPUs  runnable s  blocked s  idle s  time
 *
 * for how long all threads together were in these states in it.
 *
 * Ticks are counted where they came, waits in each slot that they last in; samples with TAG_TIME,
 * whose ticks have no times, in the slot of that time. CPUs: how many were busy, which is CPU time
 * by the part of the slot that was recorded. Slots in which nothing was recorded have no row. What
 * depends on the period is missing if that is unknown.
 */

/* Bound: caller: slots of time in one report; then: it is refused. */
#define TIMELINE_SLOTS_MAX 1000000

struct timeline_options {
	uint64_t step_ns; /* the length of a slot */
	/* When was recorded, in order and without overlap; at least one */
	const struct time_interval *spans;
	size_t span_count;
	size_t limit;	    /* rows at most; 0: all */
	unsigned int width; /* as in struct report_table_options */
	bool color;
};

/* Return 0 or -ENOMEM; or -E2BIG: more than TIMELINE_SLOTS_MAX slots. */
int timeline_print(const struct profile *p, const struct timeline_options *o, FILE *out);
int timeline_json(const struct profile *p, const struct timeline_options *o, FILE *out);

#endif
