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
 * Nodes are made from the root on. The stacks that pass through a node are side by side in
 * builder.stacks; they are sorted by their next frames, which become the children. Folded children
 * are not expanded.
 */

/* A sample's stack, and how far it is in the tree. */
struct stack {
	const uint32_t *location; /* the next; the others are before it, or after it if inverted */
	int64_t value;
	uint32_t depth;	 /* locations left, this one included */
	uint32_t line;	 /* frames of this location that are in the tree */
	uint32_t labels; /* of the profile; label_count: none */
	uint32_t roots;	 /* frames of processes and threads left, which precede the locations */
	uint32_t column;
	uint32_t frame; /* the child that it passes through next, or CALL_TREE_NONE */
	uint32_t sample;
};

/* The stacks of a node that has no children yet; of call_tree_expand() of any node. */
struct range {
	uint32_t node;
	size_t start, end;
	bool expanded;
};

/* The frames of one profile. */
struct places {
	struct callgraph_places code;
	uint32_t *processes; /* of each of its labels, and one more for samples without labels */
	uint32_t *threads;   /* the same; both are NULL unless options->roots asks for them */
};

struct call_tree_builder {
	struct call_tree *t;
	const struct call_tree_options *o;
	struct places *places;	/* of each column */
	struct callgraph graph; /* node i of it is frame i of the tree */
	bool *wanted;		/* of each frame: it matches options->function */
	size_t wanted_room;
	struct stack *stacks;
	size_t stack_count;
	struct range *ranges;
	size_t range_count, range_room;
	struct range *spans; /* of each node, if the tree is made step by step; else NULL */
	size_t span_room;

	/* While one node is expanded. Else all of counts, totals and calls is 0. */
	uint32_t *children; /* their frames */
	size_t child_count;
	size_t *counts; /* of each frame: its stacks; then the number of its next one */
	struct callgraph_cost *totals; /* of each frame and column; without self */
	uint64_t *calls; /* of each frame: recorded calls; NULL: the tree is made of stacks */
	size_t *ends;	 /* of each child: the end of its stacks */
};

/* Takes over a name, for the tree to free. Returns it, or NULL when memory runs out. */
static const char *keep_name(struct call_tree *t, char *name)
{
	if (name && array_add(t->names, t->name_count, t->name_room, name) == 0)
		return name;
	free(name);
	return NULL;
}

/* Adds a frame for each node of the graph that has none yet. */
static int add_frames(struct call_tree_builder *b, const struct profile *p)
{
	const struct callgraph *g = &b->graph;
	struct call_tree *t = b->t;

	if (array_reserve(&t->frames, &t->frame_room, g->node_count, sizeof(*t->frames)) ||
	    array_reserve(&b->wanted, &b->wanted_room, g->node_count, sizeof(*b->wanted)))
		return -ENOMEM;
	while (t->frame_count < g->node_count) {
		const struct callgraph_node *node = &g->nodes[t->frame_count];
		struct call_frame *frame = &t->frames[t->frame_count++];
		const char *base;
		char *name;

		*frame = (struct call_frame){
			.name = node->key.function,
			.image = "",
			.kernel = node->kernel,
			.named = node->key.function,
		};
		if (node->location != PROFILE_NONE)
			frame->image = row_image_path(p, node->location);
		if (frame->named)
			continue;
		/* "[IMAGE]" */
		base = text_basename(frame->image);
		if (image_is_bracketed(base))
			frame->name = base;
		else
			frame->name = keep_name(t, asprintf(&name, "[%s]", base) < 0 ? NULL : name);
		if (!frame->name)
			return -ENOMEM;
	}
	for (size_t i = 0; i < g->node_count; i++)
		t->frames[i].inlined = g->nodes[i].inlined;
	return 0;
}

/* Marks the frames of a profile that match options->function. */
static void find_wanted(struct call_tree_builder *b, const struct callgraph_places *places)
{
	const struct profile *p = places->p;
	const char *function = b->o->function;

	for (uint32_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];
		const uint32_t *frames = places->nodes + places->first[i];

		if (!row_image_is(row_image_path(p, i), b->o->image))
			continue;
		if (!l->line_count)
			b->wanted[*frames] |= strcmp(b->t->frames[*frames].name, function) == 0;
		for (uint32_t j = 0; j < l->line_count; j++) {
			uint32_t id = p->lines[l->first_line + j].function;

			b->wanted[frames[j]] |= row_function_is(&p->functions[id], function);
		}
	}
}

