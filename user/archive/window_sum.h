/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_ARCHIVE_WINDOW_SUM_H
#define PROFIL_ARCHIVE_WINDOW_SUM_H

#include <stdbool.h>

#include "archive/coverage.h"
#include "archive/user_share.h"
#include "profile/profile.h"
#include "util/input.h"

/*
 * Reads the profile of a window, which must be a regular file. Returns 0 or -errno with e set;
 * -EINVAL: it is damaged.
 */
int window_read(const char *path, struct profile **p, struct error *e);

/* The same with the stacks that a choice keeps (util/input.h). */
int window_read_stacks(const char *path, const struct stack_choice *stacks, struct profile **p,
		       struct error *e);

/* The same with the ticks that a choice keeps, and perhaps without code (util/input.h). */
int window_read_part(const char *path, struct tick_choice *ticks, bool no_code, struct profile **p,
		     struct error *e);

/* The sum of windows that becomes a coarser one. Zero-initialised, but for the options. */
struct window_sum {
	size_t most;		 /* stacks besides: as coarsen_shorten() takes them */
	size_t most_ticks;	 /* whose times it keeps; where there are more, none */
	bool tasks;		 /* drop the numbers of processes, and tags of tasks */
	struct user_share share; /* of users other than root; bytes 0: no limit */

	/* private */
	struct profile *p;
	struct coverage coverage;
};

/* Adds a profile, which is changed and freed in any case. Returns 0 or -errno with e set. */
int window_sum_add(struct window_sum *s, struct profile *p, struct error *e);

/*
 * Completes the sum, which has a part at least. *p is valid until window_sum_free(). Returns as
 * above.
 */
int window_sum_finish(struct window_sum *s, const struct profile **p, struct error *e);
void window_sum_free(struct window_sum *s);

#endif
