// SPDX-License-Identifier: GPL-2.0-only
#include "report/live/live_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/columns.h"
#include "report/text.h"
#include "util/array.h"

#define HOT_PATH 0.5 /* of a node: a child with this share of it is opened at the start */
/*
 * Bound: caller: nodes that one key opens, and that a search looks at; then: further ones stay
 * closed; seen: not seen.
 */
#define OPEN_MAX 20000 /* nodes that live_tree_open_all() opens */
/* Bound: as OPEN_MAX. */
#define FIND_MAX      200000 /* nodes that live_tree_find() looks at below the open ones */
#define SAMPLES_WIDTH 90     /* a narrower terminal has no column of samples */
#define NAME_MIN      10     /* columns of a function, however deep it is */

/* A node that is open or at the cursor, in the order of lines. */
struct live_tree_saved {
	struct live_frame frame;
	uint32_t depth;
	bool open, cursor;
};

static void free_made(struct live_tree *t)
{
	call_tree_builder_free(t->builder);
	call_tree_free(&t->tree);
	t->builder = NULL;
	free(t->value);
	t->value = NULL;
	t->line_count = 0;
}

static void free_saved(struct live_tree *t)
{
	for (size_t i = 0; i < t->saved_count; i++) {
		free(t->saved[i].frame.name);
		free(t->saved[i].frame.image);
	}
	t->saved_count = 0;
}

void live_tree_free(struct live_tree *t)
{
	free_made(t);
	free_saved(t);
	live_path_free(&t->path);
	free(t->lines);
	free(t->open);
	free(t->saved);
	*t = (struct live_tree){ 0 };
}

/* The next node in the order of lines, of all that are made; below: also those below this one. */
static uint32_t next_node(const struct live_tree *t, uint32_t node, bool below)
{
	const struct call_node *nodes = t->tree.nodes;

	if (below && nodes[node].first_child != CALL_TREE_NONE)
		return nodes[node].first_child;
	while (node != CALL_TREE_NONE && nodes[node].next_sibling == CALL_TREE_NONE)
		node = nodes[node].parent;
	return node == CALL_TREE_NONE ? CALL_TREE_NONE : nodes[node].next_sibling;
}

/* The root of all stacks has no line. */
static uint32_t first_line(const struct live_tree *t)
{
	if (!t->path.function)
		return t->tree.nodes[0].first_child;
	return t->tree.nodes[0].frame == CALL_TREE_NONE ? CALL_TREE_NONE : 0;
}

/* Lists the open part; the cursor is on `node`. Returns 0 or -ENOMEM. */
static int list_lines(struct live_tree *t, uint32_t node)
{
	t->line_count = 0;
	t->cursor = 0;
	for (uint32_t i = first_line(t); i != CALL_TREE_NONE; i = next_node(t, i, t->open[i])) {
		if (i == node)
			t->cursor = t->line_count;
		if (array_add(t->lines, t->line_count, t->line_room, i))
			return -ENOMEM;
	}
	return 0;
}

static uint32_t node_at_cursor(const struct live_tree *t)
{
	return t->cursor < t->line_count ? t->lines[t->cursor] : CALL_TREE_NONE;
}

/* Makes the children of a node. Returns 0 or -ENOMEM. */
static int expand(struct live_tree *t, uint32_t node)
{
	int err = call_tree_expand(t->builder, node);

	/* New memory is zeroed. */
	return err ?: array_reserve(&t->open, &t->open_room, t->tree.count, sizeof(*t->open));
}

/* Begins the tree with nothing open but the root. */
static int begin_tree(struct live_tree *t, const struct live *l)
{
	const char *value = live_value(l);
	int err;

	free_made(t);
	free(t->open);
	t->open = NULL;
	t->open_room = 0;
	t->value = value ? strdup(value) : NULL;
	if (value && !t->value)
		return -ENOMEM;
	t->options = (struct call_tree_options){
		.function = t->path.function,
		.image = t->path.image,
		.inverted = t->path.inverted,
		.value = t->value,
		.filtered = l->filtered,
		.weights = l->weights,
	};
	err = call_tree_begin(&t->tree, &t->builder, l->p, &t->options);
	err = err ?: expand(t, 0);
	if (!err)
		t->open[0] = true;
	return err;
}

static uint64_t weight_of(const struct live_tree *t, uint32_t node)
{
	return t->tree.counts[node].weight;
}

