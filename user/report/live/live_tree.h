/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_LIVE_TREE_H
#define PROFIL_REPORT_LIVE_TREE_H

#include "report/call_tree.h"
#include "report/live/live.h"

/*
 * A call tree of which only the open part is shown, and made: of all stacks that a live view shows,
 * or the callers or callees of a function.
 */
struct live_tree {
	struct live_path path; /* root of the tree, without frames */
	struct call_tree tree;
	uint32_t *lines; /* the shown nodes, in their order */
	size_t line_count;
	size_t cursor;	      /* index in `lines` */
	const regex_t *regex; /* what live_tree_find() finds, and is bold; or NULL; the caller's */

	/* private */
	struct call_tree_options options;
	struct call_tree_builder *builder; /* NULL: the tree is not made */
	char *value;
	bool *open; /* of each node: its children are shown */
	size_t open_room, line_room;
	struct live_tree_saved *saved; /* open nodes, and the one at the cursor, by their names */
	size_t saved_count, saved_room;
};

/*
 * Begins a tree of what l shows: of a function, or of all stacks if that is NULL, and opens the
 * path of most samples. Returns 0, or a negative errno with e set: no sample has the function in
 * its stack. Call live_tree_free() in any case.
 */
int live_tree_make(struct live_tree *t, const struct live *l, const char *function,
		   const char *image, bool inverted, struct error *e);
void live_tree_free(struct live_tree *t);

/*
 * live_tree_save() is due before the profile, or what is shown of it, changes: it frees the tree;
 * live_tree_restore() makes it again, with the same nodes open. Both return 0 or -ENOMEM.
 */
int live_tree_save(struct live_tree *t);
int live_tree_restore(struct live_tree *t, const struct live *l);

/* Each returns 0 or -ENOMEM. Opens the node at the cursor, and an only child with it. */
int live_tree_open(struct live_tree *t);

/* Opens all nodes below that at the cursor that have so much of all samples. */
int live_tree_open_all(struct live_tree *t, double percent);

/* Closes the node at the cursor; if it is closed, moves to its parent. */
int live_tree_close(struct live_tree *t);
int live_tree_close_all(struct live_tree *t);

/* Moves to the next node that matches, or the last before; *found: whether there is one. */
int live_tree_find(struct live_tree *t, bool backwards, bool *found);

/* The function of the node at the cursor; NULL: there is none, or it has no name. */
const struct call_frame *live_tree_frame(const struct live_tree *t);
bool live_tree_is_open(const struct live_tree *t);

/* The path to the node at the cursor; live_path_free() is due. Returns 0 or -ENOMEM. */
int live_tree_path(const struct live_tree *t, struct live_path *path);

/*
 * Prints a title and lines; first, count: of t->lines.
 *
 *     total% [self%] [samples] function image
 *
 * Callers have no self%, and narrow terminals no samples. Returns 0 or -ENOMEM.
 */
int live_tree_print(struct live_tree *t, const struct live *l, size_t first, size_t count,
		    unsigned int width, FILE *out);

#endif
