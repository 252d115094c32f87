// SPDX-License-Identifier: GPL-2.0-only
#include "report/call_frames.h"

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

/* What is needed while the frames of one profile are collected. */
struct collector {
	struct call_places *places;
	struct call_tree *t;
	struct call_frames *frames;
	const struct profile *p;
	const struct call_tree_options *o;
};

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

static int add_frame(struct collector *c, const struct callgraph_node *node)
{
	struct call_frame *frame = &c->t->frames[c->t->frame_count++];

	*frame = (struct call_frame){
		.name = node->key.function,
		.image = node->location == PROFILE_NONE ? "" : image_path(c->p, node->location),
		.kernel = node->kernel,
		.named = node->key.function,
	};
	if (!frame->named)
		frame->name = image_name(c->t, frame->image);
	return frame->name ? 0 : -ENOMEM;
}

/* A frame for each node that has none yet. */
static int add_frames(struct collector *c)
{
	const struct callgraph *g = &c->frames->graph;
	struct call_tree *t = c->t;

	if (array_reserve(&t->frames, &t->frame_room, g->node_count, sizeof(*t->frames)) ||
	    array_reserve(&c->frames->wanted, &c->frames->wanted_room, g->node_count,
			  sizeof(*c->frames->wanted)))
		return -ENOMEM;
	while (t->frame_count < g->node_count)
		if (add_frame(c, &g->nodes[t->frame_count]))
			return -ENOMEM;
	for (size_t i = 0; i < g->node_count; i++)
		t->frames[i].inlined = g->nodes[i].inlined;
	return 0;
}

/* Whether the options name this place; line: NULL for code of the image that has no name. */
static bool is_wanted(const struct collector *c, uint32_t place, const struct profile_line *line)
{
	const char *wanted = c->o->function;
	const struct profile_function *function;

	if (!line)
		return strcmp(c->t->frames[c->places->code.nodes[place]].name, wanted) == 0;
	function = &c->p->functions[line->function];
	return row_function_is(function->name, wanted) ||
	       row_function_is(function->system_name, wanted);
}

static void find_wanted(struct collector *c)
{
	const uint32_t *first = c->places->code.first;

	for (uint32_t i = 0; i < c->p->location_count; i++) {
		const struct profile_location *l = &c->p->locations[i];
		const struct profile_line *lines = c->p->lines + l->first_line;

		if (!row_image_is(image_path(c->p, i), c->o->image))
			continue;
		for (uint32_t place = first[i]; place < first[i + 1]; place++)
			if (is_wanted(c, place, l->line_count ? &lines[place - first[i]] : NULL))
				c->frames->wanted[c->places->code.nodes[place]] = true;
	}
}

/* "node 1234", as far as it is known. */
static int add_runner(struct collector *c, const char *comm, uint32_t number, uint32_t *id)
{
	struct callgraph_key key = { .image = "" };
	char *name;
	int n;

	if (!comm[0])
		comm = row_unknown;
	n = number ? asprintf(&name, "%s %" PRIu32, comm, number) : asprintf(&name, "%s", comm);
	key.function = keep_name(c->t, n < 0 ? NULL : name);
	return key.function ? callgraph_find(&c->frames->graph, &key, id) : -ENOMEM;
}

/* The process of each label, then the main thread before its others. */
static int compare_labels(const void *one, const void *other, void *context)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
	const struct profile_labels *labels = context, *x = &labels[a], *y = &labels[b];
	int order = compare_u64(x->pid, y->pid);

	order = order ?: (x->tid != x->pid) - (y->tid != y->pid);
	return order ?: compare_u64(a, b);
}

/* Threads may have names of their own: a process has its main thread's, or its first one's. */
static int add_runners(struct collector *c, const uint32_t *order)
{
	const struct profile_labels *labels = c->p->labels;
	const char *comm = "";

	for (size_t i = 0; i < c->p->label_count; i++) {
		const struct profile_labels *l = &labels[order[i]];

		if (i == 0 || !l->pid || l->pid != labels[order[i - 1]].pid)
			comm = l->comm;
		if (add_runner(c, comm, l->pid, &c->places->process[order[i]]) ||
		    add_runner(c, l->comm, l->tid, &c->places->thread[order[i]]))
			return -ENOMEM;
	}
	if (add_runner(c, "", 0, &c->places->process[c->p->label_count]))
		return -ENOMEM;
	c->places->thread[c->p->label_count] = c->places->process[c->p->label_count];
	return 0;
}

static int add_labels(struct collector *c)
{
	size_t count = c->p->label_count;
	uint32_t *order = calloc(count + 1, sizeof(*order));
	int err = -ENOMEM;

	c->places->process = calloc(count + 1, sizeof(*c->places->process));
	c->places->thread = calloc(count + 1, sizeof(*c->places->thread));
	if (order && c->places->process && c->places->thread) {
		for (size_t i = 0; i < count; i++)
			order[i] = i;
		if (count)
			qsort_r(order, count, sizeof(*order), compare_labels, c->p->labels);
		err = add_runners(c, order);
	}
	free(order);
	return err;
}

int call_places_make(struct call_places *places, struct call_tree *t, struct call_frames *frames,
		     const struct profile *p, const struct call_tree_options *o)
{
	struct collector c = { .places = places, .t = t, .frames = frames, .p = p, .o = o };
	int err = callgraph_place(&frames->graph, p, &places->code);

	if (!err && o->roots != CALL_TREE_FUNCTIONS && !o->function)
		err = add_labels(&c);
	err = err ?: add_frames(&c);
	if (!err && o->function)
		find_wanted(&c);
	return err;
}

void call_places_free(struct call_places *places)
{
	callgraph_places_free(&places->code);
	free(places->process);
	free(places->thread);
}

int call_frames_init(struct call_frames *frames, const struct call_tree *t, size_t column_count)
{
	const struct callgraph_options options = {
		.fields = CALLGRAPH_FUNCTION | CALLGRAPH_IMAGE | CALLGRAPH_NO_ADDRESS,
		.column_count = column_count,
		.unknown = row_unknown,
		.image_name = t->column_count > 1 ? row_image_of_any_run : text_basename,
	};

	return callgraph_init(&frames->graph, &options);
}

void call_frames_free(struct call_frames *frames)
{
	callgraph_free(&frames->graph);
	free(frames->wanted);
}
