// SPDX-License-Identifier: GPL-2.0-only
#include "format/gperftools/address_space.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>

#include "profile/image_name.h"
#include "util/order.h"

/* Moved mappings start at multiples of the largest page size, with a free page after each. */
#define PAGE 0x10000ULL

/* Addresses that code is moved to: [low, high) */
#define LOW_32	PAGE
#define HIGH_32 0xffff0000ULL
#define LOW_64	0x100000000ULL
#define HIGH_64 0x7fff00000000ULL

/*
 * Half of HIGH_64: larger mappings are not moved.
 * Bound: caller: bytes of a mapping that is moved to an address that 32 bits or a name need; then:
 * the file is not written.
 */
#define MOVABLE_MAX 0x3fff00000000ULL

#define UNMAPPED_BIT (1ULL << 62)

struct address_range {
	uint64_t start;
	uint64_t limit;
};

struct layout {
	struct address_space *s;
	struct index homes; /* mappings by their code */
	uint32_t *moved;    /* mappings to be moved */
	size_t moved_count;
	uint64_t cursor; /* the search for room goes on here */
	size_t next;	 /* first kept mapping that ends above the cursor */
	size_t kept;	 /* so many in s->taken kept their address */
	uint64_t high;
};

/* True if mappings with this name have the same code: [anon] of two processes has not. */
static bool has_identity(const char *path)
{
	switch (image_kind(path)) {
	case IMAGE_FILE:
	case IMAGE_SHARED:
	case IMAGE_VDSO:
	case IMAGE_VSYSCALL:
		return true;
	case IMAGE_IN_KERNEL: /* [kernel] by other writers may be any part of it */
		return image_is_kernel(path);
	case IMAGE_UNNAMED:
	case IMAGE_JIT:
	case IMAGE_BRACKETED:
	case IMAGE_ANON:
		break;
	}
	return false;
}

static bool same_code(const void *array, uint32_t id, const void *key)
{
	const struct profile *p = array;
	const struct profile_mapping *a = &p->mappings[id], *b = key;

	return a->image == b->image && address_space_offset(a) == address_space_offset(b) &&
	       a->limit - a->start == b->limit - b->start &&
	       (a->start == b->start || has_identity(p->images[a->image].path));
}

/* Overlapping ranges are equal: a tree search for a range finds one that overlaps it. */
ORDER(compare_ranges, struct address_range, a->limit <= b->start ? -1 : a->start >= b->limit)

/*
 * Sets the home of each mapping to the first one with the same code. Keeps the addresses of those
 * that are free, and notes the others for moving. Returns 0 or -ENOMEM.
 */
static int keep_first_come(struct layout *l, uint64_t limit_max)
{
	const struct profile *p = l->s->p;
	void *tree = NULL;
	int err = 0;

	for (uint32_t i = 0; i < p->mapping_count && !err; i++) {
		const struct profile_mapping *m = &p->mappings[i];
		struct address_range *range = &l->s->taken[l->kept], **found;
		uint64_t hash =
			hash_u64(address_space_offset(m), hash_u64(m->limit - m->start, m->image));
		uint32_t home;

		l->s->home[i] = i;
		l->s->start[i] = m->start;
		if (m->start >= m->limit)
			continue;
		home = index_find(&l->homes, hash, same_code, p, m);
		if (home != INDEX_NONE) {
			l->s->home[i] = home;
			continue;
		}
		err = index_add(&l->homes, hash, i);
		if (err)
			break;
		if (m->limit > limit_max) {
			l->moved[l->moved_count++] = i;
			continue;
		}
		*range = (struct address_range){ m->start, m->limit };
		found = tsearch(range, &tree, compare_ranges);
		if (!found)
			err = -ENOMEM;
		else if (*found == range)
			l->kept++;
		else
			l->moved[l->moved_count++] = i;
	}
	while (tree)
		tdelete(*(struct address_range **)tree, &tree, compare_ranges);
	qsort(l->s->taken, l->kept, sizeof(*l->s->taken), compare_ranges);
	return err;
}

/* Sets *start to free room from the cursor on. Returns 0 or -ENOSPC. */
static int find_room(struct layout *l, uint64_t size, uint64_t *start)
{
	const struct address_range *kept = l->s->taken;

	if (size > MOVABLE_MAX)
		return -ENOSPC;
	for (;;) {
		uint64_t limit = l->cursor + size + PAGE;

		if (l->cursor > l->high || limit > l->high)
			return -ENOSPC;
		while (l->next < l->kept && kept[l->next].limit <= l->cursor)
			l->next++;
		if (l->next == l->kept || kept[l->next].start >= limit) {
			*start = l->cursor;
			l->cursor = (limit + PAGE - 1) & -PAGE;
			return 0;
		}
		if (kept[l->next].limit > l->high)
			return -ENOSPC;
		l->cursor = (kept[l->next].limit + PAGE - 1) & -PAGE;
	}
}

static int move_mappings(struct layout *l)
{
	struct address_space *s = l->s;

	s->taken_count = l->kept;
	for (size_t i = 0; i < l->moved_count; i++) {
		uint32_t id = l->moved[i];
		const struct profile_mapping *m = &s->p->mappings[id];
		/* Keep the offset in the page. */
		uint64_t in_page = m->start & (PAGE - 1);
		uint64_t start;
		int err = find_room(l, m->limit - m->start + in_page, &start);

		if (err)
			return err;
		s->start[id] = start + in_page;
		s->taken[s->taken_count++] = (struct address_range){
			.start = s->start[id],
			.limit = s->start[id] + (m->limit - m->start),
		};
	}
	return 0;
}

int address_space_init(struct address_space *s, const struct profile *p, unsigned int bits)
{
	size_t count = p->mapping_count + 1;
	struct layout l = {
		.s = s,
		.cursor = bits == 32 ? LOW_32 : LOW_64,
		.high = bits == 32 ? HIGH_32 : HIGH_64,
	};
	int err;

	*s = (struct address_space){ .p = p };
	s->start = calloc(count, sizeof(*s->start));
	s->home = calloc(count, sizeof(*s->home));
	s->taken = calloc(count, sizeof(*s->taken));
	l.moved = calloc(count, sizeof(*l.moved));
	err = s->start && s->home && s->taken && l.moved ? 0 : -ENOMEM;
	err = err ?: keep_first_come(&l, bits == 32 ? 1ULL << 32 : UINT64_MAX);
	if (!err) {
		err = move_mappings(&l);
		if (err == -ENOSPC && bits != 32)
			err = 0;
		qsort(s->taken, s->taken_count, sizeof(*s->taken), compare_ranges);
		for (size_t i = 0; i < p->mapping_count; i++)
			s->start[i] = s->start[s->home[i]];
	}
	free(l.moved);
	index_free(&l.homes);
	if (err)
		address_space_free(s);
	return err;
}

void address_space_free(struct address_space *s)
{
	free(s->start);
	free(s->home);
	free(s->taken);
	*s = (struct address_space){ 0 };
}

uint64_t address_space_address(const struct address_space *s, uint32_t location)
{
	const struct profile_location *l = &s->p->locations[location];
	struct address_range key = { l->address, l->address + 1 };

	if (l->mapping != PROFILE_NONE)
		return l->address - s->p->mappings[l->mapping].start + s->start[l->mapping];
	if (l->address != UINT64_MAX &&
	    bsearch(&key, s->taken, s->taken_count, sizeof(*s->taken), compare_ranges))
		return l->address | UNMAPPED_BIT;
	return l->address;
}
