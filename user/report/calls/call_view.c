// SPDX-License-Identifier: GPL-2.0-only
#include "report/calls/call_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/columns.h"
#include "report/json_writer.h"
#include "report/rows.h"
#include "report/text.h"
#include "report/totals.h"
#include "util/array.h"
#include "util/sum.h"

/*
 * Deeper stacks are cut.
 * Bound: files: frames of a stack in a tree; then: the callers beyond are cut off; seen: in a note
 * of the view.
 */
#define DEPTH_MAX 100000

/* Bound: caller: names that a message suggests; then: further ones are "...". */
#define SUGGESTIONS_MAX 3

/* Hints at functions whose names contain the one that was not found. Returns -ENOENT. */
static int explain_not_found(const struct call_view *v, struct error *e)
{
	const struct call_tree *t = &v->tree;
	size_t found = 0;
	char list[400] = "";

	error_set(e, 0, "no sample has %s%s%s in its stack", v->options.function,
		  v->options.image ? " of " : "", v->options.image ?: "");
	for (size_t i = 0; i < t->frame_count && found <= SUGGESTIONS_MAX; i++)
		if (strcasestr(t->frames[i].name, v->options.function))
			text_append(list, sizeof(list), ", ", "%s",
				    ++found > SUGGESTIONS_MAX ? "..." : t->frames[i].name);
	if (*list)
		error_hint(e, "functions with similar names: %s", list);
	else
		error_hint(e, "profiltool report -E 0 lists the functions that have samples");
	return -ENOENT;
}

static int make_tree(struct call_view *v, const struct profile *p, struct error *e)
{
	const struct call_tree_options o = {
		.roots = v->options.roots,
		.inverted = v->options.callers,
		.function = v->options.function,
		.image = v->options.image,
		.value = v->options.value,
		.min_share = v->options.percent / 100,
		.depth_max = DEPTH_MAX,
		.filtered = v->options.filtered,
	};
	bool calls = false;
	int err;

	for (size_t i = 0; i < p->arc_count && !calls; i++)
		calls = p->arcs[i].kind == PROFILE_CALL;

	if (profile_stacks_unfiltered(p, o.filtered) ||
	    (!calls && !profile_magnitude(p, o.value) &&
	     !profile_filtered_sum(o.filtered, profile_value(p, o.value)))) {
		err = call_tree_make(&v->tree, &p, 1, &o);
	} else if (calls && o.function) {
		err = call_tree_of_calls(&v->tree, p, &o);
	} else if (o.filtered && o.filtered->calls) {
		error_set(e, 0,
			  "counted calls cannot be filtered, and the profile has no call stacks");
		error_hint(e, "--callers FUNCTION and --callees FUNCTION show the calls of one "
			      "function without --focus and --ignore");
		return -ENODATA;
	} else {
		error_set(e, 0, "the profile has no call stacks");
		if (calls)
			error_hint(e, "it has counted calls: --callers FUNCTION and --callees "
				      "FUNCTION show those of one function");
		else
			error_hint(e, "profiltool record -g records call stacks");
		return -ENODATA;
	}
	if (err)
		return error_no_memory(e);
	if (o.function && v->tree.nodes[0].frame == CALL_TREE_NONE)
		return explain_not_found(v, e);
	return 0;
}

/* The largest weight first; a parent before its children. */
static int compare_nodes(const void *one, const void *other, void *context)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
	const struct callgraph_cost *counts = context;

	return compare_u64(counts[b].weight, counts[a].weight) ?: compare_u64(a, b);
}

/* Sums up the children of each node that are not shown. Returns 0 or -ENOMEM. */
static int count_rests(struct call_view *v)
{
	const struct call_tree *t = &v->tree;
	struct callgraph_cost *shown = calloc(t->count, sizeof(*shown));

	v->rests = calloc(t->count, sizeof(*v->rests));
	if (!shown || !v->rests) {
		free(shown);
		return -ENOMEM;
	}
	for (size_t i = 1; i < t->count; i++) {
		uint32_t parent = t->nodes[i].parent;

		if (v->hidden && v->hidden[i]) {
			v->rests[parent].count++;
			continue;
		}
		add_i64(&shown[parent].total, t->counts[i].total);
		add_u64(&shown[parent].weight, t->counts[i].weight);
	}
	for (size_t i = 0; i < t->count; i++) {
		struct call_rest *rest = &v->rests[i];

		rest->count += t->nodes[i].folded;
		add_i64(&shown[i].total, t->counts[i].self);
		add_u64(&shown[i].weight, magnitude(t->counts[i].self));
		/* The children can have more together: calls of a cycle count several times. */
		if (rest->count && t->counts[i].weight > shown[i].weight) {
			if (__builtin_sub_overflow(t->counts[i].total, shown[i].total,
						   &rest->total))
				rest->total = t->counts[i].total;
			rest->weight = t->counts[i].weight - shown[i].weight;
		}
	}
	free(shown);
	return 0;
}

