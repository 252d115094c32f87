/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_CALLGRAPH_H
#define PROFIL_PROFILE_CALLGRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "util/table.h"

/*
 * The call graph of one or several profiles: nodes, what was spent in each of them, and the calls
 * between them. Tables, call trees and the Callgrind writer are made of it. A node is the code that
 * is equal in the fields that are asked for: a function, an image, a source line. Elements are
 * numbered from 0 in their arrays and refer to each other by number; texts are the profiles' own.
 *
 * Where lines or states are asked for, a wait is spent where its thread waits,
 * profile_wait_frame(): the frame that stands for it has no line.
 *
 * A stack counts once for each node in it, however often the node recurs. Where a profile has no
 * stacks, its recorded calls count. A call comes from the innermost function at its address
 * and goes to the outermost one at its target, whose code begins there.
 */

#define CALLGRAPH_NONE	UINT32_MAX
#define CALLGRAPH_ROOT	"[root]"  /* the node that calls the outermost functions of stacks */
#define CALLGRAPH_NO_PC "[no pc]" /* the node of samples without a pc */

enum callgraph_field {
	CALLGRAPH_ADDRESS = 1, /* with the innermost function: a location is then one node */
	CALLGRAPH_SOURCE = 2,  /* the source file that a line is in */
	CALLGRAPH_LINE = 4,
	CALLGRAPH_FUNCTION = 8, /* code without a name: its address */
	CALLGRAPH_IMAGE = 16,
	CALLGRAPH_FILE = 32,	   /* instead of _SOURCE: the source file that the function is in */
	CALLGRAPH_NO_ADDRESS = 64, /* code without a name is one function in each image */
	/* What the thread did: on a CPU, or for what it waited; total is self, then. */
	CALLGRAPH_STATE = 128,
};

/* The granularity of positions, which calls come from and go to. */
enum callgraph_positions {
	CALLGRAPH_NO_POSITIONS, /* and no edges */
	CALLGRAPH_LINES,	/* source lines */
	CALLGRAPH_ADDRESSES,	/* addresses and their source lines */
};

struct callgraph_options {
	unsigned int fields; /* of enum callgraph_field; 0: all code is one, and total is self */
	enum callgraph_positions positions; /* only for a graph of one profile */
	size_t column_count;		    /* numbers in each cost; 0: none is counted */
	/*
	 * The first column counts how often a node was called, by recorded calls, instead of what
	 * samples cost: for profiles without samples.
	 */
	bool counts_calls;
	const char *unknown; /* the name of unknown images and files */
	/* key.image of a path, by which images are the same; NULL: the path itself */
	const char *(*image_name)(const char *path);
};

/* Identifies a node. Fields that the options do not name are NULL or 0. */
struct callgraph_key {
	const char *function; /* NULL: it has no name */
	const char *image;
	const char *source; /* file */
	uint64_t address;   /* in the image's own numbering */
	uint32_t line;	    /* 0: unknown */
	/* Of nodes that places->keys divides: as in profile_labels */
	uint32_t pid, tid, generation;
	const char *comm; /* or the text of a tag */
	/* The frame that stands for the state of a thread; NULL: it was on a CPU. */
	const char *state;
	uint64_t number; /* a tag's, + 1; 0: none */
};

struct callgraph_node {
	struct callgraph_key key;
	uint32_t location; /* the node's first, in the profile it came from; or CALLGRAPH_NONE */
	uint32_t entry;	   /* the position of its beginning, which calls by stacks go to */
	uint32_t labels;   /* of the node's first sample, in the same profile, if keys divide it */
	bool kernel;	   /* code of the kernel */
	bool inlined;	   /* in its caller, wherever it is */
};

/* Sums of values, which saturate. */
struct callgraph_cost {
	int64_t self;  /* of samples whose leaf it is */
	int64_t total; /* inclusive: of samples in whose stack it is; see callgraph_inclusive() */
	/*
	 * The magnitudes of the samples in `total`: equal to it, unless some values are negative.
	 * A node that is in all stacks that another is in has at least the other's weight.
	 */
	uint64_t weight;
};

/* Texts of one profile are interned: equal ones are the same pointer. */
struct callgraph_position {
	uint32_t node;
	uint32_t line;	     /* 0: unknown */
	const char *source;  /* not the function's own file in code that was included into it */
	uint64_t address;    /* in the image; 0 when only lines are asked for */
	uint32_t first_edge; /* in edge_order, of those that go out from here */
	uint32_t edge_count;
};

struct callgraph_edge {
	uint32_t from, to; /* positions */
	enum profile_arc_kind kind;
	uint64_t count;	   /* calls, by stacks: samples; 0: unknown */
	uint64_t executed; /* as in struct profile_arc */
};

