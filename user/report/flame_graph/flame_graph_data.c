// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "report/flame_graph/flame_graph_parts.h"

#define GONE_MAX 20 /* nodes that are listed as gone */

static size_t gone_listed(const struct flame_graph *g)
{
	return g->gone_count < GONE_MAX ? g->gone_count : GONE_MAX;
}

/* The index of a node's frame in arrays whose first element is the root's (NONE + 1 is 0). */
static uint32_t frame_number(const struct flame_graph *g, uint32_t node)
{
	return g->tree.nodes[node].frame + 1;
}

/*
 * Prints the frames of shown nodes, [NAME, IMAGE, HUE, CLASS], and stores the number of each in
 * numbers[]. Frames that only folded nodes have are omitted.
 */
static int print_frames(const struct flame_graph *g, uint32_t *numbers, FILE *out)
{
	uint32_t *example = calloc(g->tree.frame_count + 1, sizeof(*example)), count = 0;
	int err = example ? 0 : -ENOMEM;

	for (uint32_t node = 0; !err && node != CALL_TREE_NONE; node = flame_graph_next(g, node))
		example[frame_number(g, node)] = node + 1;
	for (size_t i = 0; !err && i < gone_listed(g); i++)
		example[frame_number(g, g->gone[i])] = g->gone[i] + 1;
	for (size_t i = 0; !err && i <= g->tree.frame_count; i++) {
		const struct call_frame *f;

		if (!example[i])
			continue;
		f = flame_graph_frame(g, example[i] - 1);
		numbers[i] = count;
		fputs(count++ ? ",\n[" : "\n[", out);
		err = flame_graph_print_json(f->name, out);
		fputc(',', out);
		err = err ?: flame_graph_print_json(f->image, out);
		fprintf(out, ",%u,\"%s\"]", flame_graph_hue(g, f), flame_graph_class(f));
	}
	free(example);
	return err;
}

/* Prints DEPTH,FRAME,TOTAL,SELF of each node, and if there is an earlier profile HEAT,OLD TOTAL. */
static void print_nodes(const struct flame_graph *g, const uint32_t *numbers, FILE *out)
{
	const struct call_tree *t = &g->tree;
	char text[TEXT_PERCENT_SIZE];

	for (uint32_t node = 0; node != CALL_TREE_NONE; node = flame_graph_next(g, node)) {
		const struct callgraph_cost *counts = &t->counts[node * t->column_count];
		double heat;

		fprintf(out, "%s%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64, node ? ",\n" : "\n",
			t->nodes[node].depth, numbers[frame_number(g, node)], counts[NEW].total,
			counts[NEW].self);
		if (!g->compared)
			continue;
		heat = flame_graph_heat(g, node);
		fprintf(out, ",%s%s,%" PRIu64, heat < 0 ? "-" : "",
			flame_graph_decimal(fabs(heat), text), counts[OLD].total);
	}
}

static void print_gone(const struct flame_graph *g, const uint32_t *numbers, FILE *out)
{
	for (size_t i = 0; i < gone_listed(g); i++)
		fprintf(out, "%s[%" PRIu32 ",%" PRIu64 "]", i ? "," : "",
			numbers[frame_number(g, g->gone[i])],
			flame_graph_total(g, g->gone[i], OLD));
}

static int print_notes(const struct flame_graph *g, FILE *out)
{
	bool any = false;
	int err = 0;

	fputs(",\n\"notes\":[", out);
	for (size_t i = 0; i < NOTES && !err; i++) {
		if (!*g->notes[i])
			continue;
		fputs(any ? "," : "", out);
		err = flame_graph_print_json(g->notes[i], out);
		any = true;
	}
	fputc(']', out);
	return err;
}

static int print_header(const struct flame_graph *g, FILE *out)
{
	char text[TEXT_PERCENT_SIZE];
	int err;

	fputs("{\"title\":", out);
	err = flame_graph_print_json(g->o->title, out);
	fputs(",\n\"unit\":", out);
	err = err ?: flame_graph_print_json(g->unit, out);
	fprintf(out, ",\n\"all\":%" PRIu64 ",\n\"icicle\":%s,\n\"inverted\":%s",
		g->tree.samples[NEW], g->o->icicle ? "true" : "false",
		g->o->tree.inverted ? "true" : "false");
	if (g->compared)
		fprintf(out, ",\n\"oldAll\":%" PRIu64 ",\n\"scale\":%s", g->tree.samples[OLD],
			flame_graph_decimal(g->scale * 100, text));
	return err ?: print_notes(g, out);
}

int flame_graph_print_data(const struct flame_graph *g, FILE *out)
{
	uint32_t *numbers = calloc(g->tree.frame_count + 1, sizeof(*numbers));
	int err = numbers ? print_header(g, out) : -ENOMEM;

	if (!err) {
		fputs(",\n\"frames\":[", out);
		err = print_frames(g, numbers, out);
	}
	if (!err) {
		fputs("],\n\"gone\":[", out);
		print_gone(g, numbers, out);
		fputs("],\n\"nodes\":[", out);
		print_nodes(g, numbers, out);
		fputs("]}", out);
	}
	free(numbers);
	return err;
}
