// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/calls/call_view.h"
#include "report/json_writer.h"
#include "report/text.h"
#include "report/totals_json.h"

#define LEVELS_MAX 20 /* of indentation: more would only make the file larger */

/* A node without its children. */
static struct json_object *node_object(const struct call_view *v, uint32_t node)
{
	const struct call_tree *t = &v->tree;
	const struct call_frame *f = &t->frames[t->nodes[node].frame];
	const struct callgraph_cost *count = &t->counts[node];
	const struct call_rest *rest = &v->rests[node];
	struct json_object *o = json_object_new_object();
	int err = json_add(o, "name", json_text(f->name));

	err = err ?: json_add_text(o, "image", f->image);
	if (!err && f->inlined)
		err = json_add(o, "inlined", json_object_new_boolean(true));
	if (!err && t->calls && node)
		err = json_add(o, "calls", json_object_new_uint64(t->calls[node]));
	if (!err && !t->counts_calls)
		err = json_add(o, "total", json_object_new_uint64(count->total))
			      ?: json_add(o, "total_percent",
					  json_percent(count->total, t->samples[0]));
	if (!err && v->options.function)
		err = json_add(o, "root_percent", json_percent(count->total, t->counts[0].total));
	if (!err && !v->options.callers && (!t->calls || (!node && !t->counts_calls)))
		err = json_add(o, "self", json_object_new_uint64(count->self));
	if (!err && rest->count)
		err = json_add(o, "left_out", json_object_new_uint64(rest->count))
			      ?: json_add(o, "left_out_total", json_object_new_uint64(rest->total));
	return json_checked(o, err);
}

/* Prints a node up to its children. */
static int begin_node(const struct call_view *v, uint32_t node, FILE *out)
{
	uint32_t depth = v->tree.nodes[node].depth;
	char *text = json_string(node_object(v, node));

	if (!text)
		return -ENOMEM;
	fprintf(out, "%*s", 2 * (int)(depth < LEVELS_MAX ? depth : LEVELS_MAX) + 4, "");
	fprintf(out, "%.*s, \"children\": [", (int)(strlen(text) - strlen(" }")), text);
	free(text);
	return 0;
}

/* Ends nodes without further children. Returns the next child of the first other ancestor. */
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

/* Writes `node`, its shown siblings after it, and their descendants. top: their parent. */
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
	recording_json(&w, p, v->options.value);
	json_member(&w, v->tree.counts_calls ? "all_calls" : "samples",
		    json_object_new_uint64(v->tree.samples[0]));
	json_begin_list(&w, whole ? "tree" : v->options.callers ? "callers" : "callees");
	fputc('\n', out);
	err = write_nodes(v, whole ? call_view_first(v, 0) : 0, whole ? 0 : CALL_TREE_NONE, out);
	w.any = true;
	json_end_list(&w);
	return err ?: json_end(&w);
}
