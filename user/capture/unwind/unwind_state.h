/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_UNWIND_STATE_H
#define PROFIL_CAPTURE_UNWIND_STATE_H

#include "capture/unwind/unwind.h"

/* What unwind.c, unwind_image.c, unwind_room.c and unwind_forget.c share. */

/* What is known of an image, besides struct capture_image. */
struct unwind_image_state {
	uint32_t number;	 /* in the tables, or UNWIND_NO_IMAGE */
	struct unwind_rows rows; /* its segments, and its rows until they are in the tables */
	bool root_owned;	 /* root owns the file: no user has forged its build ID */
	bool removed;		 /* its rows are not in the tables, for want of room, */
	bool wanted;		 /* and it is mapped again: it is in unwind.wanted */
	bool no_room;		 /* the tables are too small for it */
	bool again;		 /* its file has been opened again: see image_open_again() */
	bool moved;		 /* published mappings of it have another number or bias */
	char why[192];		 /* why it has no rows; "": no failure */
};

/* What is known of a process, besides struct process. */
struct unwind_process_state {
	struct unwind_space space;
	size_t number;		   /* of its address space, */
	size_t taken;		   /* and how many mappings of that are in `space` */
	bool begun;		   /* `space` contains its ancestors' mappings */
	uint64_t key;		   /* by which it is published */
	struct unwind_block block; /* empty: it is not published */
	size_t position;	   /* in unwind.published, plus 1; 0: it is not there */
	size_t scanned;		   /* of how many of its address spaces /proc was read */
};

/* How much an image in the tables is used, with or without rows. */
struct unwind_demand {
	uint32_t last;		  /* struct unwind_image.used at the last look */
	uint64_t score;		  /* ticks, of which half are forgotten in 6 seconds */
	struct unwind_sizes need; /* of its rows */
};

/* An image that nobody maps any more, with its rows in the tables. */
struct unwind_idle_image {
	struct unwind_image_state state;
	uint64_t since_ns;
};

/* How many processes that it was forked from may give an address space its mappings. */
#define UNWIND_ANCESTORS_MAX 64

/* --- unwind_image.c --- */

/*
 * Reads the rows of an image, unless they are in the tables. Returns 0 or -ENOMEM; why there are
 * none is in its state.
 */
int unwind_read_image(struct unwind *u, size_t number);

/*
 * Moves the rows that were read into the tables; until_ns as for unwind_make_room(). Returns 0 or
 * -ENOMEM.
 */
int unwind_add_image(struct unwind *u, size_t number, uint64_t until_ns);

/* Frees the rows that were read, and notes why there are none. */
void unwind_has_no_room(struct unwind_image_state *state);

/* Makes the images of root findable by their build IDs, anew. Returns 0 or -ENOMEM. */
int unwind_index_builds(struct unwind *u);

/* --- unwind_room.c --- */

/*
 * Removes from the tables what no process maps any more: of all images, or of users' only. Stacks
 * of ended processes that were copied before until_ns are walked first, and the images of later
 * ones stay. Returns 0, -ENOENT: nothing could be removed, or -ENOMEM.
 */
int unwind_make_room(struct unwind *u, bool users_only, uint64_t until_ns);

/*
 * Has what is used least make room for what is used more: looks at how often ticks came to each
 * image, removes the rows of the least used ones for the most used one that has none, and adds that
 * to u->wanted when its rows fit. Returns 0 or -ENOMEM.
 */
int unwind_balance(struct unwind *u);

/* Notes an image's number in the tables, and what it needs. Returns 0 or -ENOMEM. */
int unwind_note_demand(struct unwind *u, const struct unwind_image_state *state,
		       const struct unwind_sizes *need);

/*
 * Fills u->wanted with the images that were removed and are mapped by a process that has changed.
 * Returns 0 or -ENOMEM.
 */
int unwind_want_images(struct unwind *u);

/* --- unwind_forget.c --- */

/* If there is an idle image with this one's build ID, moves it to *state. */
bool unwind_revive(struct unwind *u, const struct capture_image *image,
		   struct unwind_image_state *state);

/* Removes the image that is idle for longest. Returns 0, -ENOENT: there is none, or -ENOMEM. */
int unwind_evict(struct unwind *u);

/* --- unwind.c --- */

/*
 * Walks the copies of stacks and frees them, except those for which is_kept() returns true. Returns
 * 0 or a negative errno.
 */
typedef bool unwind_copy_filter(const struct unwind_copy *copy, void *context);
int unwind_walk_copies(struct unwind *u, unwind_copy_filter *is_kept, void *context);

/* Makes the process unknown to the BPF program. Returns 0 or -ENOMEM, as do the calls below. */
int unwind_withdraw(struct unwind *u, size_t number);

#endif
