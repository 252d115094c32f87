/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_UNWIND_TABLES_H
#define PROFIL_CAPTURE_UNWIND_TABLES_H

#include <stdbool.h>

#include "capture/unwind/unwind_rows.h"

struct sample_bpf;

/* How many of each. */
struct unwind_sizes {
	size_t images, pages, rows, rules, mappings;
};

/* Where the mappings of a process are. Zero-initialised is none. */
struct unwind_block {
	uint32_t first, size;
};

struct unwind_freed_block {
	struct unwind_block block;
	uint64_t freed_ns;
};

/* The kernel's maps of bpf/unwind.h, in our memory. Zero-initialised is none. */
struct unwind_tables {
	struct unwind_sizes room, used;
	struct unwind_sizes users_room, users_used; /* of these: for files that are not root's */
	struct unwind_image *images;
	struct unwind_page *pages;
	struct unwind_chunk *chunks;
	struct unwind_rule *rules;
	struct unwind_mapping *mappings;
	struct unwind_block *free; /* of mappings: sorted, and none adjoins another */
	size_t free_count, free_room;
	struct unwind_freed_block *freed; /* which a tick may still read; the oldest first */
	size_t freed_begin, freed_end, freed_room;
	size_t freed_mappings; /* in all of them */
	int processes;	       /* the map's descriptor; not ours to close */
};

/*
 * Before the load: adds what an image takes to *need. Returns false, and adds nothing, if its rows
 * are implausible, or are too much with those of other files that are not root's, in *users.
 */
bool unwind_tables_want(struct unwind_sizes *need, struct unwind_sizes *users,
			const struct unwind_rows *rows, bool is_roots);

/*
 * Before the load: room for so much, of which *users for files that are not root's, and for what
 * may come. Returns 0 or a negative errno.
 */
int unwind_tables_size(struct unwind_tables *t, const struct unwind_sizes *need,
		       const struct unwind_sizes *users, struct sample_bpf *bpf);

/* After the load. Returns 0 or a negative errno. */
int unwind_tables_map(struct unwind_tables *t, const struct sample_bpf *bpf);
void unwind_tables_free(struct unwind_tables *t);

/* Writes an image's rows. *image receives its number. Returns 0 or -ENOSPC. */
int unwind_tables_add(struct unwind_tables *t, const struct unwind_rows *rows, bool is_roots,
		      uint32_t *image);

/*
 * From the next tick on a process has these mappings, sorted by address, instead of those in
 * *block, which receives where they are. Returns 0, -ENOSPC, -ENOMEM, or -EAGAIN: they have
 * changed so often just now that what others need would be used up.
 */
int unwind_tables_publish(struct unwind_tables *t, uint64_t process,
			  const struct unwind_mapping *mappings, size_t count,
			  struct unwind_block *block);

/* The process (0: nobody) has none any more, and the block is free. Returns 0 or -ENOMEM. */
int unwind_tables_withdraw(struct unwind_tables *t, uint64_t process, struct unwind_block *block);

#endif