int call_view_make(struct call_view *v, const struct profile *p, const struct call_view_options *o,
		   struct error *e)
{
	const struct call_tree *t = &v->tree;
	size_t first = o->function ? 0 : 1; /* the root is a function, or no line */
	uint32_t *order;
	int err;

	*v = (struct call_view){ .options = *o };
	err = make_tree(v, p, e);
	if (err)
		return err;
	v->omitted = t->folded + t->cut;
	if (t->counts_calls)
		v->title = strdup("calls");
	else
		v->title = rows_title(p, profile_value(p, o->value));
	if (!v->title)
		return error_no_memory(e);
	if (o->limit && t->count - first > o->limit) {
		/*
		 * Hide the nodes beyond the limit. No child is shown without its parent, whose
		 * weight is larger.
		 */
		order = calloc(t->count, sizeof(*order));
		v->hidden = calloc(t->count, sizeof(*v->hidden));
		if (!order || !v->hidden) {
			free(order);
			return error_no_memory(e);
		}
		for (size_t i = 0; i < t->count; i++)
			order[i] = i;
		qsort_r(order, t->count, sizeof(*order), compare_nodes, t->counts);
		for (size_t i = o->limit + first; i < t->count; i++)
			v->hidden[order[i]] = true;
		v->omitted += t->count - first - o->limit;
		free(order);
	}
	return count_rests(v) ? error_no_memory(e) : 0;
}

void call_view_free(struct call_view *v)
{
	call_tree_free(&v->tree);
	free(v->title);
	free(v->hidden);
	free(v->rests);
}

static uint32_t if_shown(const struct call_view *v, uint32_t node)
{
	return node != CALL_TREE_NONE && v->hidden && v->hidden[node] ? CALL_TREE_NONE : node;
}

/* The first shown child of a node, and the next shown sibling; or CALL_TREE_NONE. */
static uint32_t call_view_first(const struct call_view *v, uint32_t node)
{
	return if_shown(v, v->tree.nodes[node].first_child);
}

/* After a hidden sibling, all are hidden. */
static uint32_t call_view_next(const struct call_view *v, uint32_t node)
{
	return if_shown(v, v->tree.nodes[node].next_sibling);
}

/* Bound: caller: levels of indentation; then: their number is printed instead. */
#define LEVELS_MAX 64 /* of indentation; of more, their number is printed */
#define LEVELS_MIN 4
#define LABEL_MIN  24 /* columns for a function, even in a narrow terminal */
#define IMAGE_MIN  12 /* columns for an image, the same */
/* Bound: size. */
#define NUMBERS_MAX 5

enum number {
	CALLS,
	SAMPLES,
	TOTAL_PERCENT,
	ROOT_PERCENT,
	SELF_PERCENT,
};

/* Drawn from parents to children; two columns each. */
struct lines {
	const char *through, *child, *last_child;
};

struct printer {
	const struct call_view *v;
	const struct call_view_style *style;
	FILE *out;
	enum number numbers[NUMBERS_MAX];
	int widths[NUMBERS_MAX];
	size_t number_count;
	size_t most_levels;
	uint32_t *levels; /* of each node: its ancestors that have several lines below them */
	bool *more;	  /* of each level: a line of it follows */
	size_t more_room;
};

/* A line of the tree: a node, or the children of a node that are not shown. */
struct line {
	uint32_t node;
	bool is_rest;
	uint32_t level;
	bool is_branch; /* the parent has several lines below it */
	bool is_last;	/* of these */
};

static const char *title_of(const struct printer *p, enum number n)
{
	static const char *const titles[] = {
		[CALLS] = "calls",
		[TOTAL_PERCENT] = "total%",
		[ROOT_PERCENT] = "root%",
		[SELF_PERCENT] = "self%",
	};

	return n == SAMPLES ? p->v->title : titles[n];
}

