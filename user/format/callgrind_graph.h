/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_CALLGRIND_GRAPH_H
#define PROFIL_FORMAT_CALLGRIND_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "util/index.h"

/*
 * A profile as Callgrind sees it: costs of positions in functions, and calls and jumps from
 * position to position. Elements are numbered from 0 in their arrays. Takes memory for what is
 * distinct, not for each stack.
 *
 * Of a profile with stacks, each function in a sample's stack, inlined ones too, is called once
 * for this sample: where the outermost of its frames was called, from GRAPH_ROOT if nothing called
 * it. Readers take the sum of all calls of a function for its inclusive cost, which is then that of
 * the samples it is in, and never more than all, whatever recurses. The profile's own calls are
 * taken when it has no stacks.
 */

#define GRAPH_NONE UINT32_MAX
#define GRAPH_ROOT "[root]"

/* The text for a file or an object that is not known: readers cannot do with an empty one. */
#define GRAPH_UNKNOWN "???"

struct graph_name {
	const char *text;
	bool written; /* the writer's */
};

/* Object files or source files. */
struct graph_names {
	struct graph_name *names;
	size_t count, room;
	struct index index;
};

/* What has one name in one source file of one object file. */
struct graph_function {
	uint32_t object;
	uint32_t file;
	const char *name; /* NULL: it is a pc without a name */
	uint64_t address; /* of that pc in the object; else 0 */
	uint32_t entry;	  /* the position of its beginning, which calls go to */
	bool written;	  /* the writer's */
};

struct graph_position {
	uint32_t function;
	uint32_t file; /* not the function's in code that was included into it */
	uint32_t line;
	uint32_t first_arc; /* in arc_order, of those that go out from here */
	uint32_t arc_count;
	uint64_t address; /* in the object; 0 when only lines are asked for */
};

struct graph_arc {
	uint32_t from, to; /* positions */
	enum profile_arc_kind kind;
	uint64_t count;
	uint64_t executed;
};

struct graph {
	const struct profile *p;
	bool addresses;

	size_t *columns; /* the value types whose costs are kept */
	size_t column_count;
	struct graph_names objects, files;
	struct graph_function *functions;
	size_t function_count, function_room;
	struct graph_position *positions;
	size_t position_count, position_room;
	struct graph_arc *arcs;
	size_t arc_count, arc_room;
	uint32_t *arc_order;	 /* arcs by the position that they come from */
	int64_t *totals;	 /* column_count of them, the sums of all costs */
	int64_t *position_costs; /* position i's are [i * column_count .. + column_count] */
	size_t position_cost_room;
	int64_t *arc_costs; /* the same for arcs: what was spent in the call */
	size_t arc_cost_room;

	/* private to callgrind_graph.c */
	size_t samples_value; /* number of the type "samples", or value_type_count */
	bool stacks;
	uint32_t root, no_pc; /* positions */
	uint32_t *line_positions;
	uint32_t *location_positions; /* of locations without lines */
	size_t *last_sample;	      /* of each function: the last that it was in, + 1 */
	struct index function_index, position_index, arc_index;
};

/*
 * addresses: tells positions apart by their address, not only by their line. Returns 0 or -ENOMEM;
 * graph_free() is due after both.
 */
int graph_build(struct graph *g, const struct profile *p, bool addresses);
void graph_free(struct graph *g);

/*
 * callgrind_estimate.c. Where calls were counted but not what was spent in them (gmon.out): divides
 * what a function and its callees took among its callers by how often each called it, as gprof
 * does. A call that closes a circle gets nothing, so that no function has more than all. Returns 0
 * or -ENOMEM.
 */
int graph_estimate_costs(struct graph *g);

/* Whether code of this object file is in it. The path is one of the profile's. */
bool graph_has_object(const struct graph *g, const char *path);

/* Whether anything is to be said about this position. */
bool graph_position_used(const struct graph *g, uint32_t position);

/* Whether it has a cost of its own. */
bool graph_position_has_cost(const struct graph *g, uint32_t position);

#endif
