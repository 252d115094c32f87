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
	uint64_t self;		  /* of the function */
	uint64_t called, calling; /* in calls of it, and in those that it made */
	uint64_t all;
};

/* A call comes from the innermost function at its pc, and goes to the one whose code begins. */
static uint32_t caller_of(const struct builder *b, const struct profile_arc *arc)
{
	return b->places.frames[b->places.first[arc->from]];
}

static uint32_t callee_of(const struct builder *b, const struct profile_arc *arc)
{
	return b->places.frames[b->places.first[arc->to + 1] - 1];
}

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
	uint32_t caller = caller_of(b, arc), callee = callee_of(b, arc);
	bool from = b->frames.keys[caller].wanted, to = b->frames.keys[callee].wanted;
	struct neighbour *n = &b->neighbours[b->o->inverted ? caller : callee];
	uint64_t cost = cost_of(b, number);

	if (b->v->counts_calls)
		add_u64(&b->all, cost);
	if ((from || to) && b->v->tree.nodes[0].frame == CALL_TREE_NONE)
		b->v->tree.nodes[0].frame = from ? caller : callee;
	if (to && !from)
		add_u64(&b->called, cost);
	if (from && !to)
		add_u64(&b->calling, cost);
	if (b->o->inverted ? to : from) {
		add_u64(&n->cost, cost);
		add_u64(&n->calls, arc->count);
	}
}

static void add_samples(struct builder *b)
{
	const struct profile *p = b->p;
	size_t value = profile_count_value(p);

	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *s = &p->samples[i];
		uint64_t count = positive(p->values[i * p->value_type_count + value]);
		uint32_t frame;

		add_u64(&b->all, count);
		if (!s->depth)
			continue;
		frame = b->places.frames[b->places.first[p->frames[s->first_frame]]];
		if (!b->frames.keys[frame].wanted)
			continue;
		add_u64(&b->self, count);
		if (b->v->tree.nodes[0].frame == CALL_TREE_NONE)
			b->v->tree.nodes[0].frame = frame;
	}
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
	struct row_count *root = b->v->tree.counts;

	/* Callers have no part in what the function does itself. */
	root->self = b->o->inverted || b->v->counts_calls ? 0 : b->self;
	root->total = b->called;
	if (!root->total) {
		root->total = b->self;
		add_u64(&root->total, b->calling);
	}
	if (root->total > b->all)
		root->total = b->all;
	b->v->tree.samples[0] = b->all;
}

/* Whether it is known what was spent in any call. */
static bool has_costs(const struct profile *p)
{
	size_t value = profile_count_value(p);
	bool found = false;

	for (size_t i = 0; i < p->arc_count && !found; i++)
		found = p->arcs[i].kind == PROFILE_CALL &&
			p->arc_values[i * p->value_type_count + value] > 0;
	return found;
}

static int collect(struct builder *b)
{
	struct call_tree *t = &b->v->tree;

	t->column_count = 1;
	t->samples = calloc(1, sizeof(*t->samples));
	if (!t->samples || array_reserve(&t->nodes, &t->room, 1, sizeof(*t->nodes)) ||
	    array_reserve(&t->counts, &t->count_room, 1, sizeof(*t->counts)) ||
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
	if (!b->v->counts_calls)
		add_samples(b);
	choose_neighbours(b);
	count_root(b);
	return add_nodes(b);
}

int call_arcs_make(struct call_view *v, const struct profile *p, const struct call_tree_options *o)
{
	struct builder b = { .v = v, .p = p, .o = o };
	int err;

	v->counts_calls = !has_costs(p);
	err = collect(&b);
	call_places_free(&b.places);
	call_frames_free(&b.frames);
	free(b.neighbours);
	return err;
}
