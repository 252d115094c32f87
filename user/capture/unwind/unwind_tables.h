/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_UNWIND_TABLES_H
#define PROFIL_CAPTURE_UNWIND_TABLES_H

#include <stdbool.h>
#include <sys/types.h>

#include "capture/unwind/unwind_rows.h"
#include "util/clock.h"

struct sample_bpf;

/*
 * For how long a walk may read what was replaced: it takes microseconds, but a host may pause it.
 * Bound: pace.
 */
#define UNWIND_GRACE_NS (200 * NS_PER_MS)

/*
 * The most that images that are mapped later may take, in MiB of rows: some fifty large ones at
 * once. Memory is taken when it is needed: see struct unwind_tables.
 * Bound: users: MiB of rows for what is mapped after the start; --unwind-memory; then: stacks end
 * in its code; again: what is used least makes room when ticks come to it; share: half to all
 * users' files, a quarter to those of one user; seen: unwind_no_room_images, unwind_evicted_total.
 */
#define UNWIND_SPARE_MIB 64

/* What the tables have elements of; an image has a block of each of the first ones. */
enum unwind_kind {
	UNWIND_KIND_PAGES,
	UNWIND_KIND_ROWS,
	UNWIND_KIND_RULES,
	UNWIND_IMAGE_KINDS,
	UNWIND_KIND_IMAGES = UNWIND_IMAGE_KINDS,
	UNWIND_KIND_MAPPINGS,
	UNWIND_KINDS
};

/* Numbers of elements. */
struct unwind_sizes {
	union {
		struct {
			size_t pages, rows, rules, images, mappings;
		};
		size_t of[UNWIND_KINDS];
	};
};

/* A process's mappings in the table of mappings. Zero-initialised is none. */
struct unwind_block {
	uint32_t first, size;
};

/* The free blocks of a table: sorted, no two adjacent. */
struct unwind_pool {
	struct unwind_block *free;
	size_t count, room;
};

/* What an image takes. */
struct unwind_extent {
	struct unwind_block of[UNWIND_IMAGE_KINDS];
	uid_t owner; /* of its file; 0: root */
};

/* The rows of an image that was emptied: a tick may still read them. */
struct unwind_emptied {
	struct unwind_extent extent;
	uint64_t since_ns;
};

struct unwind_freed_block {
	struct unwind_block block;
	uint64_t freed_ns;
};

enum unwind_table {
	UNWIND_IMAGES,
	UNWIND_LANGUAGES,
	UNWIND_PAGES,
	UNWIND_CHUNKS,
	UNWIND_RULES,
	UNWIND_MAPPINGS,
	UNWIND_TABLES
};

/* The maps of bpf/unwind_maps.h, mapped into our memory. Zero-initialised is none. */
struct unwind_tables {
	struct unwind_sizes room; /* the most that there may be */
	struct unwind_sizes used; /* up to the last one, free ones included */
	/* The part for users' files, those not owned by root; and for those of one user. */
	struct unwind_sizes users_room, users_used, user_room;
	/* By table: the maps of parts, owned by the skeleton; 0: all of its room is there. */
	int more[UNWIND_TABLES];
	size_t have[UNWIND_TABLES];  /* elements that are there */
	size_t first[UNWIND_TABLES]; /* elements of the first map, which stays */
	struct unwind_image *images;
	struct language_image *languages; /* of the same numbers */
	/* The map `contexts`, by the numbers that images have; NULL: none is read. */
	struct context_image *contexts;
	uint32_t context_count; /* from 1 on */
	/* Their values, from the first such image on; NULL: there was none yet. */
	struct context_value *context_values;
	int context_values_in_use; /* the map that has their table: owned by the skeleton */
	struct unwind_page *pages;
	struct unwind_chunk *chunks;
	struct unwind_rule *rules;
	struct unwind_mapping *mappings;
	struct unwind_pool free[UNWIND_KINDS];
	struct unwind_extent *extents; /* by the number of the image */
	size_t extent_room;
	struct unwind_emptied *emptied; /* the oldest first */
	size_t emptied_count, emptied_room;
	struct unwind_freed_block
		*freed; /* recently freed, which a tick may still read; oldest first */
	size_t freed_begin, freed_end, freed_room;
	size_t freed_mappings; /* in all of these */
	int processes;	       /* descriptor of the map; owned by the skeleton */
};

/*
 * Before the load: adds the size of an image's rows to *need and, for a user's file, to *users.
 * Returns false, and adds nothing, if the rows are implausible or over the limit for users' files.
 */
bool unwind_tables_want(struct unwind_sizes *need, struct unwind_sizes *users,
			const struct unwind_rows *rows, bool root_owned);

/*
 * Before the load: sets the sizes of the maps to *need, of which *users for users' files. Later
 * images may take spare_mib of rows, users' half of that, and those of one user a quarter. Returns
 * 0 or a negative errno.
 */
