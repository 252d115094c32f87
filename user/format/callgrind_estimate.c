// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>

#include "format/callgrind_graph.h"
#include "util/sum.h"

/* The calls of a profile as a walk from the callers to what they call sees them. */
struct walk {
	struct graph *g;
	uint32_t *first; /* function f's calls are calls[first[f] .. first[f + 1]] */
	uint32_t *calls; /* numbers of arcs */
	uint32_t *next;	 /* in calls: which one of a function's is walked next */
	uint32_t *path;	 /* functions, each called by the one before it */
	uint32_t path_size;
	uint32_t *order; /* functions that were left, what is called before its callers */
	uint32_t order_size;
	struct {
		bool entered, left;
		uint64_t called; /* how often by callers that share its costs, */
		uint64_t shared; /* and of these, how often by those that have got their share */
	} * functions;
	bool *circular;	 /* of each arc: it calls a function that is on the path already */
	int64_t *totals; /* column_count of each function: self, and the calls that it made */
};

static uint32_t caller_of(const struct graph *g, uint32_t arc)
{
	return g->positions[g->arcs[arc].from].function;
}

static uint32_t callee_of(const struct graph *g, uint32_t arc)
{
	return g->positions[g->arcs[arc].to].function;
}

/* Sorts the calls by their caller, by counting. */
static void sort_calls(struct walk *w)
{
	const struct graph *g = w->g;

	for (uint32_t i = 0; i < g->arc_count; i++)
		if (g->arcs[i].kind == PROFILE_CALL)
			w->first[caller_of(g, i) + 1]++;
	for (uint32_t i = 0; i < g->function_count; i++) {
		w->first[i + 1] += w->first[i];
		w->next[i] = w->first[i];
	}
	for (uint32_t i = 0; i < g->arc_count; i++)
		if (g->arcs[i].kind == PROFILE_CALL)
			w->calls[w->next[caller_of(g, i)]++] = i;
	for (uint32_t i = 0; i < g->function_count; i++)
		w->next[i] = w->first[i];
}

static void enter(struct walk *w, uint32_t function)
{
	w->functions[function].entered = true;
	w->path[w->path_size++] = function;
}

static void follow_call(struct walk *w, uint32_t arc)
{
	uint32_t callee = callee_of(w->g, arc);

	w->circular[arc] = w->functions[callee].entered && !w->functions[callee].left;
	if (!w->functions[callee].entered)
		enter(w, callee);
}

static void walk_from(struct walk *w, uint32_t function)
{
	if (!w->functions[function].entered)
		enter(w, function);
	while (w->path_size) {
		uint32_t last = w->path[w->path_size - 1];

		if (w->next[last] < w->first[last + 1]) {
			follow_call(w, w->calls[w->next[last]++]);
			continue;
		}
		w->functions[last].left = true;
		w->order[w->order_size++] = last;
		w->path_size--;
	}
}

/* From what nobody calls first: a circle is then entered where the program enters it. */
static void walk_all(struct walk *w)
{
	const struct graph *g = w->g;

	for (uint32_t i = 0; i < g->arc_count; i++)
		if (g->arcs[i].kind == PROFILE_CALL && caller_of(g, i) != callee_of(g, i))
			w->functions[callee_of(g, i)].called = 1;
	for (uint32_t i = 0; i < g->function_count; i++)
		if (!w->functions[i].called)
			walk_from(w, i);
	for (uint32_t i = 0; i < g->function_count; i++)
		walk_from(w, i);
}

static uint64_t count_of(const struct graph *g, uint32_t arc)
{
	return g->arcs[arc].count ?: 1;
}

static void sum_up(struct walk *w)
{
	const struct graph *g = w->g;

	for (uint32_t i = 0; i < g->function_count; i++)
		w->functions[i].called = 0;
	for (uint32_t i = 0; i < g->arc_count; i++)
		if (g->arcs[i].kind == PROFILE_CALL && !w->circular[i])
			add_u64(&w->functions[callee_of(g, i)].called, count_of(g, i));
	for (size_t i = 0; i < g->position_count * g->column_count; i++)
		add_i64(&w->totals[g->positions[i / g->column_count].function * g->column_count +
				   i % g->column_count],
			g->position_costs[i]);
}

/* Of a cost, what falls on the first `part` of `whole` calls. */
static int64_t share(int64_t cost, uint64_t part, uint64_t whole)
{
	return (unsigned __int128)cost * part / whole;
}

/* Gives a call its share of what the callee took. All shares together are that, to the last. */
static void set_cost(struct walk *w, uint32_t arc)
{
	struct graph *g = w->g;
	uint32_t caller = caller_of(g, arc), callee = callee_of(g, arc);
	uint64_t whole = w->functions[callee].called, before = w->functions[callee].shared;
	uint64_t after = before;

	if (w->circular[arc])
		return;
	add_u64(&after, count_of(g, arc));
	w->functions[callee].shared = after;
	for (size_t i = 0; i < g->column_count; i++) {
		int64_t total = w->totals[callee * g->column_count + i];
		int64_t cost = share(total, after, whole) - share(total, before, whole);

		g->arc_costs[arc * g->column_count + i] = cost;
		add_i64(&w->totals[caller * g->column_count + i], cost);
	}
}

static int walk_init(struct walk *w, struct graph *g)
{
	*w = (struct walk){
		.g = g,
		.first = calloc(g->function_count + 1, sizeof(*w->first)),
		.calls = calloc(g->arc_count + 1, sizeof(*w->calls)),
		.next = calloc(g->function_count + 1, sizeof(*w->next)),
		.path = calloc(g->function_count + 1, sizeof(*w->path)),
		.order = calloc(g->function_count + 1, sizeof(*w->order)),
		.functions = calloc(g->function_count + 1, sizeof(*w->functions)),
		.circular = calloc(g->arc_count + 1, sizeof(*w->circular)),
		.totals = calloc(g->function_count + 1, g->column_count * sizeof(*w->totals)),
	};
	return w->first && w->calls && w->next && w->path && w->order && w->functions &&
			       w->circular && w->totals
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
	free(w->functions);
	free(w->circular);
	free(w->totals);
}

int graph_estimate_costs(struct graph *g)
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
