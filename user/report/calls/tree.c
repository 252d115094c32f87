// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/calls/call_view.h"
#include "report/table.h"
#include "report/text.h"
#include "util/array.h"

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
		most = t->calls[i] > most ? t->calls[i] : most;
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
	if (width < strlen(text))
		width = strlen(text);
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
	size_t image_most = room / 3 > IMAGE_MIN ? room / 3 : IMAGE_MIN;
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
