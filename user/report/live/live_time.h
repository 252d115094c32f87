/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_LIVE_TIME_H
#define PROFIL_REPORT_LIVE_TIME_H

#include "report/live/live.h"

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
