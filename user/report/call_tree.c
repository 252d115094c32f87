// SPDX-License-Identifier: GPL-2.0-only
#include "report/call_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/call_frames.h"
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
	uint32_t left;	 /* locations */
	uint32_t line;	 /* of the next location: how many of its frames were taken */
	uint32_t labels; /* of the profile's; its label_count when none */
	uint32_t runners;
	uint32_t column;
	uint32_t frame; /* that it goes into; CALL_TREE_NONE: it is in no child */
};

/* A node whose children are to be made, of these items. */
struct range {
	uint32_t node;
	size_t start, end;
};

struct builder {
	struct call_tree *t;
	const struct call_tree_options *o;
	struct call_places *places; /* of each column */
	struct call_frames frames;
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
};

/* The process, or the thread behind it. */
static uint32_t next_runner(const struct builder *b, struct item *item)
{
	const struct call_places *places = &b->places[item->column];
	bool thread = --item->runners == 0 && b->o->roots == CALL_TREE_THREADS;

	return (thread ? places->thread : places->process)[item->labels];
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
	while (frame != CALL_TREE_NONE && !b->frames.wanted[frame]);
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

static int add_profiles(struct builder *b, const struct profile *const *profiles)
{
	struct call_tree *t = b->t;
	size_t samples = 0;

	if (call_frames_init(&b->frames, t, 0))
		return -ENOMEM;
	for (size_t i = 0; i < t->column_count; i++) {
		if (call_places_make(&b->places[i], t, &b->frames, profiles[i], b->o))
			return -ENOMEM;
		samples += profiles[i]->sample_count;
	}
	b->items = calloc(samples + 1, sizeof(*b->items));
	b->counts = calloc(t->frame_count + 1, sizeof(*b->counts));
	b->totals = calloc(t->frame_count + 1, t->column_count * sizeof(*b->totals));
	b->met = calloc(t->frame_count + 1, sizeof(*b->met));
	b->ends = calloc(t->frame_count + 1, sizeof(*b->ends));
	if (!b->items || !b->counts || !b->totals || !b->met || !b->ends)
		return -ENOMEM;
	for (size_t i = 0; i < t->column_count; i++)
		add_items(b, profiles[i], i);
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
	for (size_t i = 0; b->places && i < b->t->column_count; i++)
		call_places_free(&b->places[i]);
	free(b->places);
	call_frames_free(&b->frames);
	free(b->items);
	free(b->ranges);
	free(b->counts);
	free(b->totals);
	free(b->met);
	free(b->ends);
}

int call_tree_make(struct call_tree *t, const struct profile *const *profiles, size_t count,
		   const struct call_tree_options *options)
{
	struct builder b = { .t = t, .o = options };
	int err = -ENOMEM;

	*t = (struct call_tree){ .column_count = count };
	t->samples = calloc(count, sizeof(*t->samples));
	b.places = calloc(count, sizeof(*b.places));
	if (t->samples && b.places)
		err = add_root(t);
	err = err ?: add_profiles(&b, profiles);
	err = err ?: expand_all(&b);
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
	*t = (struct call_tree){ 0 };
}