int unwind_tables_size(struct unwind_tables *t, const struct unwind_sizes *need,
		       const struct unwind_sizes *users, unsigned int spare_mib,
		       struct sample_bpf *bpf);

/* How many bytes of kernel memory so many elements take. */
size_t unwind_tables_bytes(const struct unwind_sizes *sizes);

/* How many bytes of kernel memory the tables take now. */
size_t unwind_tables_size_now(const struct unwind_tables *t);

/* After the load: maps the tables into our memory. Returns 0 or a negative errno. */
int unwind_tables_map(struct unwind_tables *t, const struct sample_bpf *bpf);

/*
 * Makes tables of our own, which no eBPF program reads: for unwind_copy_walk() of copies that
 * others took. They have no mappings. Returns 0 or -ENOMEM; unwind_tables_free() in any case.
 */
int unwind_tables_private(struct unwind_tables *t);
void unwind_tables_free(struct unwind_tables *t);

/*
 * Writes an image's rows to the tables. owner: of its file; 0: root. *image receives its number.
 * Returns 0, -ENOMEM, -ENOSPC, -EDQUOT: no room is left for users' files or for this user's, or
 * -EFBIG: there never is so much.
 */
int unwind_tables_add(struct unwind_tables *t, const struct unwind_rows *rows, uid_t owner,
		      uint32_t *image);

/*
 * Takes a number for an image whose rows have no room yet. Users' files have a part of the numbers,
 * too. Returns 0, -ENOMEM, -ENOSPC or -EDQUOT.
 */
int unwind_tables_reserve(struct unwind_tables *t, uid_t owner, uint32_t *image);

/* Writes the rows of an image that has a number but no rows. Returns as unwind_tables_add(). */
int unwind_tables_fill(struct unwind_tables *t, const struct unwind_rows *rows, uid_t owner,
		       uint32_t image);

/*
 * Removes the rows of an image that processes still map; its number stays. Their room can be used
 * after UNWIND_GRACE_NS. Returns 0 or -ENOMEM.
 */
int unwind_tables_empty(struct unwind_tables *t, uint32_t image);

/* Whether the rows of an image are in the tables. */
bool unwind_tables_has_rows(const struct unwind_tables *t, uint32_t image);

/* Sets *sizes to what of the tables is free, or will be when no tick can read it any more. */
void unwind_tables_free_sizes(const struct unwind_tables *t, struct unwind_sizes *sizes);

/* Whether what is left is as much as an image needs, of whose number nothing is asked. */
static inline bool unwind_is_enough(const struct unwind_sizes *left,
				    const struct unwind_sizes *need)
{
	return left->pages >= need->pages && left->rows >= need->rows && left->rules >= need->rules;
}

/* Adds what an image takes, without its number; sign -1: subtracts it. */
static inline void unwind_add_extent(struct unwind_sizes *sizes, const struct unwind_extent *extent,
				     int sign)
{
	for (int kind = 0; kind < UNWIND_IMAGE_KINDS; kind++)
		sizes->of[kind] += sign * (ptrdiff_t)extent->of[kind].size;
}

/* Sets *sizes to what an image takes, or would take. */
void unwind_tables_image_sizes(const struct unwind_rows *rows, struct unwind_sizes *sizes);

/*
 * Sets *left to what this owner's files may still take by its share and that of all users, whatever
 * is free; *own: of those it is its own share.
 */
void unwind_tables_share(const struct unwind_tables *t, uid_t owner, struct unwind_sizes *left,
			 bool *own);

/* Whether unwind_tables_fill() has room for an image of these sizes now. */
bool unwind_tables_fit(struct unwind_tables *t, const struct unwind_sizes *sizes, uid_t owner);

/* Removes an image that no tick uses any more. Returns 0 or -ENOMEM. */
int unwind_tables_remove(struct unwind_tables *t, uint32_t image);

/* Answers that no other mappings of a published process are known, if that was asked. */
void unwind_tables_answer(struct unwind_tables *t, uint64_t process);

/*
 * Publishes the mappings of a process, sorted by address, in place of those in *block, which
 * receives their new block. Returns 0, -ENOSPC, -ENOMEM, or -EAGAIN: try later, as they have
 * changed so often that no blocks would be left for other processes.
 */
int unwind_tables_publish(struct unwind_tables *t, uint64_t process,
			  const struct unwind_mapping *mappings, size_t count,
			  struct unwind_block *block);

/* Removes the process (unless 0) and frees its block. Returns 0 or -ENOMEM. */
int unwind_tables_withdraw(struct unwind_tables *t, uint64_t process, struct unwind_block *block);

/*
 * Gives parts back to the kernel that are behind the last element in use, a few in each call: each
 * takes some milliseconds. Returns 0 or -ENOMEM.
 */
int unwind_tables_trim(struct unwind_tables *t);

#endif
