// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/calls/call_view.h"
#include "report/json_writer.h"
#include "report/text.h"
#include "report/totals_json.h"

#define LEVELS_MAX 20 /* of indentation: more would only make the file long */

static struct json_object *percent_of(uint64_t part, uint64_t whole)
{
	char text[TEXT_PERCENT_SIZE];

	text_percent(text, part, whole);
	return json_object_new_double_s((double)part * 100 / (double)(whole ?: 1), text);
}

static int add_frame(struct json_object *o, const struct call_tree *t, uint32_t node)
{
	const struct call_frame *f = &t->frames[t->nodes[node].frame];
	int err = json_add(o, "name", json_text(f->name));

	if (!err && f->image[0])
		err = json_add(o, "image", json_text(f->image));
	if (!err && f->inlined)
		err = json_add(o, "inlined", json_object_new_boolean(true));
	return err;
}

static int add_counts(struct json_object *o, const struct call_view *v, uint32_t node)
{
	const struct call_tree *t = &v->tree;
	const struct callgraph_cost *count = &t->counts[node];
	int err = 0;

	if (v->tree.calls && node)
		err = json_add(o, "calls", json_object_new_uint64(v->tree.calls[node]));
	if (!v->tree.counts_calls) {
		err = err ?: json_add(o, "total", json_object_new_uint64(count->total));
		err = err ?: json_add(o, "total_percent", percent_of(count->total, t->samples[0]));
	}
	if (v->options.function)
		err = err
			      ?: json_add(o, "root_percent",
					  percent_of(count->total, t->counts[0].total));
	if (!v->options.callers && (!v->tree.calls || (!node && !v->tree.counts_calls)))
		err = err ?: json_add(o, "self", json_object_new_uint64(count->self));
	return err;
}

static int add_rest(struct json_object *o, const struct call_view *v, uint32_t node)
{
	const struct call_rest *rest = &v->rests[node];

	if (!rest->count)
		return 0;
	return json_add(o, "left_out", json_object_new_uint64(rest->count))
		       ?: json_add(o, "left_out_total", json_object_new_uint64(rest->total));
}

static void indent(const struct call_view *v, uint32_t node, FILE *out)
{
	uint32_t depth = v->tree.nodes[node].depth;

	fprintf(out, "%*s", depth > LEVELS_MAX ? 2 * LEVELS_MAX + 4 : 2 * (int)depth + 4, "");
}

/* A node up to its children. */
static int begin_node(const struct call_view *v, uint32_t node, FILE *out)
{
	struct json_object *o = json_object_new_object();
	const char *text = NULL;
	char *members = NULL;
	int err;

	if (!o)
		return -ENOMEM;
	if (!add_frame(o, &v->tree, node) && !add_counts(o, v, node) && !add_rest(o, v, node))
		text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_SPACED |
								 JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		members = strndup(text, strlen(text) - strlen(" }"));
	if (members) {
		indent(v, node, out);
		json_print_text(members, out);
		fputs(", \"children\": [", out);
	}
	err = members ? 0 : -ENOMEM;
	free(members);
	json_object_put(o);
	return err;
}

/* Ends the nodes that have no more children, up to the one that has; moves on to that child. */
static uint32_t end_nodes(const struct call_view *v, uint32_t node, uint32_t top, FILE *out)
{
	while (node != top) {
		uint32_t next = call_view_next(v, node);

		fputs("] }", out);
		if (next != CALL_TREE_NONE) {
			fputs(",\n", out);
			return next;
		}
		node = v->tree.nodes[node].parent;
	}
	return CALL_TREE_NONE;
}

/* The nodes of a list, and all below them. top: their parent. */
static int write_nodes(const struct call_view *v, uint32_t node, uint32_t top, FILE *out)
{
	int err = 0;

	while (node != CALL_TREE_NONE && !err) {
		uint32_t child = call_view_first(v, node);

		err = begin_node(v, node, out);
		if (child != CALL_TREE_NONE)
			fputc('\n', out);
		node = child != CALL_TREE_NONE ? child : end_nodes(v, node, top, out);
	}
	return err;
}

int call_view_json(const struct call_view *v, const struct profile *p, FILE *out)
{
	bool whole = !v->options.function;
	struct json_writer w;
	int err;

	json_begin(&w, out);
	recording_json(&w, p);
	json_member(&w, v->tree.counts_calls ? "all_calls" : "samples",
		    json_object_new_uint64(v->tree.samples[0]));
	json_begin_list(&w, whole ? "tree" : v->options.callers ? "callers" : "callees");
	fputc('\n', out);
	err = write_nodes(v, whole ? call_view_first(v, 0) : 0, whole ? 0 : CALL_TREE_NONE, out);
	w.any = true;
	json_end_list(&w);
	return err ?: json_end(&w);
}