/* Adds the frame of a process or thread, "node 1234", and stores its number in *frame. */
static int add_root_frame(struct call_tree_builder *b, const char *comm, uint32_t id,
			  uint32_t generation, uint32_t *frame)
{
	struct callgraph_key key = { .image = "", .generation = generation };
	char *name;
	int n;

	if (!comm[0])
		comm = row_unknown;
	n = id ? asprintf(&name, "%s %" PRIu32, comm, id) : asprintf(&name, "%s", comm);
	key.function = keep_name(b->t, n < 0 ? NULL : name);
	return key.function ? callgraph_find(&b->graph, &key, frame) : -ENOMEM;
}

/* Threads can have names of their own; row_process_names() chooses that of the process. */
static int add_root_frames(struct call_tree_builder *b, struct places *places)
{
	const struct profile *p = places->code.p;
	const struct profile_labels none = { .comm = "" };
	const char **names = calloc(p->label_count + 1, sizeof(*names));
	int err = -ENOMEM;

	places->processes = calloc(p->label_count + 1, sizeof(*places->processes));
	places->threads = calloc(p->label_count + 1, sizeof(*places->threads));
	if (places->processes && places->threads && names)
		err = row_process_names(p, names);
	for (size_t i = 0; i <= p->label_count && !err; i++) {
		const struct profile_labels *l = i < p->label_count ? &p->labels[i] : &none;
		const char *comm = i < p->label_count ? names[i] : "";

		if (add_root_frame(b, comm, l->pid, l->generation, &places->processes[i]) ||
		    add_root_frame(b, l->comm, l->tid, l->generation, &places->threads[i]))
			err = -ENOMEM;
	}
	free(names);
	return err;
}

/* The next frame of a stack, which moves on; CALL_TREE_NONE at its end. */
static uint32_t next_frame(const struct call_tree_builder *b, struct stack *s)
{
	const struct places *places = &b->places[s->column];
	const struct callgraph_places *code = &places->code;
	uint32_t first, count, frame;

	if (s->roots) {
		/* The process, and last the thread if it is asked for. */
		bool thread = --s->roots == 0 && b->o->roots == CALL_TREE_THREADS;

		return (thread ? places->threads : places->processes)[s->labels];
	}
	if (!s->depth)
		return CALL_TREE_NONE;
	first = code->first[*s->location];
	count = code->first[*s->location + 1] - first;
	frame = code->nodes[first + (b->o->inverted ? s->line : count - 1 - s->line)];
	if (++s->line < count)
		return frame;
	s->line = 0;
	if (--s->depth)
		s->location += b->o->inverted ? 1 : -1;
	return frame;
}

/* Adds the stacks of a profile to the root; with options->function, only those that contain it. */
static void add_profile(struct call_tree_builder *b, const struct profile *p, uint32_t column)
{
	struct call_tree *t = b->t;
	size_t value = profile_value(p, b->o->value);
	bool has_base = profile_has_base(p);

	t->samples[column] =
		profile_filtered_sum(b->o->filtered ? &b->o->filtered[column] : NULL, value);
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *sample = &p->samples[i];
		int64_t count = p->values[i * p->value_type_count + value];
		struct stack s = { .depth = sample->depth, .column = column, .sample = i };

		if (!has_base || profile_is_base(p, sample))
			t->samples[column] += magnitude(count);
		if (b->o->weights)
			count = b->o->weights[i];
		s.value = count;
		if (!count)
			continue;
		if (s.depth)
			s.location = p->frames + sample->first_frame +
				     (b->o->inverted ? 0 : s.depth - 1);
		s.labels = MIN(sample->labels, p->label_count);
		if (!b->o->function) {
			s.roots = b->o->roots;
		} else {
			uint32_t frame;

			do
				frame = next_frame(b, &s);
			while (frame != CALL_TREE_NONE && !b->wanted[frame]);
			if (frame == CALL_TREE_NONE)
				continue;
			if (t->nodes[0].frame == CALL_TREE_NONE)
				t->nodes[0].frame = frame;
		}
		add_i64(&t->counts[column].total, count);
		add_u64(&t->counts[column].weight, magnitude(count));
		b->stacks[b->stack_count++] = s;
	}
}

