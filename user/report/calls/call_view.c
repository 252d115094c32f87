// SPDX-License-Identifier: GPL-2.0-only
#include "report/calls/call_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/rows.h"
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
	size_t used = 0, found = 0;
	char list[400] = "";

	error_set(e, 0, "no sample has %s%s%s in its stack", v->options.function,
		  v->options.image ? " of " : "", v->options.image ?: "");
	for (size_t i = 0; i < t->frame_count && used < sizeof(list); i++) {
		if (!strcasestr(t->frames[i].name, v->options.function))
			continue;
		if (++found > SUGGESTIONS_MAX)
			break;
		used += snprintf(list + used, sizeof(list) - used, "%s%s", found > 1 ? ", " : "",
				 t->frames[i].name);
	}
	if (found > SUGGESTIONS_MAX && used < sizeof(list))
		snprintf(list + used, sizeof(list) - used, ", ...");
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

uint32_t call_view_first(const struct call_view *v, uint32_t node)
{
	return if_shown(v, v->tree.nodes[node].first_child);
}

/* After a hidden sibling, all are hidden. */
uint32_t call_view_next(const struct call_view *v, uint32_t node)
{
	return if_shown(v, v->tree.nodes[node].next_sibling);
}
