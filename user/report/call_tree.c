// SPDX-License-Identifier: GPL-2.0-only
#include "report/call_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/image_name.h"
#include "report/row_view.h"
#include "report/text.h"
#include "util/array.h"
#include "util/sum.h"

/*
 * Nodes are made from the root on: the stacks of a node stand one behind the other, and are sorted
 * into those of its children by their next frames. What is folded is not looked at any more.
 */

/* What is left of a stack. */
struct item {
	const uint32_t
		*location; /* the next one; the rest are before it, or behind when inverted */
	uint64_t value;
	uint32_t left;	  /* locations */
	uint32_t line;	  /* of the next location: how many of its frames were taken */
	uint32_t labels;  /* of the profile's; its label_count when none. Or a recorded call */
	uint32_t runners; /* frames that stand before those of locations */
	uint32_t column;
	uint32_t frame; /* that it goes into; CALL_TREE_NONE: it is in no child */
};

/* A node whose children are to be made, of these items. */
struct range {
	uint32_t node;
	size_t start, end;
};

/* Where the frames of one profile are. */
struct places {
	struct callgraph_places code;
	uint32_t *runners; /* of each of its labels, and of none, the process */
	uint32_t *threads; /* behind these. Both NULL: not asked for */
};

struct builder {
	struct call_tree *t;
	const struct call_tree_options *o;
	struct places *places;	/* of each column */
	struct callgraph graph; /* its nodes are the tree's frames, by the same numbers */
	bool *wanted;		/* of each frame: whether the options name this function */
	size_t wanted_room;
	struct item *items;
	size_t item_count;
	struct range *ranges;
	size_t range_count, range_room;

	/* The children of one node, by their frames; all 0 but while that is done. */
	size_t *counts;	  /* items of each frame; then where the next one goes */
	uint64_t *totals; /* of each frame and column */
	uint32_t *met;	  /* frames that have a count, in order */
	size_t *ends;	  /* of the items of each child */
	size_t met_count;
	uint64_t *calls; /* recorded ones with each frame; NULL: it is a tree of stacks */
};

/* ---- frames ---- */

/* Takes a name that was made; NULL, when there was no memory for it, stays so. */
static const char *keep_name(struct call_tree *t, char *name)
{
	if (!name || array_reserve(&t->made, &t->made_room, t->made_count + 1, sizeof(*t->made))) {
		free(name);
		return NULL;
	}
	t->made[t->made_count++] = name;
	return name;
}

static const char *image_name(struct call_tree *t, const char *image)
{
	const char *base = text_basename(image);
	char *name;

	if (image_is_bracketed(base))
		return base;
	return keep_name(t, asprintf(&name, "[%s]", base) < 0 ? NULL : name);
}

static const char *image_path(const struct profile *p, uint32_t location)
{
	const struct profile_image *image = profile_location_image(p, location);

	return image && image->path[0] ? image->path : row_unknown;
}

static int add_frame(struct builder *b, const struct profile *p, const struct callgraph_node *node)
{
	struct call_frame *frame = &b->t->frames[b->t->frame_count++];

	*frame = (struct call_frame){
		.name = node->key.function,
		.image = node->location == PROFILE_NONE ? "" : image_path(p, node->location),
		.kernel = node->kernel,
		.named = node->key.function,
	};
	if (!frame->named)
		frame->name = image_name(b->t, frame->image);
	return frame->name ? 0 : -ENOMEM;
}

/* A frame for each node that has none yet. */
static int add_frames(struct builder *b, const struct profile *p)
{
	const struct callgraph *g = &b->graph;
	struct call_tree *t = b->t;

	if (array_reserve(&t->frames, &t->frame_room, g->node_count, sizeof(*t->frames)) ||
	    array_reserve(&b->wanted, &b->wanted_room, g->node_count, sizeof(*b->wanted)))
		return -ENOMEM;
	while (t->frame_count < g->node_count)
		if (add_frame(b, p, &g->nodes[t->frame_count]))
			return -ENOMEM;
	for (size_t i = 0; i < g->node_count; i++)
		t->frames[i].inlined = g->nodes[i].inlined;
	return 0;
}

/* Whether the options name this line of a frame; NULL: it is code without a name. */
static bool is_wanted(const struct builder *b, const struct profile *p, uint32_t frame,
		      const struct profile_line *line)
{
	const struct profile_function *function = line ? &p->functions[line->function] : NULL;
	const char *wanted = b->o->function;

	if (!line)
		return strcmp(b->t->frames[frame].name, wanted) == 0;
	return row_function_is(function->name, wanted) ||
	       row_function_is(function->system_name, wanted);
}