static struct callgraph_cost *counts_of(const struct call_tree *t, size_t node)
{
	return &t->counts[node * t->column_count];
}

/* Adds a value to a child of the node that is being expanded. */
static void count_child(struct call_tree_builder *b, uint32_t frame, uint32_t column, int64_t value)
{
	struct callgraph_cost *sum = &b->totals[frame * b->t->column_count + column];

	if (!b->counts[frame]++)
		b->children[b->child_count++] = frame;
	add_i64(&sum->total, value);
	add_u64(&sum->weight, magnitude(value));
}

static void forget_child(struct call_tree_builder *b, uint32_t frame)
{
	size_t columns = b->t->column_count;

	b->counts[frame] = 0;
	memset(b->totals + frame * columns, 0, columns * sizeof(*b->totals));
}

/* By weight in the first column, the largest first; if equal, by the others, calls and names. */
static int compare_frames(const void *one, const void *other, void *context)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
	const struct call_tree_builder *builder = context;
	const struct call_tree *t = builder->t;
	int order = 0;

	for (size_t i = 0; i < t->column_count && !order; i++)
		order = compare_u64(builder->totals[b * t->column_count + i].weight,
				    builder->totals[a * t->column_count + i].weight);
	if (!order && builder->calls)
		order = compare_u64(builder->calls[b], builder->calls[a]);
	order = order ?: strcmp(t->frames[a].name, t->frames[b].name);
	return order ?: strcmp(t->frames[a].image, t->frames[b].image);
}

/* Drops the children that are too small or too deep, and orders the others. */
static void choose_children(struct call_tree_builder *b, uint32_t node)
{
	struct call_tree *t = b->t;
	bool too_deep = b->o->depth_max && t->nodes[node].depth == b->o->depth_max;
	size_t kept = 0;

	t->cut += too_deep && b->child_count;

	for (size_t i = 0; i < b->child_count; i++) {
		uint32_t frame = b->children[i];
		bool is_large = false;

		for (size_t c = 0; c < t->column_count; c++)
			is_large |= !too_deep &&
				    (double)b->totals[frame * t->column_count + c].weight >=
					    (double)t->samples[c] * t->min_share;
		if (is_large) {
			b->children[kept++] = frame;
			continue;
		}
		forget_child(b, frame);
		if (too_deep)
			continue;
		t->nodes[node].folded++;
		t->folded++;
	}
	b->child_count = kept;
	if (kept > 1)
		qsort_r(b->children, kept, sizeof(*b->children), compare_frames, b);
}

/*
 * Makes the children's nodes and assigns a part of the range to each. b->counts then holds where
 * that begins. Returns 0 or -ENOMEM.
 */
static int add_children(struct call_tree_builder *b, const struct range *r)
{
	struct call_tree *t = b->t;
	size_t start = r->start, columns = t->column_count, nodes = t->count + b->child_count;

	if (nodes > CALL_TREE_NONE ||
	    array_reserve(&t->nodes, &t->room, nodes, sizeof(*t->nodes)) ||
	    array_reserve(&t->counts, &t->count_room, nodes, columns * sizeof(*t->counts)) ||
	    array_reserve(&b->ranges, &b->range_room, b->range_count + b->child_count,
			  sizeof(*b->ranges)))
		return -ENOMEM;
	if (b->child_count)
		t->nodes[r->node].first_child = t->count;
	for (size_t i = 0; i < b->child_count; i++) {
		uint32_t frame = b->children[i];
		size_t count = b->counts[frame];

		if (i > 0)
			t->nodes[t->count - 1].next_sibling = t->count;
		b->ranges[b->range_count++] =
			(struct range){ t->count, start, start + count, false };
		t->nodes[t->count] = (struct call_node){
			.frame = frame,
			.parent = r->node,
			.first_child = CALL_TREE_NONE,
			.next_sibling = CALL_TREE_NONE,
			.depth = t->nodes[r->node].depth + 1,
		};
		memcpy(counts_of(t, t->count), b->totals + frame * columns,
		       columns * sizeof(*t->counts));
		t->count++;
		b->counts[frame] = start;
		start += count;
		b->ends[i] = start;
	}
	return 0;
}

