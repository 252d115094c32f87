/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_GPERFTOOLS_ADDRESS_SPACE_H
#define PROFIL_FORMAT_GPERFTOOLS_ADDRESS_SPACE_H

#include "profile/profile.h"

/*
 * One address space for a profile of several processes, for formats that have only one: code of
 * different files never stands at the same address, and the same code stands at one only.
 * Mappings keep their address in the order of their numbers, as long as it is free; those that
 * overlap one before them are moved.
 */
struct address_space {
	const struct profile *p;
	uint64_t *start; /* of each mapping: where it stands now */
	uint32_t *home;	 /* of each mapping: the one whose place it has, itself if its own */
	struct address_range *taken; /* in order */
	size_t taken_count;
};

/*
 * bits: 64, or 32 to keep all below 4 GiB. Returns 0, -ENOMEM, or -ENOSPC when 32 bits are too
 * few; with 64 that does not happen: what cannot be moved then stays where it is.
 */
int address_space_init(struct address_space *s, const struct profile *p, unsigned int bits);
void address_space_free(struct address_space *s);

/* Where GNU ld puts programs of a fixed address on most 64-bit machines; all else begins at 0. */
#define LINK_BASE 0x400000ULL

/*
 * Where a mapping's code begins in its file. Of one in the image's own numbering that is not known:
 * it is what it would be for GNU ld, whose addresses are offsets in the file behind the base.
 */
static inline uint64_t address_space_offset(const struct profile_mapping *m)
{
	if (!m->linked)
		return m->offset;
	return m->start / LINK_BASE == 1 ? m->start - LINK_BASE : m->start;
}

/*
 * Where a location's address stands now. An address without a mapping that would fall into
 * another process's code is told by bit 62, which no user address has.
 */
uint64_t address_space_address(const struct address_space *s, uint32_t location);

#endif
