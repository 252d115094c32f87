// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>

#include "profile/callgraph.h"
#include "util/sum.h"

/* The calls of a profile as a walk from the callers to what they call sees them. */
struct walk {
	struct callgraph *g;
	uint32_t *first; /* node i's calls are calls[first[i] .. first[i + 1]] */
	uint32_t *calls; /* numbers of edges */
	uint32_t *next;	 /* in calls: which one of a node's is walked next */
	uint32_t *path;	 /* nodes, each called by the one before it */
	uint32_t path_size;
	uint32_t *order; /* nodes that were left, what is called before its callers */
	uint32_t order_size;
	struct {
		bool entered, left;
		uint64_t called; /* how often by callers that share its costs, */
		uint64_t shared; /* and of these, how often by those that have got their share */
	} * nodes;
	bool *circular;	  /* of each edge: it calls a node that is on the path already */
	uint64_t *totals; /* column_count of each node: self, and the calls that it made */
};

static uint32_t caller_of(const struct callgraph *g, uint32_t edge)
{
	return g->positions[g->edges[edge].from].node;
}

static uint32_t callee_of(const struct callgraph *g, uint32_t edge)
{
	return g->positions[g->edges[edge].to].node;
}

/* Sorts the calls by their caller, by counting. */
static void sort_calls(struct walk *w)
{
	const struct callgraph *g = w->g;

	for (uint32_t i = 0; i < g->edge_count; i++)
		if (g->edges[i].kind == PROFILE_CALL)
			w->first[caller_of(g, i) + 1]++;
	for (uint32_t i = 0; i < g->node_count; i++) {
		w->first[i + 1] += w->first[i];
		w->next[i] = w->first[i];
	}
	for (uint32_t i = 0; i < g->edge_count; i++)
		if (g->edges[i].kind == PROFILE_CALL)
			w->calls[w->next[caller_of(g, i)]++] = i;
	for (uint32_t i = 0; i < g->node_count; i++)
		w->next[i] = w->first[i];
}

static void enter(struct walk *w, uint32_t node)
{
	w->nodes[node].entered = true;
	w->path[w->path_size++] = node;
}

static void follow_call(struct walk *w, uint32_t edge)
{
	uint32_t callee = callee_of(w->g, edge);

	w->circular[edge] = w->nodes[callee].entered && !w->nodes[callee].left;
	if (!w->nodes[callee].entered)
		enter(w, callee);
}

static void walk_from(struct walk *w, uint32_t node)
{
	if (!w->nodes[node].entered)
		enter(w, node);
	while (w->path_size) {
		uint32_t last = w->path[w->path_size - 1];

		if (w->next[last] < w->first[last + 1]) {
			follow_call(w, w->calls[w->next[last]++]);
			continue;
		}
		w->nodes[last].left = true;
		w->order[w->order_size++] = last;
		w->path_size--;
	}
}

/* From what nobody calls first: a circle is then entered where the program enters it. */
static void walk_all(struct walk *w)
{
	const struct callgraph *g = w->g;

	for (uint32_t i = 0; i < g->edge_count; i++)
		if (g->edges[i].kind == PROFILE_CALL && caller_of(g, i) != callee_of(g, i))
			w->nodes[callee_of(g, i)].called = 1;
	for (uint32_t i = 0; i < g->node_count; i++)
		if (!w->nodes[i].called)
			walk_from(w, i);
	for (uint32_t i = 0; i < g->node_count; i++)
		walk_from(w, i);
}

static uint64_t count_of(const struct callgraph *g, uint32_t edge)
{
	return g->edges[edge].count ?: 1;
}

static void sum_up(struct walk *w)
{
	const struct callgraph *g = w->g;

	for (uint32_t i = 0; i < g->node_count; i++)
		w->nodes[i].called = 0;
	for (uint32_t i = 0; i < g->edge_count; i++)
		if (g->edges[i].kind == PROFILE_CALL && !w->circular[i])
			add_u64(&w->nodes[callee_of(g, i)].called, count_of(g, i));
	for (size_t i = 0; i < g->node_count * g->options.column_count; i++)
		w->totals[i] = g->costs[i].self;
}

/* Of a cost, what falls on the first `part` of `whole` calls. */
static uint64_t share(uint64_t cost, uint64_t part, uint64_t whole)
{
	return (unsigned __int128)cost * part / whole;
}

/* Gives a call its share of what the callee took. All shares together are that, to the last. */
static void set_cost(struct walk *w, uint32_t edge)
{
	struct callgraph *g = w->g;
	uint32_t caller = caller_of(g, edge), callee = callee_of(g, edge);
	uint64_t whole = w->nodes[callee].called, before = w->nodes[callee].shared;
	uint64_t after = before;

	if (w->circular[edge])
		return;
	add_u64(&after, count_of(g, edge));
	w->nodes[callee].shared = after;
	for (size_t i = 0; i < g->options.column_count; i++) {
		uint64_t total = w->totals[callee * g->options.column_count + i];
		uint64_t cost = share(total, after, whole) - share(total, before, whole);

		g->edge_costs[edge * g->options.column_count + i] = cost;
		add_u64(&w->totals[caller * g->options.column_count + i], cost);
	}
}

static int walk_init(struct walk *w, struct callgraph *g)
{
	*w = (struct walk){
		.g = g,
		.first = calloc(g->node_count + 1, sizeof(*w->first)),
		.calls = calloc(g->edge_count + 1, sizeof(*w->calls)),
		.next = calloc(g->node_count + 1, sizeof(*w->next)),
		.path = calloc(g->node_count + 1, sizeof(*w->path)),
		.order = calloc(g->node_count + 1, sizeof(*w->order)),
		.nodes = calloc(g->node_count + 1, sizeof(*w->nodes)),
		.circular = calloc(g->edge_count + 1, sizeof(*w->circular)),
		.totals = calloc(g->node_count + 1, g->options.column_count * sizeof(*w->totals)),
	};
	return w->first && w->calls && w->next && w->path && w->order && w->nodes && w->circular &&
			       w->totals
		       ? 0
		       : -ENOMEM;
}

static void walk_free(struct walk *w)
{
	free(w->first);
	free(w->calls);
	free(w->next);
	free(w->path);
	free(w->order);
	free(w->nodes);
	free(w->circular);
	free(w->totals);
}

int callgraph_estimate(struct callgraph *g)
{
	struct walk w;
	int err = walk_init(&w, g);

	if (!err) {
		sort_calls(&w);
		walk_all(&w);
		sum_up(&w);
		for (uint32_t i = 0; i < w.order_size; i++)
			for (uint32_t j = w.first[w.order[i]]; j < w.first[w.order[i] + 1]; j++)
				set_cost(&w, w.calls[j]);
	}
	walk_free(&w);
	return err;
}
