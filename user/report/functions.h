/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_FUNCTIONS_H
#define PROFIL_REPORT_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/*
 * A function is what has one name in images of one path; inlined ones are functions too. A pc
 * without a name is a row of its own, called IMAGE+0xADDRESS, or 0xADDRESS in no known image; a
 * sample without a pc is in "[no pc]".
 */
struct function_row {
	const char *name;
	const char *image;   /* the path, or "[unknown]" */
	uint64_t self;	     /* samples whose leaf it is */
	uint64_t total;	     /* samples in whose stack it is, once per stack; or by calls: below */
	uint64_t cumulative; /* self of this row and all before it */

	/* private to functions.c */
	uint64_t address;
	size_t last_sample;
	uint64_t called, calling; /* what was spent in calls of it, and in those that it made */
	bool counted;		  /* how often it was called is known */
	char *made_name;
};

struct functions {
	struct function_row *rows; /* by self, then total, both falling; then by name and image */
	size_t count, room;
	uint64_t samples; /* all, those without a name included */
	bool stacks;	  /* false: total is self everywhere */
};

/*
 * stacks is true when a sample is deeper than 1, or when calls with their costs were counted apart,
 * as Callgrind has them. In that case the total of a function is what KCachegrind calls its
 * inclusive cost: the sum of all calls of it; or self and the calls that it made, when no calls of
 * it were counted, or nothing was spent in them. A function's calls of itself do not count. Where
 * functions call each other in a circle these sums have parts of the time twice: a total is not
 * more than all samples.
 *
 * Collects the functions of a profile by the value that counts samples; rows that no sample
 * falls on are left out. Negative values, as differences of profiles have them, count as 0, and
 * sums saturate. The rows point into the profile. Returns 0 or -ENOMEM; functions_free() is due
 * after 0 only.
 */
int functions_collect(const struct profile *p, struct functions *f);
void functions_free(struct functions *f);

#endif
