// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>

#include "profile/callgraph.h"
#include "util/sum.h"

/* State of a node during the walk from callers to callees. */
struct walked {
	uint32_t first, end; /* its calls are walk.calls[first .. end] */
	uint32_t next;	     /* of these, the one that is walked next */
	uint32_t left; /* its place in the order in which the walk leaves nodes; 0: not left yet */
	bool entered, is_called;
	uint64_t called; /* calls from callers that share its cost */
	uint64_t shared; /* of these, the calls that have their share */
};

struct walk {
	struct callgraph *g;
	struct walked *nodes;
	uint32_t *calls; /* edges that are calls, sorted by caller */
	uint32_t *path;	 /* nodes, each called by the one before it */
	uint32_t *order; /* nodes as they were left: what is called before its callers */
	uint32_t path_size, order_size;
	int64_t *totals; /* column_count of each node: self, and the calls that it made */
};

static uint32_t caller_of(const struct callgraph *g, uint32_t edge)
{
	return g->positions.all[g->edges.all[edge].from].node;
}

static uint32_t callee_of(const struct callgraph *g, uint32_t edge)
{
	return g->positions.all[g->edges.all[edge].to].node;
}

static uint64_t count_of(const struct callgraph *g, uint32_t edge)
{
	return g->edges.all[edge].count ?: 1;
}

/* True if a call closes a cycle: its callee was on the path to its caller. After the walk only. */
static bool is_circular(const struct walk *w, uint32_t edge)
{
	return w->nodes[callee_of(w->g, edge)].left >= w->nodes[caller_of(w->g, edge)].left;
}

static void enter_node(struct walk *w, uint32_t node)
{
	if (w->nodes[node].entered)
		return;
	w->nodes[node].entered = true;
	w->path[w->path_size++] = node;
}

static void walk_from(struct walk *w, uint32_t node)
{
	enter_node(w, node);
	while (w->path_size) {
		struct walked *last = &w->nodes[w->path[w->path_size - 1]];

		if (last->next < last->end) {
			enter_node(w, callee_of(w->g, w->calls[last->next++]));
			continue;
		}
		w->order[w->order_size++] = w->path[--w->path_size];
		last->left = w->order_size;
	}
}

/* The share of a cost that the first `part` of `whole` calls have. */
static int64_t cost_share(int64_t cost, uint64_t part, uint64_t whole)
{
	return (__int128)cost * part / whole;
}

/* Gives each call its share of the callee's cost. The shares add up to it exactly. */
static void set_costs(struct walk *w)
{
	struct callgraph *g = w->g;
	size_t columns = g->options.column_count;

	for (uint32_t i = 0; i < g->edges.count; i++)
		if (g->edges.all[i].kind == PROFILE_CALL && !is_circular(w, i))
			add_u64(&w->nodes[callee_of(g, i)].called, count_of(g, i));
	for (size_t i = 0; i < g->node_count * columns; i++)
		w->totals[i] = g->costs[i].self;
	for (uint32_t i = 0; i < w->order_size; i++) {
		uint32_t caller = w->order[i];

		for (uint32_t j = w->nodes[caller].first; j < w->nodes[caller].end; j++) {
			uint32_t edge = w->calls[j], callee = callee_of(g, edge);
			uint64_t whole = w->nodes[callee].called;
			uint64_t before = w->nodes[callee].shared, after = before;

			if (is_circular(w, edge))
				continue;
			add_u64(&after, count_of(g, edge));
			w->nodes[callee].shared = after;
			for (size_t k = 0; k < columns; k++) {
				int64_t total = w->totals[callee * columns + k];
				int64_t cost = cost_share(total, after, whole) -
					       cost_share(total, before, whole);

				g->edge_costs[edge * columns + k] = cost;
				add_i64(&w->totals[caller * columns + k], cost);
			}
		}
	}
}

int callgraph_estimate(struct callgraph *g)
{
	struct walk w = {
		.g = g,
		.nodes = calloc(g->node_count + 1, sizeof(*w.nodes)),
		.calls = calloc(g->edges.count + 1, sizeof(*w.calls)),
		.path = calloc(g->node_count + 1, sizeof(*w.path)),
		.order = calloc(g->node_count + 1, sizeof(*w.order)),
		.totals = calloc(g->node_count + 1, g->options.column_count * sizeof(*w.totals)),
	};
	int err = w.nodes && w.calls && w.path && w.order && w.totals ? 0 : -ENOMEM;
	uint32_t end = 0;

	if (err)
		goto out;
	/* Sort the calls by their caller, by counting. */
	for (uint32_t i = 0; i < g->edges.count; i++)
		if (g->edges.all[i].kind == PROFILE_CALL)
			w.nodes[caller_of(g, i)].end++;
	for (uint32_t i = 0; i < g->node_count; i++) {
		end += w.nodes[i].end;
		w.nodes[i].first = w.nodes[i].end = end;
	}
	for (uint32_t i = g->edges.count; i-- > 0;)
		if (g->edges.all[i].kind == PROFILE_CALL)
			w.calls[--w.nodes[caller_of(g, i)].first] = i;
	for (uint32_t i = 0; i < g->node_count; i++)
		w.nodes[i].next = w.nodes[i].first;
	/* Starts at nodes without callers: cycles are entered where the program enters them. */
	for (uint32_t i = 0; i < g->edges.count; i++)
		if (g->edges.all[i].kind == PROFILE_CALL && caller_of(g, i) != callee_of(g, i))
			w.nodes[callee_of(g, i)].is_called = true;
	for (uint32_t i = 0; i < g->node_count; i++)
		if (!w.nodes[i].is_called)
			walk_from(&w, i);
	for (uint32_t i = 0; i < g->node_count; i++)
		walk_from(&w, i);
	set_costs(&w);
out:
	free(w.nodes);
	free(w.calls);
	free(w.path);
	free(w.order);
	free(w.totals);
	return err;
}