int live_tree_make(struct live_tree *t, const struct live *l, const char *function,
		   const char *image, bool inverted, struct error *e)
{
	uint32_t node = 0;
	int err = 0;

	*t = (struct live_tree){ .path.inverted = inverted };
	t->path.function = function ? strdup(function) : NULL;
	t->path.image = image ? strdup(image) : NULL;
	if ((function && !t->path.function) || (image && !t->path.image))
		return error_no_memory(e);
	err = begin_tree(t, l);
	if (!err && function && t->tree.nodes[0].frame == CALL_TREE_NONE)
		return error_set(e, 0, "no sample has %s in its stack", function);
	while (!err) {
		uint32_t child = t->tree.nodes[node].first_child;

		t->open[node] = true;
		if (child == CALL_TREE_NONE ||
		    (double)weight_of(t, child) < (double)weight_of(t, node) * HOT_PATH)
			break;
		node = child;
		err = expand(t, node);
	}
	err = err ?: list_lines(t, first_line(t));
	return err ? error_no_memory(e) : 0;
}

int live_tree_save(struct live_tree *t)
{
	int err = 0;

	free_saved(t);
	/* The root is always open; what is closed below others is not remembered. */
	for (size_t i = 0; i < t->line_count && !err; i++) {
		const struct call_node *node = &t->tree.nodes[t->lines[i]];
		const struct call_frame *frame = &t->tree.frames[node->frame];
		struct live_tree_saved *s;

		if (!t->lines[i] || (!t->open[t->lines[i]] && i != t->cursor))
			continue;
		err = array_reserve(&t->saved, &t->saved_room, t->saved_count + 1, sizeof(*s));
		if (err)
			break;
		s = &t->saved[t->saved_count++];
		*s = (struct live_tree_saved){
			.frame = { strdup(frame->name), strdup(frame->image) },
			.depth = node->depth,
			.open = t->open[t->lines[i]],
			.cursor = i == t->cursor,
		};
		err = s->frame.name && s->frame.image ? 0 : -ENOMEM;
	}
	free_made(t);
	return err;
}

int live_tree_restore(struct live_tree *t, const struct live *l)
{
	uint32_t *at = NULL, cursor = first_line(t), depth; /* the node of each depth */
	size_t room = 0;
	int err = begin_tree(t, l);

	cursor = err ? 0 : first_line(t);
	err = err ?: array_reserve(&at, &room, 1, sizeof(*at));
	for (size_t i = 0; i < t->saved_count && !err; i++) {
		const struct live_tree_saved *s = &t->saved[i];

		depth = s->depth;
		err = array_reserve(&at, &room, depth + 1, sizeof(*at));
		if (err)
			break;
		at[depth] = CALL_TREE_NONE;
		if (at[depth - 1] == CALL_TREE_NONE)
			continue;
		at[depth] = call_tree_child(&t->tree, at[depth - 1], s->frame.name, s->frame.image);
		if (at[depth] == CALL_TREE_NONE)
			continue;
		if (s->cursor)
			cursor = at[depth];
		if (s->open) {
			err = expand(t, at[depth]);
			t->open[at[depth]] = true;
		}
	}
	free(at);
	free_saved(t);
	return err ?: list_lines(t, cursor);
}

int live_tree_open(struct live_tree *t)
{
	uint32_t node = node_at_cursor(t), at = node;
	int err = 0;

	while (at != CALL_TREE_NONE && !err) {
		err = expand(t, at);
		if (err)
			return err;
		t->open[at] = true;
		at = t->tree.nodes[at].first_child;
		if (at != CALL_TREE_NONE && t->tree.nodes[at].next_sibling != CALL_TREE_NONE)
			break;
	}
	return list_lines(t, node);
}

int live_tree_open_all(struct live_tree *t, double percent)
{
	double least = (double)t->tree.samples[0] * percent / 100;
	uint32_t node = node_at_cursor(t), i = node;
	int err = 0;

	for (size_t opened = 0; i != CALL_TREE_NONE && opened < OPEN_MAX && !err;) {
		bool large = i == node || (double)weight_of(t, i) >= least;

		if (i != node && t->tree.nodes[i].depth <= t->tree.nodes[node].depth)
			break;
		if (large) {
			err = expand(t, i);
			if (err)
				return err;
			t->open[i] = true;
			opened++;
		}
		i = next_node(t, i, large);
	}
	return list_lines(t, node);
}

