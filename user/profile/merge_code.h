/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_MERGE_CODE_H
#define PROFIL_PROFILE_MERGE_CODE_H

#include "profile/merge_cache.h"
#include "profile/profile.h"

/* Where the elements of one profile are in another. */
struct merged_code {
	uint32_t *images;
	uint32_t *mappings;
	uint32_t *functions;
	uint32_t *locations;
};

/*
 * Finds the code of `from` in `to`, by the rules of merge.h, and adds what is not there. Takes time
 * in proportion to `from` and the mappings of `to`. Returns 0 or -ENOMEM; merged_code_free() is to
 * be called in both cases.
 */
int merge_code(struct profile *to, const struct profile *from, struct merge_cache *cache,
	       struct merged_code *c);
void merged_code_free(struct merged_code *c);

#endif
