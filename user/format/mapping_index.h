/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_MAPPING_INDEX_H
#define PROFIL_FORMAT_MAPPING_INDEX_H

#include "profile/profile.h"

/* The mappings of a profile, ordered by address: for readers that look up every pc of a file. */
struct mapping_index {
	struct mapping_entry *entries;
	size_t count;
};

/* Returns 0 or -ENOMEM. Holds until the next mapping is added. */
int mapping_index_init(struct mapping_index *index, const struct profile *p);

/* The mapping that holds this address, or PROFILE_NONE. */
uint32_t mapping_index_find(const struct mapping_index *index, uint64_t address);
void mapping_index_free(struct mapping_index *index);

#endif
