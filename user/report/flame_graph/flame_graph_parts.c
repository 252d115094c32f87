// SPDX-License-Identifier: GPL-2.0-only
#include "report/flame_graph/flame_graph_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/thread_state.h"

#define KERNEL_HUE 25
#define NEIGHBOURS 8 /* hues that the functions of one image have */

/* Hues of other images, far enough from each other and from the kernel's to be distinguished. */
static const unsigned short hues[FLAME_GRAPH_HUES] = { 55,  85,	 130, 165, 190, 210,
						       235, 265, 290, 320, 345 };

int64_t flame_graph_total(const struct flame_graph *g, uint32_t node, size_t column)
{
	return g->tree.counts[node * g->tree.column_count + column].total;
}

uint64_t flame_graph_weight(const struct flame_graph *g, uint32_t node, size_t column)
{
	return g->tree.counts[node * g->tree.column_count + column].weight;
}

/* Of all samples of the profile, from 0 to 1. */
static double share_of_all(const struct flame_graph *g, uint32_t node, size_t column)
{
	double all = g->tree.samples[column];

	return all > 0 ? (double)flame_graph_total(g, node, column) / all : 0;
}

double flame_graph_change(const struct flame_graph *g, uint32_t node)
{
	return share_of_all(g, node, NEW) - share_of_all(g, node, OLD);
}

/* The square root makes small changes visible. */
double flame_graph_heat(const struct flame_graph *g, uint32_t node)
{
	double change, heat;

	if (!g->compared)
		return (double)flame_graph_total(g, node, NEW) /
		       (double)(flame_graph_weight(g, node, NEW) ?: 1);
	change = flame_graph_change(g, node);
	heat = sqrt(fmin(1, fabs(change) / g->scale));

	return change < 0 ? -heat : heat;
}

/* Siblings are ordered by width: after one without a width, none has one. */
static bool is_wide(const struct flame_graph *g, uint32_t node)
{
	return node != CALL_TREE_NONE && flame_graph_weight(g, node, NEW);
}

uint32_t flame_graph_next(const struct flame_graph *g, uint32_t node)
{
	const struct call_node *nodes = g->tree.nodes;

	if (is_wide(g, nodes[node].first_child))
		return nodes[node].first_child;
	while (node != CALL_TREE_NONE && !is_wide(g, nodes[node].next_sibling))
		node = nodes[node].parent;
	return node == CALL_TREE_NONE ? node : nodes[node].next_sibling;
}

const struct call_frame *flame_graph_frame(const struct flame_graph *g, uint32_t node)
{
	static const struct call_frame root = { .name = "all", .image = "", .named = true };
	uint32_t frame = g->tree.nodes[node].frame;

	return frame == CALL_TREE_NONE ? &root : &g->tree.frames[frame];
}

/* FNV-1a. hash_bytes() differs from process to process. */
static uint32_t stable_hash(const char *text)
{
	uint32_t hash = 2166136261;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619;
	return hash;
}

/* The index of an image in g->images, or the free one for it; if none is free, its first choice. */
static size_t place_of(const struct flame_graph *g, const char *name)
{
	size_t wanted = stable_hash(name) % FLAME_GRAPH_HUES;

	for (size_t i = 0; i < FLAME_GRAPH_HUES; i++) {
		size_t place = (wanted + i) % FLAME_GRAPH_HUES;

		if (!g->images[place] || strcmp(g->images[place], name) == 0)
			return place;
	}
	return wanted;
}

void flame_graph_choose_hues(struct flame_graph *g)
{
	for (uint32_t node = 0; node != CALL_TREE_NONE; node = flame_graph_next(g, node)) {
		const struct call_frame *f = flame_graph_frame(g, node);
		const char *name = text_basename(f->image);
		size_t place = place_of(g, name);

		if (!f->kernel && *f->image && !g->images[place])
			g->images[place] = name;
	}
}

/* The state of a thread that the frame stands for. */
static enum thread_state state_of(const struct call_frame *f)
{
	const char *reason;
	size_t size;

	return thread_state_of(f->name, &reason, &size);
}

unsigned int flame_graph_hue(const struct flame_graph *g, const struct call_frame *f)
{
	/* Red for what is blocked, orange for what waits for a CPU. */
	static const unsigned int states[THREAD_STATES] = {
		[THREAD_RUNNABLE] = 30, [THREAD_BLOCKED] = 0, [THREAD_UNDECIDED] = 300
	};
	unsigned int own = stable_hash(f->name) % NEIGHBOURS;

	if (state_of(f) != THREAD_RAN)
		return own + states[state_of(f)];

	return own + (f->kernel ? KERNEL_HUE : hues[place_of(g, text_basename(f->image))]);
}

const char *flame_graph_class(const struct call_frame *f)
{
	if (!*f->image || state_of(f) == THREAD_IDLE) /* grey */
		return "who";
	if (!f->named)
		return "unnamed";
	return f->inlined ? "inlined" : "";
}

const char *flame_graph_decimal(double value, char text[TEXT_PERCENT_SIZE])
{
	char *end;

	text_decimal(text, value);
	for (end = text + strlen(text); end[-1] == '0'; end--)
		;
	*(end[-1] == '.' ? end - 1 : end) = '\0';
	return text;
}

/* Prints the visible form. escape() returns the replacement of a character, or NULL. */
static int print_escaped(const char *raw, const char *(*escape)(char c), const char *noncharacter,
			 FILE *out)
{
	char *visible = text_visible(raw);

	if (!visible)
		return -ENOMEM;
	for (const char *s = visible; *s; s++) {
		/* U+FFFE and U+FFFF are invalid in XML, even escaped. */
		if (strncmp(s, "\xef\xbf\xbe", 3) == 0 || strncmp(s, "\xef\xbf\xbf", 3) == 0) {
			fputs(noncharacter, out);
			s += 2;
		} else if (escape(*s)) {
			fputs(escape(*s), out);
		} else {
			fputc(*s, out);
		}
	}
	free(visible);
	return 0;
}

static const char *xml_escape(char c)
{
	switch (c) {
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

/* Characters of markup too, because the JSON is inside a script element. */
static const char *json_escape(char c)
{
	switch (c) {
	case '"':
		return "\\\"";
	case '\\':
		return "\\\\";
	case '<':
		return "\\u003c";
	case '>':
		return "\\u003e";
	case '&':
		return "\\u0026";
	default:
		return NULL;
	}
}

int flame_graph_print_xml(const char *raw, FILE *out)
{
	return print_escaped(raw, xml_escape, "\xef\xbf\xbd", out);
}

int flame_graph_print_json(const char *raw, FILE *out)
{
	int err;

	fputc('"', out);
	err = print_escaped(raw, json_escape, "\\ufffd", out);
	fputc('"', out);
	return err;
}
