/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_ARCHIVE_COARSEN_H
#define PROFIL_ARCHIVE_COARSEN_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/profile.h"

/*
 * Makes sums of windows small: a machine that compiles all day has some hundred thousand different
 * stacks an hour, nearly all of them with one sample. Numbers of samples by function, image and set
 * of labels stay exact, and so does the inclusive time of all functions except in the samples that
 * a sum says lack callers.
 */

/*
 * Makes the callers' addresses those of functions, as far as they have names: where in the caller
 * the call was is lost. tasks: also drops the numbers of processes, and the tags of tasks
 * (tag_kinds[].of_task). Samples may then be equal; profile_merge() adds them up. Returns 0 or
 * -ENOMEM.
 */
int coarsen_simplify(struct profile *p, bool tasks);

/*
 * Drops the times of ticks and waits; with those of waits also the numbers of threads, for which
 * there is no more use. Samples may then be equal. Returns 0 or -ENOMEM.
 */
int coarsen_drop_times(struct profile *p);

/*
 * Omits callers from stacks, so that at most `most` more stacks remain than there are leaf
 * functions with different labels. Services (profile/service.h) share these evenly: one that has
 * fewer keeps all, for it is not to lose what a build beside it costs. Of the others' stacks the
 * outermost callers stay, as far as enough samples have the same, and the leaf; if that is rare,
 * its address becomes that of its function. Samples that lack callers then get TAG_INCOMPLETE;
 * *share: their share. Samples may be equal afterwards. Returns 0 or -ENOMEM.
 */
int coarsen_shorten(struct profile *p, size_t most, double *share);

/*
 * Leaves `most` different texts of what processes say for whom they work (query, route, ...), where
 * services have more: these share them evenly, as stacks. Of a service those with the most samples
 * stay; samples with others are labelled [others], and counted as such (context_others). *over:
 * there were some. Samples may be equal afterwards. Returns 0 or -ENOMEM.
 */
int coarsen_limit_labels(struct profile *p, size_t most, bool *over);

#endif