static void swap_stacks(struct stack *a, struct stack *b)
{
	struct stack kept = *a;

	*a = *b;
	*b = kept;
}

/* Makes the children of a node. Returns 0 or -ENOMEM. */
static int expand_node(struct call_tree_builder *b, const struct range *r)
{
	struct callgraph_cost *own = counts_of(b->t, r->node);
	size_t end = r->end;
	int err;

	/* Move each stack on to its next frame, a child; what ends here is the node's self. */
	b->child_count = 0;
	for (size_t i = r->start; i < r->end; i++) {
		struct stack *s = &b->stacks[i];

		s->frame = next_frame(b, s);
		if (s->frame == CALL_TREE_NONE)
			add_i64(&own[s->column].self, s->value);
		else
			count_child(b, s->frame, s->column, s->value);
	}
	choose_children(b, r->node);

	/* The stacks that end here, and those of dropped children, go to the range's end. */
	for (size_t i = r->start; i < end;) {
		uint32_t frame = b->stacks[i].frame;

		if (frame != CALL_TREE_NONE && b->counts[frame])
			i++;
		else
			swap_stacks(&b->stacks[i], &b->stacks[--end]);
	}
	err = add_children(b, r);

	/* Each of the others goes into the range of its child. */
	for (size_t i = 0; !err && i < b->child_count; i++) {
		size_t *next = &b->counts[b->children[i]];

		while (*next < b->ends[i]) {
			struct stack *s = &b->stacks[*next];

			if (s->frame == b->children[i])
				++*next;
			else
				swap_stacks(s, &b->stacks[b->counts[s->frame]++]);
		}
	}
	for (size_t i = 0; i < b->child_count; i++)
		forget_child(b, b->children[i]);
	return err;
}

static int allocate_builder(struct call_tree_builder *b, size_t stacks)
{
	struct call_tree *t = b->t;
	size_t frames = t->frame_count + 1;

	b->stacks = calloc(stacks + 1, sizeof(*b->stacks));
	b->counts = calloc(frames, sizeof(*b->counts));
	b->totals = calloc(frames, t->column_count * sizeof(*b->totals));
	b->children = calloc(frames, sizeof(*b->children));
	b->ends = calloc(frames, sizeof(*b->ends));
	return b->stacks && b->counts && b->totals && b->children && b->ends ? 0 : -ENOMEM;
}

/* Counts a call for the root, and for the caller or callee that is its child. */
static void add_call(struct call_tree_builder *b, const struct profile *p, size_t number,
		     struct callgraph_calls *calls)
{
	const struct profile_arc *arc = &p->arcs[number];
	const struct callgraph_places *places = &b->places->code;
	uint32_t caller = places->nodes[callgraph_caller(places, arc)];
	uint32_t callee = places->nodes[callgraph_callee(places, arc)];
	uint32_t child = b->o->inverted ? caller : callee, *root = &b->t->nodes[0].frame;
	bool from = b->wanted[caller], to = b->wanted[callee];
	int64_t cost;

	if (b->t->counts_calls) {
		cost = MIN(arc->count, INT64_MAX);
		b->t->samples[0] += magnitude(cost);
	} else {
		cost = p->arc_values[number * p->value_type_count + profile_value(p, b->o->value)];
	}
	if ((from || to) && *root == CALL_TREE_NONE)
		*root = from ? caller : callee;
	/* A recursive call is no cost from outside, but it is a call. */
	if (to && (!from || b->t->counts_calls)) {
		add_i64(&calls->called, cost);
		calls->counted |= arc->count > 0;
	}
	if (from && (!to || b->t->counts_calls))
		add_i64(&calls->calling, cost);
	if (!(b->o->inverted ? to : from) || (!cost && !arc->count))
		return;
	count_child(b, child, 0, cost);
	add_u64(&b->calls[child], arc->count);
}

