// SPDX-License-Identifier: GPL-2.0-only
#include "report/calls/call_view.h"
#include "report/json_writer.h"
#include "report/text.h"
#include "report/totals_json.h"

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
		json_add(&o, "left_out", json_object_new_uint64(rest->count));
		json_add(&o, "left_out_total", json_object_new_int64(rest->total));
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
