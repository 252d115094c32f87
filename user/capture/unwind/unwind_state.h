/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_UNWIND_STATE_H
#define PROFIL_CAPTURE_UNWIND_STATE_H

#include "capture/unwind/unwind.h"

/* What unwind.c and unwind_forget.c share. */

/* What is known of an image, besides struct capture_image. */
struct unwind_image_state {
	uint32_t number;	 /* in the tables, or UNWIND_NO_IMAGE */
	struct unwind_rows rows; /* its segments, and its rows until they are in the tables */
	bool root_owned;	 /* root owns the file: no user has forged its build ID */
	char why[96];		 /* why it has no rows; "": no failure */
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

/* An image that nobody maps any more, with its rows in the tables. */
struct unwind_idle_image {
	struct unwind_image_state state;
	uint64_t since_ns;
};

/* Makes the image findable by its build ID, if root owns it. Returns 0 or -ENOMEM. */
int unwind_index_build(struct unwind *u, size_t number);

/* If there is an idle image with this one's build ID, moves it to *state. */
bool unwind_revive(struct unwind *u, const struct capture_image *image,
		   struct unwind_image_state *state);

/* Removes the image that is idle for longest. Returns 0, -ENOENT: there is none, or -ENOMEM. */
int unwind_evict(struct unwind *u);

/* Makes the process unknown to the BPF program. Returns 0 or -ENOMEM, as do the calls below. */
int unwind_withdraw(struct unwind *u, size_t number);

#endif
