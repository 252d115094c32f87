/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_CALL_FRAMES_H
#define PROFIL_REPORT_CALL_FRAMES_H

#include "profile/callgraph.h"
#include "report/call_tree.h"

/*
 * The frames of a call tree are the nodes of a call graph, by the same numbers: private to
 * call_tree.c and call_arcs.c.
 */

/* Of one profile */
struct call_places {
	struct callgraph_places code;
	uint32_t *process; /* of each of the profile's labels, and of none; NULL: not asked for */
	uint32_t *thread;
};

/* Zero-initialised: none. */
struct call_frames {
	struct callgraph graph;
	bool *wanted; /* of each of the tree's frames: whether the options name this function */
	size_t wanted_room;
};

/* column_count: of the graph; see callgraph.h. Returns 0 or -ENOMEM; free is due in any case. */
int call_frames_init(struct call_frames *frames, const struct call_tree *t, size_t column_count);
void call_frames_free(struct call_frames *frames);

/* Adds a profile's frames to the tree's. Returns 0 or -ENOMEM; call_places_free() is always due. */
int call_places_make(struct call_places *places, struct call_tree *t, struct call_frames *frames,
		     const struct profile *p, const struct call_tree_options *o);
void call_places_free(struct call_places *places);

#endif
