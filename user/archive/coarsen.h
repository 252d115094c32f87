/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_ARCHIVE_COARSEN_H
#define PROFIL_ARCHIVE_COARSEN_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/profile.h"

/*
 * Makes sums of windows small: a machine that compiles all day has some hundred thousand different
 * stacks an hour, nearly all of them with one sample. Numbers of samples by function, image and set
 * of labels stay exact, and so does the inclusive time of all functions except those that a sum
 * names as omitted from stacks.
 */

/*
 * Makes the callers' addresses those of functions, as far as they have names: where in the caller
 * the call was is lost. tasks: also drops the numbers of processes, and the tags of tasks
 * (tag_kinds[].of_task). Samples may then be equal; profile_merge() adds them up. Returns 0 or
 * -ENOMEM.
 */
int coarsen_simplify(struct profile *p, bool tasks);

/*
 * Omits callers with a small share of the samples from stacks, so that at most `most` more stacks
 * remain than there are leaf functions with different labels. The leaf stays; if its share is
 * small, its address becomes that of its function. *share: the share of the samples below which
 * functions were omitted; 0: none was. Samples may be equal afterwards. Returns 0 or -ENOMEM.
 */
int coarsen_shorten(struct profile *p, size_t most, double *share);

#endif
