// SPDX-License-Identifier: GPL-2.0-only
#include "report/call_arcs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/call_frames.h"
#include "util/array.h"
#include "util/sum.h"

/* A caller or callee. */
struct neighbour {
	uint32_t frame;
	uint64_t cost, calls;
};

struct builder {
	struct call_view *v;
	const struct profile *p;
	const struct call_tree_options *o;
	struct call_places places;
	struct call_frames frames;
	struct neighbour *neighbours; /* of each frame; then those that have calls, in order */
	size_t count;
	uint64_t self; /* of the function */
	struct callgraph_calls calls;
	uint64_t all;
};

static uint64_t positive(int64_t value)
{
	return value > 0 ? value : 0;
}

/* What an arc has of what is counted: time, or calls. */
static uint64_t cost_of(const struct builder *b, size_t arc)
{
	const struct profile *p = b->p;

	if (b->v->counts_calls)
		return p->arcs[arc].count;
	return positive(p->arc_values[arc * p->value_type_count + profile_count_value(p)]);
}

static void add_arc(struct builder *b, size_t number)
{
	const struct profile_arc *arc = &b->p->arcs[number];
	const struct callgraph_places *places = &b->places.code;
	uint32_t caller = places->nodes[callgraph_caller(places, arc)];
	uint32_t callee = places->nodes[callgraph_callee(places, arc)];
	bool from = b->frames.wanted[caller], to = b->frames.wanted[callee];
	struct neighbour *n = &b->neighbours[b->o->inverted ? caller : callee];
	uint64_t cost = cost_of(b, number);

	if (b->v->counts_calls)
		add_u64(&b->all, cost);
	if ((from || to) && b->v->tree.nodes[0].frame == CALL_TREE_NONE)
		b->v->tree.nodes[0].frame = from ? caller : callee;
	if (to && !from) {
		add_u64(&b->calls.called, cost);
		b->calls.counted |= arc->count > 0;
	}
	if (from && !to)
		add_u64(&b->calls.calling, cost);
	if (b->o->inverted ? to : from) {
		add_u64(&n->cost, cost);
		add_u64(&n->calls, arc->count);
	}
}

static int add_samples(struct builder *b)
{
	size_t value = profile_count_value(b->p);
	const struct callgraph *g = &b->frames.graph;
	int err = callgraph_count(&b->frames.graph, &b->places.code, &value, 1, 0);

	b->all = g->samples[0];
	for (size_t i = 0; !err && i < b->v->tree.frame_count; i++) {
		if (!b->frames.wanted[i] || !g->costs[i].self)
			continue;
		add_u64(&b->self, g->costs[i].self);
		if (b->v->tree.nodes[0].frame == CALL_TREE_NONE)
			b->v->tree.nodes[0].frame = i;
	}
	return err;
}

static int compare_neighbours(const void *one, const void *other, void *context)
{
	const struct neighbour *a = one, *b = other;
	const struct call_frame *frames = context;
	int order = compare_u64(b->cost, a->cost) ?: compare_u64(b->calls, a->calls);

	order = order ?: strcmp(frames[a->frame].name, frames[b->frame].name);
	return order ?: strcmp(frames[a->frame].image, frames[b->frame].image);
}

/* Leaves the neighbours that are large enough, in order. */
static void choose_neighbours(struct builder *b)
{
	struct call_tree *t = &b->v->tree;
	double least = (double)b->all * b->o->min_share;

	for (size_t i = 0; i < t->frame_count; i++) {
		struct neighbour n = b->neighbours[i];

		if (!n.cost && !n.calls)
			continue;
		n.frame = i;
		if ((double)n.cost >= least)
			b->neighbours[b->count++] = n;
		else
			t->nodes[0].folded++;
	}
	t->folded = t->nodes[0].folded;
	if (b->count)
		qsort_r(b->neighbours, b->count, sizeof(*b->neighbours), compare_neighbours,
			t->frames);
}

static int add_nodes(struct builder *b)
{
	struct call_tree *t = &b->v->tree;
	size_t count = b->count + 1;

	b->v->calls = calloc(count, sizeof(*b->v->calls));
	if (!b->v->calls || array_reserve(&t->nodes, &t->room, count, sizeof(*t->nodes)) ||
	    array_reserve(&t->counts, &t->count_room, count, sizeof(*t->counts)))
		return -ENOMEM;
	for (size_t i = 1; i < count; i++) {
		const struct neighbour *n = &b->neighbours[i - 1];

		t->nodes[i] = (struct call_node){
			.frame = n->frame,
			.first_child = CALL_TREE_NONE,
			.next_sibling = i + 1 < count ? i + 1 : CALL_TREE_NONE,
			.depth = 1,
		};
		t->counts[i].total = n->cost;
		b->v->calls[i] = n->calls;
	}
	if (b->count)
		t->nodes[0].first_child = 1;
	t->count = count;
	return 0;
}

static void count_root(struct builder *b)
{
	struct callgraph_cost *root = b->v->tree.counts;

	/* Callers have no part in what the function does itself. */
	root->self = b->o->inverted || b->v->counts_calls ? 0 : b->self;
	root->total = callgraph_inclusive(b->self, &b->calls, b->all);
	b->v->tree.samples[0] = b->all;
}

static int collect(struct builder *b)
{
	struct call_tree *t = &b->v->tree;

	t->column_count = 1;
	t->samples = calloc(1, sizeof(*t->samples));
	if (!t->samples || array_reserve(&t->nodes, &t->room, 1, sizeof(*t->nodes)) ||
	    array_reserve(&t->counts, &t->count_room, 1, sizeof(*t->counts)) ||
	    call_frames_init(&b->frames, t, 1) ||
	    call_places_make(&b->places, t, &b->frames, b->p, b->o))
		return -ENOMEM;
	t->nodes[t->count++] = (struct call_node){
		.frame = CALL_TREE_NONE,
		.parent = CALL_TREE_NONE,
		.first_child = CALL_TREE_NONE,
		.next_sibling = CALL_TREE_NONE,
	};
	b->neighbours = calloc(t->frame_count + 1, sizeof(*b->neighbours));
	if (!b->neighbours)
		return -ENOMEM;
	for (size_t i = 0; i < b->p->arc_count; i++)
		if (b->p->arcs[i].kind == PROFILE_CALL)
			add_arc(b, i);
	if (!b->v->counts_calls && add_samples(b))
		return -ENOMEM;
	choose_neighbours(b);
	count_root(b);
	return add_nodes(b);
}

int call_arcs_make(struct call_view *v, const struct profile *p, const struct call_tree_options *o)
{
	struct builder b = { .v = v, .p = p, .o = o };
	int err;

	v->counts_calls = !callgraph_calls_have_cost(p, profile_count_value(p));
	err = collect(&b);
	call_places_free(&b.places);
	call_frames_free(&b.frames);
	free(b.neighbours);
	return err;
}