int live_tree_close(struct live_tree *t)
{
	uint32_t node = node_at_cursor(t), parent;

	if (node == CALL_TREE_NONE)
		return 0;
	parent = t->tree.nodes[node].parent;
	if (live_tree_is_open(t))
		t->open[node] = false;
	else if (parent != CALL_TREE_NONE && (parent || t->path.function))
		node = parent;
	return list_lines(t, node);
}

int live_tree_close_all(struct live_tree *t)
{
	uint32_t node = node_at_cursor(t);
	uint32_t top = t->path.function ? 0 : 1; /* depth of what stays */

	memset(t->open, 0, t->tree.count * sizeof(*t->open));
	t->open[0] = true;
	while (node != CALL_TREE_NONE && t->tree.nodes[node].depth > top)
		node = t->tree.nodes[node].parent;
	return list_lines(t, node);
}

static bool node_matches(const struct live_tree *t, uint32_t node)
{
	const struct call_frame *frame;

	if (!t->regex || t->tree.nodes[node].frame == CALL_TREE_NONE)
		return false;
	frame = &t->tree.frames[t->tree.nodes[node].frame];
	return live_matches(t->regex, frame->name) ||
	       (!frame->named && live_matches(t->regex, frame->image));
}

/*
 * Forwards through the whole tree: where only stacks that match are shown, each node without a
 * match above it has one below it, so few nodes are made on the way; unless it is above the root of
 * the tree.
 */
int live_tree_find(struct live_tree *t, bool backwards, bool *found)
{
	uint32_t node = node_at_cursor(t);
	size_t looked = 0;
	int err = 0;

	*found = false;
	if (backwards) {
		for (size_t i = t->cursor; i-- > 0 && !*found;)
			if (node_matches(t, t->lines[i])) {
				t->cursor = i;
				*found = true;
			}
		return 0;
	}
	while (node != CALL_TREE_NONE && !err) {
		bool below = t->open[node] || !node_matches(t, node);

		if (below && ++looked > FIND_MAX)
			return 0;
		if (below)
			err = expand(t, node);
		if (err)
			return err;
		node = next_node(t, node, below);
		if (node != CALL_TREE_NONE && node_matches(t, node))
			break;
	}
	if (node == CALL_TREE_NONE)
		return 0;
	*found = true;
	for (uint32_t i = t->tree.nodes[node].parent; i != CALL_TREE_NONE;
	     i = t->tree.nodes[i].parent)
		t->open[i] = true;
	return list_lines(t, node);
}

const struct call_frame *live_tree_frame(const struct live_tree *t)
{
	uint32_t node = node_at_cursor(t);
	const struct call_frame *frame;

	if (node == CALL_TREE_NONE || t->tree.nodes[node].frame == CALL_TREE_NONE)
		return NULL;
	frame = &t->tree.frames[t->tree.nodes[node].frame];
	return frame->named ? frame : NULL;
}

bool live_tree_is_open(const struct live_tree *t)
{
	uint32_t node = node_at_cursor(t);

	return node != CALL_TREE_NONE && t->open[node] &&
	       t->tree.nodes[node].first_child != CALL_TREE_NONE;
}

int live_tree_path(const struct live_tree *t, struct live_path *path)
{
	uint32_t node = node_at_cursor(t);
	size_t depth = node == CALL_TREE_NONE ? 0 : t->tree.nodes[node].depth;

	*path = (struct live_path){
		.function = t->path.function ? strdup(t->path.function) : NULL,
		.image = t->path.image ? strdup(t->path.image) : NULL,
		.inverted = t->path.inverted,
		.frames = calloc(depth + 1, sizeof(*path->frames)),
	};
	if ((t->path.function && !path->function) || (t->path.image && !path->image) ||
	    !path->frames)
		return -ENOMEM;
	path->depth = depth;
	for (; depth > 0; depth--, node = t->tree.nodes[node].parent) {
		const struct call_frame *frame = &t->tree.frames[t->tree.nodes[node].frame];
		struct live_frame *copy = &path->frames[depth - 1];

		*copy = (struct live_frame){ strdup(frame->name), strdup(frame->image) };
		if (!copy->name || !copy->image)
			return -ENOMEM;
	}
	return 0;
}