static void find_wanted(struct builder *b, const struct callgraph_places *places)
{
	const struct profile *p = places->p;

	for (uint32_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];
		const uint32_t *nodes = places->nodes + places->first[i];

		if (!row_image_is(image_path(p, i), b->o->image))
			continue;
		for (uint32_t j = 0; j < (l->line_count ?: 1); j++)
			b->wanted[nodes[j]] |=
				is_wanted(b, p, nodes[j],
					  l->line_count ? &p->lines[l->first_line + j] : NULL);
	}
}

/* "node 1234", as far as it is known. */
static int add_runner(struct builder *b, const char *comm, uint32_t number, uint32_t *id)
{
	struct callgraph_key key = { .image = "" };
	char *name;
	int n;

	if (!comm[0])
		comm = row_unknown;
	n = number ? asprintf(&name, "%s %" PRIu32, comm, number) : asprintf(&name, "%s", comm);
	key.function = keep_name(b->t, n < 0 ? NULL : name);
	return key.function ? callgraph_find(&b->graph, &key, id) : -ENOMEM;
}

/* Threads may have names of their own: a process has its main thread's, or its first one's. */
static int add_runners(struct builder *b, struct places *places)
{
	const struct profile *p = places->code.p;
	const struct profile_labels none = { .comm = "" };
	int err = -ENOMEM;

	places->runners = calloc(p->label_count + 1, sizeof(*places->runners));
	places->threads = calloc(p->label_count + 1, sizeof(*places->threads));
	if (places->runners && places->threads)
		err = row_process_labels(p, places->runners);
	for (size_t i = 0; i <= p->label_count && !err; i++) {
		const struct profile_labels *l = i < p->label_count ? &p->labels[i] : &none;
		const char *comm = i < p->label_count ? p->labels[places->runners[i]].comm : "";

		err = add_runner(b, comm, l->pid, &places->runners[i])
			      ?: add_runner(b, l->comm, l->tid, &places->threads[i]);
	}
	return err;
}

static int add_places(struct builder *b, const struct profile *p, struct places *places)
{
	int err = callgraph_place(&b->graph, p, &places->code);

	if (!err && b->o->roots != CALL_TREE_FUNCTIONS && !b->o->function)
		err = add_runners(b, places);
	err = err ?: add_frames(b, p);
	if (!err && b->o->function)
		find_wanted(b, &places->code);
	return err;
}

/* ---- stacks ---- */

/* The process, or the thread behind it. */
static uint32_t next_runner(const struct builder *b, struct item *item)
{
	const struct places *places = &b->places[item->column];
	bool thread = --item->runners == 0 && b->o->roots == CALL_TREE_THREADS;

	return (thread ? places->threads : places->runners)[item->labels];
}

/* The next frame of a stack, or CALL_TREE_NONE at its end. */
static uint32_t next_frame(const struct builder *b, struct item *item)
{
	const struct callgraph_places *places = &b->places[item->column].code;
	uint32_t first, count, frame;

	if (item->runners)
		return next_runner(b, item);
	if (!item->left)
		return CALL_TREE_NONE;
	first = places->first[*item->location];
	count = places->first[*item->location + 1] - first;
	frame = places->nodes[first + (b->o->inverted ? item->line : count - 1 - item->line)];
	if (++item->line < count)
		return frame;
	item->line = 0;
	if (--item->left)
		item->location += b->o->inverted ? 1 : -1;
	return frame;
}

/* Goes past the first frame of the function that is wanted. Returns it, or CALL_TREE_NONE. */
static uint32_t skip_to_function(const struct builder *b, struct item *item)
{
	uint32_t frame;

	do
		frame = next_frame(b, item);
	while (frame != CALL_TREE_NONE && !b->wanted[frame]);
	return frame;
}

static struct item item_of(const struct builder *b, const struct profile *p,
			   const struct profile_sample *s)
{
	struct item item = { .left = s->depth, .labels = s->labels };

	if (s->depth)
		item.location = p->frames + s->first_frame + (b->o->inverted ? 0 : s->depth - 1);
	if (item.labels > p->label_count)
		item.labels = p->label_count;
	if (!b->o->function)
		item.runners = b->o->roots;
	return item;
}