static void builder_free(struct call_tree_builder *b)
{
	for (size_t i = 0; b->places && i < b->t->column_count; i++) {
		callgraph_places_free(&b->places[i].code);
		free(b->places[i].processes);
		free(b->places[i].threads);
	}
	free(b->places);
	callgraph_free(&b->graph);
	free(b->wanted);
	free(b->stacks);
	free(b->ranges);
	free(b->spans);
	free(b->counts);
	free(b->totals);
	free(b->children);
	free(b->ends);
	free(b->calls);
}

/* Makes the root and all frames. Returns 0 or -ENOMEM. */
static int begin_tree(struct call_tree_builder *b, const struct profile *const *profiles,
		      size_t count)
{
	const struct callgraph_options options = {
		.fields = CALLGRAPH_FUNCTION | CALLGRAPH_IMAGE | CALLGRAPH_NO_ADDRESS,
		.column_count = 1,
		.unknown = row_unknown,
		.image_name = count > 1 ? row_image_of_any_run : text_basename,
	};
	struct call_tree *t = b->t;
	int err = callgraph_init(&b->graph, &options);

	*t = (struct call_tree){ .column_count = count, .min_share = b->o->min_share };
	t->samples = calloc(count, sizeof(*t->samples));
	b->places = calloc(count, sizeof(*b->places));
	if (err || !t->samples || !b->places ||
	    array_reserve(&t->nodes, &t->room, 1, sizeof(*t->nodes)) ||
	    array_reserve(&t->counts, &t->count_room, 1, count * sizeof(*t->counts)))
		return -ENOMEM;
	t->nodes[t->count++] = (struct call_node){
		.frame = CALL_TREE_NONE,
		.parent = CALL_TREE_NONE,
		.first_child = CALL_TREE_NONE,
		.next_sibling = CALL_TREE_NONE,
	};
	for (size_t i = 0; i < count && !err; i++) {
		err = callgraph_place(&b->graph, profiles[i], &b->places[i].code);
		if (!err && b->o->roots != CALL_TREE_FUNCTIONS && !b->o->function)
			err = add_root_frames(b, &b->places[i]);
		err = err ?: add_frames(b, profiles[i]);
		if (!err && b->o->function)
			find_wanted(b, &b->places[i].code);
	}
	return err;
}

/* Makes the root and its stacks, which *r gets. Returns 0 or -ENOMEM. */
static int begin_stacks(struct call_tree_builder *b, const struct profile *const *profiles,
			size_t count, struct range *r)
{
	size_t samples = 0;
	int err = begin_tree(b, profiles, count);

	for (size_t i = 0; i < count; i++)
		samples += profiles[i]->sample_count;
	err = err ?: allocate_builder(b, samples);
	for (size_t i = 0; !err && i < count; i++)
		add_profile(b, profiles[i], i);
	*r = (struct range){ .end = b->stack_count };
	return err;
}

int call_tree_make(struct call_tree *t, const struct profile *const *profiles, size_t count,
		   const struct call_tree_options *options)
{
	struct call_tree_options o = *options;
	bool again;
	int err;

	do {
		struct call_tree_builder b = { .t = t, .o = &o };
		struct range r;

		err = begin_stacks(&b, profiles, count, &r);
		err = err ?: expand_node(&b, &r);
		while (!err && b.range_count && t->count <= CALL_TREE_NODES_MAX) {
			r = b.ranges[--b.range_count];
			err = expand_node(&b, &r);
		}
		again = !err && b.range_count;
		builder_free(&b);
		/* Small nodes are folded wherever they are, not those that come last. */
		if (again) {
			call_tree_free(t);
			o.min_share = o.min_share > 0 ? o.min_share * 10 : 1e-6;
		}
	} while (again);
	return err;
}

int call_tree_begin(struct call_tree *t, struct call_tree_builder **builder,
		    const struct profile *p, const struct call_tree_options *options)
{
	struct call_tree_builder *b = calloc(1, sizeof(*b));
	struct range r;
	int err;

	*t = (struct call_tree){ 0 };
	*builder = b;
	if (!b)
		return -ENOMEM;
	*b = (struct call_tree_builder){ .t = t, .o = options };
	err = begin_stacks(b, &p, 1, &r);
	err = err ?: array_reserve(&b->spans, &b->span_room, 1, sizeof(*b->spans));
	if (!err)
		b->spans[0] = r;
	return err;
}

