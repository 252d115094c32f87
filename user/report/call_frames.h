/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_CALL_FRAMES_H
#define PROFIL_REPORT_CALL_FRAMES_H

#include "report/call_tree.h"
#include "util/index.h"

/* The frames of a call tree that the locations of its profiles stand for: private to call_tree.c */

/* Of one profile */
struct call_places {
	size_t *first;	   /* location i's frames are frames[first[i] .. first[i + 1]] */
	uint32_t *frames;  /* innermost first; at least one of each location */
	uint32_t *process; /* of each of the profile's labels, and of none; NULL: not asked for */
	uint32_t *thread;
};

/* What makes frames equal: texts of which equal ones are the same pointer. */
struct call_frame_key {
	const char *name; /* NULL: code without a name */
	const char *base; /* of the image */
	bool wanted;	  /* not part of it: whether the options name this function */
};

/* Zero-initialised: none. */
struct call_frames {
	struct call_frame_key *keys; /* of each of the tree's frames */
	size_t key_room;
	struct index index;
	const char **texts;
	size_t text_count, text_room;
	struct index text_index;
};

/* Adds a profile's frames to the tree's. Returns 0 or -ENOMEM; call_places_free() is always due. */
int call_places_make(struct call_places *places, struct call_tree *t, struct call_frames *frames,
		     const struct profile *p, const struct call_tree_options *o);
void call_places_free(struct call_places *places);
void call_frames_free(struct call_frames *frames);

#endif