/* Adds what is wanted of a profile's stacks to the items, and to the root's total. */
static void add_items(struct builder *b, const struct profile *p, uint32_t column)
{
	struct call_tree *t = b->t;
	size_t value = profile_count_value(p);

	t->samples[column] = profile_filtered(p, value);
	for (size_t i = 0; i < p->sample_count; i++) {
		int64_t count = p->values[i * p->value_type_count + value];
		struct item item = item_of(b, p, &p->samples[i]);

		if (count <= 0)
			continue;
		item.value = count;
		item.column = column;
		add_u64(&t->samples[column], count);
		if (b->o->function) {
			uint32_t frame = skip_to_function(b, &item);

			if (frame == CALL_TREE_NONE)
				continue;
			if (t->nodes[0].frame == CALL_TREE_NONE)
				t->nodes[0].frame = frame;
		}
		add_u64(&t->counts[column].total, count);
		b->items[b->item_count++] = item;
	}
}

static struct callgraph_cost *counts_of(const struct call_tree *t, size_t node)
{
	return &t->counts[node * t->column_count];
}

/* Takes the next frame of each item of a node: who ends there is its own. */
static void count_frames(struct builder *b, const struct range *r)
{
	struct callgraph_cost *own = counts_of(b->t, r->node);

	b->met_count = 0;
	for (size_t i = r->start; i < r->end; i++) {
		struct item *item = &b->items[i];

		item->frame = next_frame(b, item);
		if (item->frame == CALL_TREE_NONE) {
			add_u64(&own[item->column].self, item->value);
			continue;
		}
		if (!b->counts[item->frame]++)
			b->met[b->met_count++] = item->frame;
		add_u64(&b->totals[item->frame * b->t->column_count + item->column], item->value);
	}
}

static bool is_small(const struct builder *b, uint32_t frame)
{
	const struct call_tree *t = b->t;

	for (size_t i = 0; i < t->column_count; i++)
		if ((double)b->totals[frame * t->column_count + i] >=
		    (double)t->samples[i] * b->o->min_share)
			return false;
	return true;
}

static void forget(struct builder *b, uint32_t frame)
{
	size_t columns = b->t->column_count;

	b->counts[frame] = 0;
	memset(b->totals + frame * columns, 0, columns * sizeof(*b->totals));
}

static void fold_small(struct builder *b, uint32_t node)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->met_count; i++) {
		if (!is_small(b, b->met[i])) {
			b->met[kept++] = b->met[i];
			continue;
		}
		forget(b, b->met[i]);
		b->t->nodes[node].folded++;
		b->t->folded++;
	}
	b->met_count = kept;
}

/* Falling, by the first column; of what is equal, by the others and the name. */
static int compare_frames(const void *one, const void *other, void *context)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
	const struct builder *builder = context;
	const struct call_tree *t = builder->t;
	int order = 0;

	for (size_t i = 0; i < t->column_count && !order; i++)
		order = compare_u64(builder->totals[b * t->column_count + i],
				    builder->totals[a * t->column_count + i]);
	if (!order && builder->calls)
		order = compare_u64(builder->calls[b], builder->calls[a]);
	order = order ?: strcmp(t->frames[a].name, t->frames[b].name);
	return order ?: strcmp(t->frames[a].image, t->frames[b].image);
}

static int add_node(struct builder *b, uint32_t parent, uint32_t frame)
{
	struct call_tree *t = b->t;
	size_t columns = t->column_count;

	if (t->count == CALL_TREE_NONE ||
	    array_reserve(&t->nodes, &t->room, t->count + 1, sizeof(*t->nodes)) ||
	    array_reserve(&t->counts, &t->count_room, t->count + 1, columns * sizeof(*t->counts)))
		return -ENOMEM;
	t->nodes[t->count] = (struct call_node){
		.frame = frame,
		.parent = parent,
		.first_child = CALL_TREE_NONE,
		.next_sibling = CALL_TREE_NONE,
		.depth = t->nodes[parent].depth + 1,
	};
	for (size_t i = 0; i < columns; i++)
		counts_of(t, t->count)[i] = (struct callgraph_cost){
			.total = b->totals[frame * columns + i],
		};
	t->count++;
	return 0;
}

/* Makes the children and gives each its part of the range; counts become its start. */
static int add_children(struct builder *b, const struct range *r)
{
	struct call_tree *t = b->t;
	size_t start = r->start;

	if (b->met_count)
		t->nodes[r->node].first_child = t->count;
	if (array_reserve(&b->ranges, &b->range_room, b->range_count + b->met_count,
			  sizeof(*b->ranges)))
		return -ENOMEM;
	for (size_t i = 0; i < b->met_count; i++) {
		uint32_t frame = b->met[i];
		size_t items = b->counts[frame];

		if (i > 0)
			t->nodes[t->count - 1].next_sibling = t->count;
		b->ranges[b->range_count++] = (struct range){ t->count, start, start + items };
		if (add_node(b, r->node, frame))
			return -ENOMEM;
		b->counts[frame] = start;
		start += items;
		b->ends[i] = start;
	}
	return 0;
}

