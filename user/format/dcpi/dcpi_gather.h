/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_DCPI_GATHER_H
#define PROFIL_FORMAT_DCPI_GATHER_H

#include "dcpi/body.h"
#include "dcpi/header.h"
#include "profile/profile.h"

/* What one DCPI file counts: one event in one image, under one label. */
struct dcpi_group {
	uint32_t image; /* PROFILE_NONE: all that lies in none */
	uint32_t value; /* the number of its value type */
	enum dcpi_addresses addresses;
	/*
	 * The upper half of its addresses, where they are those of memory: that may lie further
	 * apart than the offsets of one file can tell. Else 0.
	 */
	uint32_t window;
	const char *label; /* NULL: none */

	struct dcpi_count *counts; /* folded */
	size_t count, count_room;
	uint64_t start, size; /* of the text: all counts lie in it */
};

struct dcpi_groups {
	struct dcpi_group *all;
	size_t count, room;
	struct index index;
};

/*
 * Sorts all samples of a profile into groups, by their leaf. At least one group, if it be empty.
 * Returns 0, or -errno with e set. Free it in any case.
 */
int dcpi_gather(const struct profile *p, struct dcpi_groups *groups, struct error *e);
void dcpi_groups_free(struct dcpi_groups *groups);

#endif