static void add_number(struct printer *p, enum number n)
{
	const struct call_tree *t = &p->v->tree;
	uint64_t most = 0;
	char text[TEXT_PERCENT_SIZE] = "100.00";
	size_t width = text_columns(title_of(p, n));

	for (size_t i = 1; n == CALLS && i < t->count; i++)
		most = MAX(t->calls[i], most);
	if (n == CALLS)
		snprintf(text, sizeof(text), "%" PRIu64, most);
	else if (n == SAMPLES)
		snprintf(text, sizeof(text), "%" PRId64, t->counts[0].total);
	for (size_t i = 1; n == SAMPLES && i < t->count; i++) {
		char other[TEXT_PERCENT_SIZE];

		snprintf(other, sizeof(other), "%" PRId64, t->counts[i].total);
		if (strlen(other) > strlen(text))
			strcpy(text, other);
	}
	width = MAX(width, strlen(text));
	p->widths[p->number_count] = (int)width;
	p->numbers[p->number_count++] = n;
}

static size_t numbers_width(const struct printer *p)
{
	size_t width = 0;

	for (size_t i = 0; i < p->number_count; i++)
		width += p->widths[i] + 2;
	return width;
}

/* True if the children that are not shown get a line: together they have enough samples. */
static bool is_rest_shown(const struct call_view *v, uint32_t node)
{
	double least = (double)v->tree.samples[0] * v->options.percent / 100;

	return v->rests[node].weight > 0 && (double)v->rests[node].weight >= least;
}

/* True if a node has several lines below it. */
static bool is_fork(const struct call_view *v, uint32_t node)
{
	uint32_t child = call_view_first(v, node);

	if (child == CALL_TREE_NONE)
		return false;
	return call_view_next(v, child) != CALL_TREE_NONE || is_rest_shown(v, node);
}

/* Prints the numbers of a line: blanks where there is none, or where it repeats the line above. */
static void print_numbers(const struct printer *p, const struct line *line)
{
	const struct call_tree *t = &p->v->tree;
	const struct callgraph_cost *count = &t->counts[line->node], *above;
	uint32_t caller = t->nodes[line->node].parent;
	int64_t total = line->is_rest ? p->v->rests[line->node].total : count->total;
	bool hot = p->style->color && !line->is_rest && table_is_hot(count->self, t->samples[0]);
	bool repeated = false;

	if (!line->is_rest && !line->is_branch && caller != CALL_TREE_NONE &&
	    t->nodes[caller].frame != CALL_TREE_NONE) {
		above = &t->counts[caller];
		repeated = above->total == count->total && above->weight == count->weight;
	}
	for (size_t i = 0; i < p->number_count; i++) {
		enum number n = p->numbers[i];
		bool red = hot && n == SELF_PERCENT;
		char text[TEXT_PERCENT_SIZE] = "";

		if (n == CALLS) {
			if (!line->is_rest && line->node)
				snprintf(text, sizeof(text), "%" PRIu64, t->calls[line->node]);
		} else if (n == SELF_PERCENT) {
			if (!line->is_rest && count->self)
				text_percent(text, count->self, t->samples[0]);
		} else if (repeated) {
			text[0] = '\0';
		} else if (n == SAMPLES) {
			snprintf(text, sizeof(text), "%" PRId64, total);
		} else if (n == TOTAL_PERCENT) {
			text_percent(text, total, t->samples[0]);
		} else {
			text_percent(text, total, t->counts[0].weight);
		}
		fprintf(p->out, "%s%*s%s  ", red ? TEXT_RED : "", p->widths[i], text,
			red ? TEXT_PLAIN : "");
	}
}

/* Prints the lines from parents to children. Returns how many columns they take. */
static size_t print_lines(const struct printer *p, const struct line *line)
{
	static const struct lines ascii = { "| ", "+ ", "` " };
	static const struct lines utf8 = { "\u2502 ", "\u251c ", "\u2514 " };
	const struct lines *lines = p->style->utf8 ? &utf8 : &ascii;
	uint32_t first = 1, marked = line->is_branch ? line->level : line->level + 1;
	size_t columns = 0;

	fputs(p->style->color ? TEXT_FAINT : "", p->out);
	if (line->level > p->most_levels) {
		first = line->level - p->most_levels + 1;
		columns += fprintf(p->out, "+%" PRIu32 " ", first - 1);
	}
	for (uint32_t i = first; i <= line->level; i++) {
		const char *text = p->more[i] ? lines->through : "  ";

		if (i == marked)
			text = line->is_last ? lines->last_child : lines->child;
		fputs(text, p->out);
		columns += 2;
	}
	fputs(p->style->color ? TEXT_PLAIN : "", p->out);
	return columns;
}

