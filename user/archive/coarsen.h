/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_ARCHIVE_COARSEN_H
#define PROFIL_ARCHIVE_COARSEN_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/profile.h"

/*
 * Makes sums of windows small: a machine that compiles all day has some hundred thousand different
 * stacks an hour, nearly all of them with one sample. What stays exact: how many samples there are
 * of each function, image and set of labels; and the inclusive time of all functions but those that
 * a sum names as left out of stacks.
 */

/*
 * Makes the callers' addresses those of functions, as far as they have names: where in the caller
 * the call was is lost. tasks: also drops the numbers of processes, and the labels "cpu" and
 * "thread". Samples may then be equal; profile_merge() adds them up. Returns 0 or -ENOMEM.
 */
int coarsen_simplify(struct profile *p, bool tasks);

/*
 * Leaves functions with a small share of the samples out of the stacks that they called in, so that
 * at most `most` more stacks remain than there are functions that ran with different labels. The
 * function that ran stays; its address becomes that of the function, where it has a small share.
 * *share: of the samples, below which that was done; 0: nothing was. Samples may then be equal.
 * Returns 0 or -ENOMEM.
 */
int coarsen_shorten(struct profile *p, size_t most, double *share);

#endif