static int print_node(const struct live_tree *t, const struct live *l, uint32_t node, size_t width,
		      FILE *out)
{
	const struct call_node *n = &t->tree.nodes[node];
	const struct call_frame *frame = &t->tree.frames[n->frame], *above = NULL;
	const struct callgraph_cost *count = &t->tree.counts[node];
	const char *image = frame->named && frame->image[0] ? text_basename(frame->image) : NULL;
	const char *mark = n->first_child == CALL_TREE_NONE ? "  " : t->open[node] ? "- " : "+ ";
	const struct call_node *nodes = t->tree.nodes;
	uint32_t level = 0, most;
	bool hot = table_is_hot(count->self, t->tree.samples[0]);
	size_t used = t->path.inverted ? 8 + 2 : 2 * 8 + 2, image_room;
	char total[TEXT_PERCENT_SIZE], self[TEXT_PERCENT_SIZE] = "";
	int columns;

	/* How many ancestors, those without a line excluded, have several children. */
	for (uint32_t i = node; nodes[i].parent != CALL_TREE_NONE; i = nodes[i].parent)
		level += nodes[nodes[nodes[i].parent].first_child].next_sibling != CALL_TREE_NONE &&
			 (nodes[i].parent || t->path.function);
	text_percent(total, count->total, t->tree.samples[0]);
	if (count->self)
		text_percent(self, count->self, t->tree.samples[0]);
	fprintf(out, "%6s  ", total);
	if (!t->path.inverted)
		fprintf(out, "%s%6s%s  ", hot ? TEXT_RED : "", self, hot ? TEXT_PLAIN : "");
	if (width >= SAMPLES_WIDTH) {
		char number[TABLE_CELL_SIZE];

		live_number(l, count->total, number);
		used += fprintf(out, "%10s  ", number);
	}
	/* Deep levels have a number instead of their indentation. */
	most = width > used + NAME_MIN ? (width - used - NAME_MIN) / 4 : 0;
	if (level > most)
		used += fprintf(out, "%" PRIu32 ":", level);
	else
		used += fprintf(out, "%*s", (int)level * 2, "");
	fputs(mark, out);
	if (n->parent != CALL_TREE_NONE && t->tree.nodes[n->parent].frame != CALL_TREE_NONE)
		above = &t->tree.frames[t->tree.nodes[n->parent].frame];
	if (above && image && strcmp(text_basename(above->image), image) == 0)
		image = NULL;
	width = width > used + 4 ? width - used : 4;
	image_room = image ? text_columns(image) : 0;
	image_room = MIN(image_room, width / 3);
	if (image_room < 4 || width < 20)
		image_room = 0;
	if (node_matches(t, node))
		fputs(TEXT_BOLD, out);
	columns = text_print_in(frame->name, width - (image_room ? image_room + 2 : 0), out);
	fputs(TEXT_PLAIN, out);
	if (columns >= 0 && image_room) {
		fputs("  " TEXT_FAINT, out);
		columns = text_print_in(image, image_room, out);
		fputs(TEXT_PLAIN, out);
	}
	putc('\n', out);
	return columns < 0 ? columns : 0;
}

int live_tree_print(struct live_tree *t, const struct live *l, size_t first, size_t count,
		    unsigned int width, FILE *out)
{
	char *title = NULL;
	int err = 0, n;

	if (!t->path.function)
		n = asprintf(&title, "Call tree");
	else if (t->path.inverted)
		n = asprintf(&title, "What calls %s, each below what it calls", t->path.function);
	else
		n = asprintf(&title, "What %s calls", t->path.function);
	for (size_t i = 0; i < l->zoom_count && n >= 0; i++) {
		char *longer;

		n = asprintf(&longer, "%s, only %s", title, l->zooms[i].text);
		free(title);
		title = n < 0 ? NULL : longer;
	}
	if (n < 0)
		return -ENOMEM;
	n = text_print_in(title, width, out);
	free(title);
	if (n < 0)
		return -ENOMEM;
	fprintf(out, "\n%6s  ", "total%");
	if (!t->path.inverted)
		fprintf(out, "%6s  ", "self%");
	if (width >= SAMPLES_WIDTH)
		fprintf(out, "%10s  ", live_title(l));
	fputs("  function\n", out);
	if (!t->line_count)
		fputs("no samples\n", out);
	/* What they call is made now, too: it shows which can be opened, and their self. */
	for (size_t i = first; i < t->line_count && i - first < count && !err; i++)
		err = expand(t, t->lines[i]);
	for (size_t i = first; i < t->line_count && i - first < count && !err; i++)
		err = print_node(t, l, t->lines[i], width, out);
	return err;
}