/*
 * Prints the function of a node, and its image if that differs from the parent's. room: columns; 0:
 * unlimited. Returns 0 or -ENOMEM.
 */
static int print_name(const struct printer *p, uint32_t node, size_t room)
{
	static const char inlined_mark[] = " (inlined)";
	const struct call_tree *t = &p->v->tree;
	const struct call_frame *f = &t->frames[t->nodes[node].frame];
	const char *image = f->named && f->image[0] ? text_basename(f->image) : NULL;
	const char *mark = f->inlined ? inlined_mark : "";
	uint32_t parent = t->nodes[node].parent;
	size_t image_most = MAX(room / 3, IMAGE_MIN);
	size_t image_columns, after = strlen(mark);

	if (parent != CALL_TREE_NONE && t->nodes[parent].frame != CALL_TREE_NONE && image &&
	    strcmp(text_basename(t->frames[t->nodes[parent].frame].image), image) == 0)
		image = NULL;
	image_columns = image ? text_columns(image) : 0;
	if (room && image_columns > image_most)
		image_columns = image_most;
	after += image ? image_columns + 2 : 0;
	if (room)
		room = room > after + IMAGE_MIN ? room - after : IMAGE_MIN;
	if (text_print_in(f->name, room, p->out) < 0)
		return -ENOMEM;
	fputs(mark, p->out);
	if (!image)
		return 0;
	fprintf(p->out, "  %s", p->style->color ? TEXT_FAINT : "");
	if (text_print_in(image, room ? image_columns : 0, p->out) < 0)
		return -ENOMEM;
	fputs(p->style->color ? TEXT_PLAIN : "", p->out);
	return 0;
}

static int print_line(struct printer *p, const struct line *line)
{
	size_t before = numbers_width(p), room = 0;
	int err = 0;

	if (array_reserve(&p->more, &p->more_room, line->level + 1, sizeof(*p->more)))
		return -ENOMEM;
	if (line->is_branch)
		p->more[line->level] = !line->is_last;
	print_numbers(p, line);
	before += print_lines(p, line);
	if (p->style->width)
		room = p->style->width > before + LABEL_MIN ? p->style->width - before : LABEL_MIN;
	if (line->is_rest)
		fprintf(p->out, "... %" PRIu64 " more", p->v->rests[line->node].count);
	else
		err = print_name(p, line->node, room);
	fputc('\n', p->out);
	return err;
}

static int print_node(struct printer *p, uint32_t node)
{
	const struct call_view *v = p->v;
	uint32_t caller = v->tree.nodes[node].parent;
	struct line line = { .node = node, .level = p->levels[node] };

	line.is_branch = caller != CALL_TREE_NONE && is_fork(v, caller);
	line.is_last = line.is_branch && call_view_next(v, node) == CALL_TREE_NONE &&
		       !is_rest_shown(v, caller);
	return print_line(p, &line);
}

/*
 * Moves to the next node in depth-first order. Of nodes that end here, prints the line of the
 * children that are not shown, if they get one. Returns 0 or -ENOMEM.
 */
static int advance_node(struct printer *p, uint32_t *node)
{
	const struct call_view *v = p->v;
	uint32_t next = call_view_first(v, *node);

	if (next != CALL_TREE_NONE) {
		p->levels[next] = p->levels[*node] + is_fork(v, *node);
		*node = next;
		return 0;
	}
	while (*node != CALL_TREE_NONE) {
		struct line rest = {
			.node = *node,
			.level = p->levels[*node] + 1,
			.is_rest = true,
			.is_branch = true,
			.is_last = true,
		};
		uint32_t caller = v->tree.nodes[*node].parent;

		if (is_rest_shown(v, *node) && print_line(p, &rest))
			return -ENOMEM;
		next = caller == CALL_TREE_NONE ? CALL_TREE_NONE : call_view_next(v, *node);
		if (next != CALL_TREE_NONE) {
			p->levels[next] = p->levels[*node];
			*node = next;
			return 0;
		}
		*node = caller;
	}
	return 0;
}

