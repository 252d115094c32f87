/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_ARCHIVE_COVERAGE_H
#define PROFIL_ARCHIVE_COVERAGE_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/*
 * The times that windows cover. Comments of a sum hold the number of its windows, and the gaps
 * between them, in seconds since the epoch.
 */
#define COVERAGE_WINDOWS "windows="
#define COVERAGE_GAP	 "gap=" /* START+SECONDS */
/* The share of its samples that lack callers, as a sum has so many stacks: coarsen_shorten(). */
#define COVERAGE_SHORTENED "stacks_without="

/* Windows follow each other with less between them. Bound: pace. */
#define COVERAGE_SLACK_NS UINT64_C(2000000000)

struct coverage_span {
	uint64_t start_ns, end_ns;
};

/* Zero-initialised: nothing. */
struct coverage {
	struct coverage_span *spans; /* after coverage_join(): ordered, with gaps between them */
	size_t count, room;
	uint64_t windows;
	double shortened; /* the largest COVERAGE_SHORTENED; 0: no callers are omitted */
};

/* Adds the time of a window. Returns 0 or -ENOMEM. */
int coverage_add(struct coverage *c, const struct profile *p);

/* Orders the spans, and joins those without a gap between them. */
void coverage_join(struct coverage *c);
void coverage_free(struct coverage *c);

/* Replaces the comments of a sum about its coverage, and sets its start. Returns 0 or -ENOMEM. */
int coverage_describe(const struct coverage *c, struct profile *sum);

#endif