int call_tree_expand(struct call_tree_builder *b, uint32_t node)
{
	const struct range r = b->spans[node];
	int err;

	if (r.expanded)
		return 0;
	err = expand_node(b, &r);
	err = err ?: array_reserve(&b->spans, &b->span_room, b->t->count, sizeof(*b->spans));
	if (err)
		return err;
	b->spans[node].expanded = true;
	for (; b->range_count; b->range_count--)
		b->spans[b->ranges[b->range_count - 1].node] = b->ranges[b->range_count - 1];
	return 0;
}

void call_tree_weights(const struct call_tree_builder *b, uint32_t node, int64_t *weights)
{
	/* Expanding it has moved its stacks, but within their range. */
	memset(weights, 0, b->places->code.p->sample_count * sizeof(*weights));
	for (size_t i = b->spans[node].start; i < b->spans[node].end; i++)
		weights[b->stacks[i].sample] = b->stacks[i].value;
}

void call_tree_builder_free(struct call_tree_builder *b)
{
	if (b)
		builder_free(b);
	free(b);
}

uint32_t call_tree_child(const struct call_tree *t, uint32_t node, const char *name,
			 const char *image)
{
	uint32_t child = t->nodes[node].first_child;

	while (child != CALL_TREE_NONE) {
		const struct call_frame *f = &t->frames[t->nodes[child].frame];

		if (strcmp(f->name, name) == 0 &&
		    strcmp(text_basename(f->image), text_basename(image)) == 0)
			break;
		child = t->nodes[child].next_sibling;
	}
	return child;
}

int call_tree_of_calls(struct call_tree *t, const struct profile *p,
		       const struct call_tree_options *options)
{
	struct call_tree_builder b = { .t = t, .o = options };
	struct callgraph_calls calls = { 0 };
	size_t value = profile_value(p, options->value);
	int64_t self = 0, most;
	int err = begin_tree(&b, &p, 1);

	t->counts_calls = !callgraph_calls_have_cost(p, value);
	if (!err) {
		b.calls = calloc(t->frame_count + 1, sizeof(*b.calls));
		err = b.calls ? allocate_builder(&b, 0) : -ENOMEM;
	}
	for (size_t i = 0; i < p->arc_count && !err; i++)
		if (p->arcs[i].kind == PROFILE_CALL)
			add_call(&b, p, i, &calls);
	if (!t->counts_calls && !err) {
		err = callgraph_count(&b.graph, &b.places->code, &value, 1, 0);
		t->samples[0] = b.graph.samples[0];
		for (size_t i = 0; i < t->frame_count && !err; i++) {
			if (!b.wanted[i] || !b.graph.costs[i].self)
				continue;
			add_i64(&self, b.graph.costs[i].self);
			/* A function without calls becomes the root here. */
			if (t->nodes[0].frame == CALL_TREE_NONE)
				t->nodes[0].frame = i;
		}
	}
	if (err)
		goto out;
	choose_children(&b, 0);
	err = add_children(&b, &(struct range){ 0 });
	t->calls = calloc(t->count, sizeof(*t->calls));
	if (err || !t->calls) {
		err = -ENOMEM;
		goto out;
	}
	for (size_t i = 1; i < t->count; i++)
		t->calls[i] = b.calls[t->nodes[i].frame];
	if (t->counts_calls && !options->inverted && calls.calling)
		calls.called = calls.calling;
	t->counts[0].total = callgraph_inclusive(self, &calls, t->samples[0]);
	t->counts[0].weight = magnitude(t->counts[0].total);
	/* Recursion counts costs several times. */
	most = (int64_t)t->counts[0].weight;
	for (size_t i = 1; i < t->count; i++) {
		if (t->counts[i].weight <= t->counts[0].weight)
			continue;
		t->counts[i].weight = t->counts[0].weight;
		t->counts[i].total = t->counts[i].total < 0 ? -most : most;
	}
	/* Inverted, the callers' costs already include self. */
	t->counts[0].self = options->inverted ? 0 : self;
out:
	builder_free(&b);
	return err;
}

void call_tree_free(struct call_tree *t)
{
	array_free_texts(t->names, t->name_count);
	free(t->nodes);
	free(t->frames);
	free(t->counts);
	free(t->samples);
	free(t->calls);
	*t = (struct call_tree){ 0 };
}
