/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_MERGE_CACHE_H
#define PROFIL_PROFILE_MERGE_CACHE_H

#include <stddef.h>

#include "util/index.h"

/*
 * What all merges into one profile have in common: the first location at each address and mapping.
 * Zero-initialised at first; meanwhile nothing else adds locations to the profile or moves them.
 */
struct merge_cache {
	struct index locations;
	size_t indexed; /* this many of the profile's locations */
};

void merge_cache_free(struct merge_cache *cache);

#endif