static void swap_items(struct item *a, struct item *b)
{
	struct item kept = *a;

	*a = *b;
	*b = kept;
}

/* Moves the items that go into no child behind the others. */
static void put_rest_last(struct builder *b, const struct range *r)
{
	size_t end = r->end;

	for (size_t i = r->start; i < end;) {
		uint32_t frame = b->items[i].frame;

		if (frame != CALL_TREE_NONE && b->counts[frame])
			i++;
		else
			swap_items(&b->items[i], &b->items[--end]);
	}
}

/* Puts the items of each child side by side: each is moved once, to where it stays. */
static void sort_items(struct builder *b)
{
	for (size_t i = 0; i < b->met_count; i++) {
		size_t *next = &b->counts[b->met[i]];

		while (*next < b->ends[i]) {
			struct item *item = &b->items[*next];

			if (item->frame == b->met[i])
				++*next;
			else
				swap_items(item, &b->items[b->counts[item->frame]++]);
		}
	}
}

static int expand(struct builder *b, const struct range *r)
{
	int err;

	count_frames(b, r);
	fold_small(b, r->node);
	put_rest_last(b, r);
	if (b->met_count > 1)
		qsort_r(b->met, b->met_count, sizeof(*b->met), compare_frames, b);
	err = add_children(b, r);
	if (!err)
		sort_items(b);
	for (size_t i = 0; i < b->met_count; i++)
		forget(b, b->met[i]);
	return err;
}

static int expand_all(struct builder *b)
{
	struct range r = { .end = b->item_count };
	int err = expand(b, &r);

	while (!err && b->range_count) {
		r = b->ranges[--b->range_count];
		err = expand(b, &r);
	}
	return err;
}

static int make_room(struct builder *b, size_t items)
{
	struct call_tree *t = b->t;

	b->items = calloc(items + 1, sizeof(*b->items));
	b->counts = calloc(t->frame_count + 1, sizeof(*b->counts));
	b->totals = calloc(t->frame_count + 1, t->column_count * sizeof(*b->totals));
	b->met = calloc(t->frame_count + 1, sizeof(*b->met));
	b->ends = calloc(t->frame_count + 1, sizeof(*b->ends));
	return b->items && b->counts && b->totals && b->met && b->ends ? 0 : -ENOMEM;
}

static int add_stacks(struct builder *b, const struct profile *const *profiles)
{
	size_t samples = 0;

	for (size_t i = 0; i < b->t->column_count; i++)
		samples += profiles[i]->sample_count;
	if (make_room(b, samples))
		return -ENOMEM;
	for (size_t i = 0; i < b->t->column_count; i++)
		add_items(b, profiles[i], i);
	return expand_all(b);
}

/* ---- recorded calls: a tree of one level ---- */

/* What a call has of what is counted: time, or calls. */
static uint64_t call_cost(const struct builder *b, const struct profile *p, size_t arc)
{
	int64_t value;

	if (b->t->counts_calls)
		return p->arcs[arc].count;
	value = p->arc_values[arc * p->value_type_count + profile_count_value(p)];
	return value > 0 ? value : 0;
}

static void add_call(struct builder *b, const struct profile *p, uint32_t number,
		     struct callgraph_calls *calls)
{
	const struct profile_arc *arc = &p->arcs[number];
	const struct callgraph_places *places = &b->places->code;
	uint32_t caller = places->nodes[callgraph_caller(places, arc)];
	uint32_t callee = places->nodes[callgraph_callee(places, arc)];
	uint32_t neighbour = b->o->inverted ? caller : callee, *root = &b->t->nodes[0].frame;
	bool from = b->wanted[caller], to = b->wanted[callee];
	uint64_t cost = call_cost(b, p, number);

	if (b->t->counts_calls)
		add_u64(b->t->samples, cost);
	if ((from || to) && *root == CALL_TREE_NONE)
		*root = from ? caller : callee;
	if (to && !from) {
		add_u64(&calls->called, cost);
		calls->counted |= arc->count > 0;
	}
	if (from && !to)
		add_u64(&calls->calling, cost);
	if (!(b->o->inverted ? to : from) || (!cost && !arc->count))
		return;
	add_u64(&b->calls[neighbour], arc->count);
	b->places->runners[number] = neighbour;
	b->items[b->item_count++] = (struct item){ .value = cost, .labels = number, .runners = 1 };
}

