/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_GPERFTOOLS_ADDRESS_SPACE_H
#define PROFIL_FORMAT_GPERFTOOLS_ADDRESS_SPACE_H

#include "profile/profile.h"

/*
 * One address space for a profile of several processes: different code never has the same address,
 * and the same code has only one. In the order of their numbers, mappings keep their address if it
 * is free; a mapping that overlaps one before it is moved.
 */
struct address_space {
	const struct profile *p;
	uint64_t *start; /* of each mapping: its start in this space */
	uint32_t *home;	 /* of each mapping: the first one with the same code; may be itself */
	struct address_range *taken; /* ordered by address */
	size_t taken_count;
};

/*
 * Fills *s for p, which must outlive it. bits: 64, or 32 to keep all addresses below 4 GiB. Returns
 * 0; -ENOMEM; -ENOSPC: 32 bits are too few. With 64, mappings that cannot be moved keep their
 * address. After 0, the caller frees it with address_space_free().
 */
int address_space_init(struct address_space *s, const struct profile *p, unsigned int bits);
void address_space_free(struct address_space *s);

/* GNU ld's address for programs at a fixed address on most 64-bit machines; others begin at 0. */
#define LINK_BASE 0x400000ULL

/*
 * The offset of a mapping's code in its file. For a mapping in the image's own numbering it is
 * unknown: assumes the layout of GNU ld, where addresses are offsets in the file plus the base.
 */
static inline uint64_t address_space_offset(const struct profile_mapping *m)
{
	if (!m->linked)
		return m->offset;
	return m->start / LINK_BASE == 1 ? m->start - LINK_BASE : m->start;
}

/*
 * A location's address in this space. An address without a mapping that would be in the code of
 * another process gets bit 62 set, which no user address has.
 */
uint64_t address_space_address(const struct address_space *s, uint32_t location);

#endif
