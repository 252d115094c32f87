/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_FILTER_H
#define PROFIL_PROFILE_FILTER_H

#include "profile/profile.h"

/*
 * Zero-initialised: everything. Patterns are extended regular expressions, regex(7), without
 * back-references. Of a name, they see the first 4 KiB.
 */
struct profile_filter {
	const char *focus;  /* only samples with a function in their stack that it matches */
	const char *ignore; /* none of those with a function that it matches */
};

/*
 * Takes the samples that are not meant away from a profile, and all arcs: no profile or sample may
 * be added to it after that. profile_total() still counts them, so that percentages stay those of
 * all samples. A frame is matched by its functions' names, those of inlined ones included, and by
 * its image's path where it has none. Returns 0, or a negative errno with e set: -EINVAL for a
 * pattern that is none (ERROR_USAGE); the profile is then as it was.
 */
int profile_filter(struct profile *p, const struct profile_filter *filter, struct error *e);

#endif