int call_view_print(const struct call_view *v, const struct call_view_style *style, FILE *out)
{
	struct printer p = { .v = v, .style = style, .out = out, .most_levels = LEVELS_MAX };
	char percent[TEXT_PERCENT_SIZE];
	uint32_t node = 0;
	size_t least;
	int err = 0;

	if (v->options.function) {
		if (v->tree.calls && !v->tree.counts_calls)
			add_number(&p, CALLS);
		add_number(&p, SAMPLES);
	}
	add_number(&p, TOTAL_PERCENT);
	if (v->options.function)
		add_number(&p, ROOT_PERCENT);
	if (!v->options.callers && !v->tree.calls)
		add_number(&p, SELF_PERCENT);
	/* Levels of indentation that leave room for a function. */
	least = numbers_width(&p) + LABEL_MIN;
	if (style->width > least + 2 * LEVELS_MIN)
		p.most_levels = (style->width - least) / 2;
	else if (style->width)
		p.most_levels = LEVELS_MIN;
	p.levels = calloc(v->tree.count, sizeof(*p.levels));
	if (!p.levels)
		return -ENOMEM;

	fputs(style->color ? TEXT_BOLD : "", out);
	for (size_t i = 0; i < p.number_count; i++) {
		const char *title = title_of(&p, p.numbers[i]);

		fprintf(out, "%*s", p.widths[i] - (int)text_columns(title), "");
		text_print(title, out);
		fputs("  ", out);
	}
	fprintf(out, "function, %s%s\n",
		v->options.callers ? "its callers below" : "what it calls below",
		style->color ? TEXT_PLAIN : "");
	if (v->tree.nodes[0].frame != CALL_TREE_NONE)
		err = print_node(&p, 0);
	err = err ?: advance_node(&p, &node);
	while (!err && node != CALL_TREE_NONE) {
		err = print_node(&p, node);
		err = err ?: advance_node(&p, &node);
	}
	if (!err && v->omitted) {
		fprintf(out, "... %zu more", v->omitted);
		if (!v->hidden) {
			text_decimal(percent, v->options.percent);
			fprintf(out, ",%s below %s %%", v->omitted == 1 ? "" : " each", percent);
		}
		fputc('\n', out);
	}
	free(p.levels);
	free(p.more);
	return err;
}

static struct json_object *node_object(const struct call_view *v, uint32_t node, uint32_t depth)
{
	const struct call_tree *t = &v->tree;
	const struct call_frame *f = &t->frames[t->nodes[node].frame];
	const struct callgraph_cost *count = &t->counts[node];
	const struct call_rest *rest = &v->rests[node];
	struct json_object *o = json_object_new_object();

	json_add(&o, "depth", json_object_new_uint64(depth));
	json_add(&o, "name", json_text(f->name));
	json_add_text(&o, "image", f->image);
	if (f->inlined)
		json_add(&o, "inlined", json_object_new_boolean(true));
	if (t->calls && node)
		json_add(&o, "calls", json_object_new_uint64(t->calls[node]));
	if (!t->counts_calls) {
		json_add(&o, "total", json_object_new_int64(count->total));
		json_add(&o, "total_percent", json_percent(count->total, t->samples[0]));
	}
	if (v->options.function)
		json_add(&o, "root_percent", json_percent(count->total, t->counts[0].weight));
	if (!v->options.callers && (!t->calls || (!node && !t->counts_calls)))
		json_add(&o, "self", json_object_new_int64(count->self));
	if (rest->count) {
		json_add(&o, "omitted", json_object_new_uint64(rest->count));
		json_add(&o, "omitted_total", json_object_new_int64(rest->total));
	}
	return o;
}

/* The node after this one, depth first, or CALL_TREE_NONE. */
static uint32_t next_node(const struct call_view *v, uint32_t node)
{
	uint32_t next = call_view_first(v, node);

	while (next == CALL_TREE_NONE && node) {
		next = call_view_next(v, node);
		node = v->tree.nodes[node].parent;
	}
	return next;
}

/*
 * The nodes are one list, not lists of children in each other: a tree is as deep as the stacks, and
 * readers of JSON limit how deep it may be, jq 1.6 at 256.
 */
int call_view_json(const struct call_view *v, const struct profile *p, FILE *out)
{
	bool whole = !v->options.function;
	struct json_writer w;

	json_begin(&w, out);
	recording_json(&w, p, v->title);
	json_member(&w, v->tree.counts_calls ? "all_calls" : "samples",
		    json_object_new_uint64(magnitude_u64(v->tree.samples[0])));
	json_begin_list(&w, whole ? "tree" : v->options.callers ? "callers" : "callees");
	for (uint32_t n = whole ? next_node(v, 0) : 0; n != CALL_TREE_NONE; n = next_node(v, n))
		json_element(&w, node_object(v, n, v->tree.nodes[n].depth - whole));
	json_end_list(&w);
	return json_end(&w);
}