/* What the function did itself, and its place where no call has brought it up. */
static int count_function(struct builder *b, uint64_t *self)
{
	size_t value = profile_count_value(b->places->code.p);
	int err = callgraph_count(&b->graph, &b->places->code, &value, 1, 0);

	b->t->samples[0] = b->graph.samples[0];
	for (size_t i = 0; !err && i < b->t->frame_count; i++) {
		if (!b->wanted[i] || !b->graph.costs[i].self)
			continue;
		add_u64(self, b->graph.costs[i].self);
		if (b->t->nodes[0].frame == CALL_TREE_NONE)
			b->t->nodes[0].frame = i;
	}
	return err;
}

static int add_calls(struct builder *b, const struct profile *p)
{
	struct callgraph_calls calls = { 0 };
	struct call_tree *t = b->t;
	uint64_t self = 0;
	int err;

	b->calls = calloc(t->frame_count + 1, sizeof(*b->calls));
	b->places->runners = calloc(p->arc_count + 1, sizeof(*b->places->runners));
	if (!b->calls || !b->places->runners || make_room(b, p->arc_count))
		return -ENOMEM;
	for (size_t i = 0; i < p->arc_count; i++)
		if (p->arcs[i].kind == PROFILE_CALL)
			add_call(b, p, i, &calls);
	err = t->counts_calls ? 0 : count_function(b, &self);
	err = err ?: expand(b, &(struct range){ .end = b->item_count });
	t->calls = calloc(t->count, sizeof(*t->calls));
	if (err || !t->calls)
		return -ENOMEM;
	for (size_t i = 1; i < t->count; i++)
		t->calls[i] = b->calls[t->nodes[i].frame];
	t->counts[0].total = callgraph_inclusive(self, &calls, t->samples[0]);
	/* Callers have no part in what the function does itself. */
	t->counts[0].self = b->o->inverted ? 0 : self;
	return 0;
}

static int add_root(struct call_tree *t)
{
	if (array_reserve(&t->nodes, &t->room, 1, sizeof(*t->nodes)) ||
	    array_reserve(&t->counts, &t->count_room, 1, t->column_count * sizeof(*t->counts)))
		return -ENOMEM;
	t->nodes[t->count++] = (struct call_node){
		.frame = CALL_TREE_NONE,
		.parent = CALL_TREE_NONE,
		.first_child = CALL_TREE_NONE,
		.next_sibling = CALL_TREE_NONE,
	};
	return 0;
}

static void builder_free(struct builder *b)
{
	for (size_t i = 0; b->places && i < b->t->column_count; i++) {
		callgraph_places_free(&b->places[i].code);
		free(b->places[i].runners);
		free(b->places[i].threads);
	}
	free(b->places);
	callgraph_free(&b->graph);
	free(b->wanted);
	free(b->items);
	free(b->ranges);
	free(b->counts);
	free(b->totals);
	free(b->met);
	free(b->ends);
	free(b->calls);
}

/* The root, and all frames. */
static int begin(struct builder *b, const struct profile *const *profiles, size_t count)
{
	const struct callgraph_options options = {
		.fields = CALLGRAPH_FUNCTION | CALLGRAPH_IMAGE | CALLGRAPH_NO_ADDRESS,
		.column_count = 1,
		.unknown = row_unknown,
		.image_name = count > 1 ? row_image_of_any_run : text_basename,
	};
	int err = callgraph_init(&b->graph, &options);

	*b->t = (struct call_tree){ .column_count = count };
	b->t->samples = calloc(count, sizeof(*b->t->samples));
	b->places = calloc(count, sizeof(*b->places));
	if (err || !b->t->samples || !b->places || add_root(b->t))
		return -ENOMEM;
	for (size_t i = 0; i < count && !err; i++)
		err = add_places(b, profiles[i], &b->places[i]);
	return err;
}

int call_tree_make(struct call_tree *t, const struct profile *const *profiles, size_t count,
		   const struct call_tree_options *options)
{
	struct builder b = { .t = t, .o = options };
	int err = begin(&b, profiles, count) ?: add_stacks(&b, profiles);

	builder_free(&b);
	return err;
}

int call_tree_of_calls(struct call_tree *t, const struct profile *p,
		       const struct call_tree_options *options)
{
	struct builder b = { .t = t, .o = options };
	int err = begin(&b, &p, 1);

	t->counts_calls = !callgraph_calls_have_cost(p, profile_count_value(p));
	err = err ?: add_calls(&b, p);
	builder_free(&b);
	return err;
}

void call_tree_free(struct call_tree *t)
{
	for (size_t i = 0; i < t->made_count; i++)
		free(t->made[i]);
	free(t->made);
	free(t->nodes);
	free(t->frames);
	free(t->counts);
	free(t->samples);
	free(t->calls);
	*t = (struct call_tree){ 0 };
}
