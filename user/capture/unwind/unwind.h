/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_UNWIND_H
#define PROFIL_CAPTURE_UNWIND_H

#include "capture/counts.h"
#include "capture/process.h"
#include "capture/unwind/unwind_space.h"
#include "capture/unwind/unwind_tables.h"

struct ring_buffer;

/*
 * Fills in the tables by which the program on the tick walks stacks (bpf/unwind_table.h): the rows
 * of each image once, and the mappings of each process again whenever they change.
 * Zero-initialised is empty.
 */
struct unwind {
	unwind_reader *read;
	struct process_table *processes;
	struct counts *counts; /* what ticks come to whose stacks are walked here */

	/* private to unwind.c */
	struct unwind_image_state *images; /* by the number of struct capture_image */
	size_t image_count, image_room;
	struct index builds;	     /* of those images that every process may share, by build ID */
	uint64_t begin_ns, users_ns; /* CPU time that reading files took that are not root's */
	struct unwind_process_state *states; /* by the number of struct process */
	size_t state_count, state_room;
	struct unwind_tables tables;
	struct {
		struct unwind_space space;
		size_t process, number, taken; /* as in unwind_process_state */
		bool known;
	} past;		     /* of a process that has ended */
	uint32_t *published; /* numbers of the processes that are */
	size_t published_count, published_room;
	size_t next_look; /* which of them is looked at next, whether it is there still, */
	uint64_t look_ns; /* and when */
	struct ring_buffer *ring;
	struct unwind_copy **copies; /* stacks to be walked */
	size_t copy_count, copy_room;
	int look; /* the iterator that lists exec numbers; 0: none */
};

/* Before the load: reads the rows of the images that are known, and sets the sizes of the maps. */
int unwind_prepare(struct unwind *u, struct sample_bpf *bpf);

/* After the load: publishes all. */
int unwind_begin(struct unwind *u, const struct sample_bpf *bpf, struct error *e);

/* Readable when a tick has met a process or a mapping that is not published. */
int unwind_fd(const struct unwind *u);

/*
 * Publishes what has changed since the last call, and walks the stacks of which copies were made
 * before until_ns; mappings until then are known. Returns 0 or a negative errno.
 */
int unwind_update(struct unwind *u, uint64_t until_ns);

/* What the tables hold. */
void unwind_used(const struct unwind *u, struct capture_tables *tables);

/* Why an image's call frame information is not used, where it has some; NULL: nothing is wrong. */
const char *unwind_why(const struct unwind *u, uint32_t image);

void unwind_free(struct unwind *u);

#endif