/* callgraph_free() frees all arrays. C is column_count. */
struct callgraph {
	struct callgraph_options options;
	struct callgraph_node *nodes;
	size_t node_count;
	struct callgraph_cost *costs; /* node i's are costs[i * C .. + C] */
	/* C of them, of all samples, those without a node included */
	int64_t *sums;
	magnitude_sum *samples; /* what percentages are of */

	/* With positions: */
	TABLE(struct callgraph_position) positions;
	int64_t *position_costs; /* position i's own are position_costs[i * C .. + C] */
	TABLE(struct callgraph_edge) edges;
	int64_t *edge_costs; /* edge i's are edge_costs[i * C .. + C]: what was spent in the call */
	uint32_t *edge_order; /* edges by the position that they come from */

	/* private to callgraph.c */
	size_t node_room, cost_room, position_cost_room, edge_cost_room;
	struct index node_index;
};

/*
 * Which nodes the code of one profile is. A location has several places when functions are inlined
 * there: location i's are first[i] to first[i + 1] - 1, the innermost first, at least one. Behind
 * those of the last location stand the root's and that of samples without a pc.
 */
struct callgraph_places {
	const struct profile *p;
	uint32_t *first;     /* location_count + 1 of them */
	uint32_t *nodes;     /* of each place; a caller may set some to NONE: they do not count */
	uint32_t *positions; /* of each place; NULL: none are asked for */
	/*
	 * Set and freed by the caller, label_count + 1 elements each; the last is for samples
	 * without labels.
	 */
	bool *labels; /* samples with them count for nodes; NULL: all do. callgraph.samples: all */
	struct callgraph_key *keys; /* pid to number of the nodes' keys; NULL: no division */
	/*
	 * The caller's: what each sample counts for nodes instead of its value, of which only one
	 * can be counted then; NULL: its values. callgraph.samples: all, by their values
	 */
	const int64_t *weights;
	bool no_pc_excluded; /* the caller's: samples without a pc do not count for nodes */
};

/* An empty graph. Returns 0 or -ENOMEM; callgraph_free() is due in any case. */
int callgraph_init(struct callgraph *g, const struct callgraph_options *options);
void callgraph_free(struct callgraph *g);

/*
 * Adds the nodes of all code of a profile, which must outlive the graph. Returns 0 or -ENOMEM;
 * callgraph_places_free() is due in any case, callgraph_count() may come before that.
 */
int callgraph_place(struct callgraph *g, const struct profile *p, struct callgraph_places *places);
void callgraph_places_free(struct callgraph_places *places);

/*
 * Adds samples and calls of that profile to costs, samples and edges: `count` values, whose numbers
 * in the profile stand in `values`, to columns column, column + 1, ... Once for each profile. Where
 * calls are recorded without what was spent in them, edges get an estimate. Returns 0 or -ENOMEM.
 */
int callgraph_count(struct callgraph *g, const struct callgraph_places *places,
		    const size_t *values, size_t count, size_t column);

/* Sets *node to the node with this key; adds it if there is none. Returns 0 or -ENOMEM. */
int callgraph_find(struct callgraph *g, const struct callgraph_key *key, uint32_t *node);

/* An order by texts, so that keys of several profiles compare. 0: they are equal. */
int callgraph_key_compare(const struct callgraph_key *a, const struct callgraph_key *b);

/* True if functions inlined at an address are nodes of their own. */
bool callgraph_separates_inlined(const struct callgraph *g);

/* The places that a recorded call comes from and goes to. */
static inline uint32_t callgraph_caller(const struct callgraph_places *places,
					const struct profile_arc *call)
{
	return places->first[call->from];
}

static inline uint32_t callgraph_callee(const struct callgraph_places *places,
					const struct profile_arc *call)
{
	return places->first[call->to + 1] - 1;
}

/* True if any recorded call has a cost of this value. */
bool callgraph_calls_have_cost(const struct profile *p, size_t value);

/* Sums over the recorded calls of one or several nodes, without those between these nodes. */
struct callgraph_calls {
	int64_t called;	 /* what was spent in calls of it */
	int64_t calling; /* what was spent in calls that it made */
	bool counted;	 /* it is known how often it was called */
};

/*
 * The inclusive cost by recorded calls, as KCachegrind and callgrind_annotate have it: the sum of
 * all calls of it; or self and the calls that it made, when no calls of it were counted, or nothing
 * was spent in them. Where nodes call each other in a circle these sums have parts twice, so its
 * magnitude is not more than `all`.
 */
int64_t callgraph_inclusive(int64_t self, const struct callgraph_calls *calls, magnitude_sum all);

#endif
