// SPDX-License-Identifier: GPL-2.0-only
#include "report/flame_graph/flame_graph.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/flame_graph/flame_graph_parts.h"
#include "util/sum.h"

#define SCALE_LEAST 0.01 /* change of a share with the full colour: noise stays pale */
/*
 * Bound: caller: letters of a name in a note, and nodes that are listed as gone; then: it is cut;
 * further ones are left out; seen: not seen.
 */
#define NOTE_NAME_MAX 80 /* columns of a name in a note */
#define GONE_MAX      20 /* nodes that are listed as gone */

static const char style_sheet[] =
#include "flame_graph.css.h"
	;

static const char script[] =
#include "flame_graph.js.h"
	;

/* The base64 of the SHA-256 of each: what the page's policy allows. */
static const char style_hash[] =
#include "flame_graph.css.hash.h"
	;

static const char script_hash[] =
#include "flame_graph.js.hash.h"
	;

static int compare_gone(const void *one, const void *other, void *context)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
	int order = compare_u64(flame_graph_weight(context, b, OLD),
				flame_graph_weight(context, a, OLD));

	return order ?: compare_u64(a, b);
}

static int make_notes(struct flame_graph *g, const struct profile *p)
{
	const struct profile_totals *t = &p->totals;
	enum profile_stacks stacks = profile_stacks_unfiltered(p, g->o->tree.filtered);
	uint64_t shown = flame_graph_weight(g, 0, NEW);
	char part[TEXT_PERCENT_SIZE], *name;

	text_percent(part, t->stacks_complete, t->stacks_user);
	if (stacks != PROFILE_CALL_STACKS)
		snprintf(g->notes[NOTE_STACKS], sizeof(g->notes[0]),
			 "There are no call stacks here%s: record them with -g.",
			 stacks == PROFILE_INLINED_STACKS ? " but of inlined functions" : "");
	else if (t->stacks_user && strcmp(p->stacks, "cfi") == 0 &&
		 t->stacks_complete < t->stacks_user)
		snprintf(g->notes[NOTE_STACKS], sizeof(g->notes[0]),
			 "%s %% of the user stacks reach the program's start.", part);

	text_percent(part, shown, g->tree.samples[NEW]);
	if (shown < magnitude_u64(g->tree.samples[NEW]))
		snprintf(g->notes[NOTE_FILTERED], sizeof(g->notes[0]),
			 "This is a part of the profile: %s %% of all samples.", part);
	if (g->tree.folded)
		snprintf(g->notes[NOTE_FOLDED], sizeof(g->notes[0]),
			 "%zu frame%s under %g %% of all samples %s not shown.", g->tree.folded,
			 g->tree.folded == 1 ? "" : "s", g->tree.min_share * 100,
			 g->tree.folded == 1 ? "is" : "are");

	if (g->tree.cut)
		snprintf(g->notes[NOTE_CUT], sizeof(g->notes[0]),
			 "Stacks are shown up to %d frames: %zu %s deeper.", FLAME_GRAPH_DEPTH_MAX,
			 g->tree.cut, g->tree.cut == 1 ? "is" : "are");

	if (!g->gone_count)
		return 0;
	name = text_visible(flame_graph_frame(g, g->gone[0])->name);
	if (!name)
		return -ENOMEM;
	text_shorten(name, NOTE_NAME_MAX);
	text_percent(part, flame_graph_total(g, g->gone[0], OLD), g->tree.samples[OLD]);
	snprintf(g->notes[NOTE_GONE], sizeof(g->notes[0]),
		 "%zu frame%s of the old profile %s gone; the largest had %s %%: %s", g->gone_count,
		 g->gone_count == 1 ? "" : "s", g->gone_count == 1 ? "is" : "are", part, name);
	free(name);
	return 0;
}

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

static int print_header(const struct flame_graph *g, FILE *out)
{
	char text[TEXT_PERCENT_SIZE];
	bool any = false;
	int err;

	fputs("{\"title\":", out);
	err = flame_graph_print_json(g->o->title, out);
	fputs(",\n\"unit\":", out);
	err = err ?: flame_graph_print_json(g->unit, out);
	fprintf(out, ",\n\"all\":%" PRIu64 ",\n\"negative\":%s,\n\"icicle\":%s,\n\"inverted\":%s",
		magnitude_u64(g->tree.samples[NEW]), g->has_negative ? "true" : "false",
		g->o->icicle ? "true" : "false", g->o->tree.inverted ? "true" : "false");
	if (g->compared)
		fprintf(out, ",\n\"oldAll\":%" PRIu64 ",\n\"scale\":%s",
			magnitude_u64(g->tree.samples[OLD]),
			flame_graph_decimal(g->scale * 100, text));
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

/* Prints the JSON object that flame_graph.js reads. Returns 0 or -ENOMEM. */
static int print_data(const struct flame_graph *g, FILE *out)
{
	const struct call_tree *t = &g->tree;
	uint32_t *numbers = calloc(t->frame_count + 1, sizeof(*numbers));
	char text[TEXT_PERCENT_SIZE];
	int err = numbers ? print_header(g, out) : -ENOMEM;

	if (!err) {
		fputs(",\n\"frames\":[", out);
		err = print_frames(g, numbers, out);
	}
	if (!err) {
		fputs("],\n\"gone\":[", out);
		for (size_t i = 0; i < gone_listed(g); i++)
			fprintf(out, "%s[%" PRIu32 ",%" PRId64 "]", i ? "," : "",
				numbers[frame_number(g, g->gone[i])],
				flame_graph_total(g, g->gone[i], OLD));
		fputs("],\n\"nodes\":[", out);
	}
	/*
	 * DEPTH,FRAME,TOTAL,SELF of each node, if there is an earlier profile HEAT,OLD TOTAL, and
	 * with negative values WEIGHT.
	 */
	for (uint32_t node = 0; !err && node != CALL_TREE_NONE; node = flame_graph_next(g, node)) {
		const struct callgraph_cost *counts = &t->counts[node * t->column_count];
		double heat;

		fprintf(out, "%s%" PRIu32 ",%" PRIu32 ",%" PRId64 ",%" PRId64, node ? ",\n" : "\n",
			t->nodes[node].depth, numbers[frame_number(g, node)], counts[NEW].total,
			counts[NEW].self);
		if (g->compared) {
			heat = flame_graph_heat(g, node);
			fprintf(out, ",%s%s,%" PRId64, heat < 0 ? "-" : "",
				flame_graph_decimal(fabs(heat), text), counts[OLD].total);
		}
		if (g->has_negative)
			fprintf(out, ",%" PRIu64, counts[NEW].weight);
	}
	fputs("]}", out);
	free(numbers);
	return err;
}

/* SVG is XML: CDATA keeps the script and the style from being parsed as markup. */
static int print_svg(const struct flame_graph *g, FILE *out)
{
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
	if (flame_graph_print_picture(g, out))
		return -ENOMEM;
	fprintf(out, "<style><![CDATA[\n%s]]></style>\n", style_sheet);
	fputs("<script type=\"application/json\" id=\"profile\">", out);
	if (print_data(g, out))
		return -ENOMEM;
	fprintf(out, "</script>\n<script><![CDATA[\n%s]]></script>\n</svg>\n", script);
	return 0;
}

/* The policy keeps the page from any network access, and allows this script and style alone. */
static int print_html(const struct flame_graph *g, FILE *out)
{
	fprintf(out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"script-src 'sha256-%s'; style-src 'sha256-%s'; base-uri 'none'; "
		"form-action 'none'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
		script_hash, style_hash);
	if (flame_graph_print_xml(g->o->title, out))
		return -ENOMEM;
	fprintf(out, "</title>\n<style>%s</style>\n</head>\n<body>\n", style_sheet);
	fputs("<noscript><p>This page needs scripts. profiltool flamegraph -o FILE.svg writes "
	      "a graph that can be seen without.</p></noscript>\n"
	      "<script type=\"application/json\" id=\"profile\">",
	      out);
	if (print_data(g, out))
		return -ENOMEM;
	fprintf(out, "</script>\n<script>%s</script>\n</body>\n</html>\n", script);
	return 0;
}

int flame_graph_print(const struct profile *p, const struct profile *earlier,
		      const struct flame_graph_options *o, FILE *out)
{
	const struct profile *profiles[] = { [NEW] = p, [OLD] = earlier };
	const struct profile_value_type *type;
	struct flame_graph g = { .o = o, .compared = earlier, .unit = "samples" };
	int err = call_tree_make(&g.tree, profiles, earlier ? 2 : 1, &o->tree);

	if (err)
		goto out;
	if (p->value_type_count) {
		type = &p->value_types[profile_value(p, o->tree.value)];
		g.unit = strcmp(type->unit, "nanoseconds") == 0 ? type->unit : type->type;
	}
	for (size_t i = 0; i < g.tree.count && !g.has_negative; i++)
		g.has_negative = flame_graph_weight(&g, i, NEW) !=
					 magnitude(flame_graph_total(&g, i, NEW)) ||
				 flame_graph_total(&g, i, NEW) < 0;
	flame_graph_choose_hues(&g);
	if (earlier) {
		/* The largest change, and the nodes that are gone. */
		g.scale = SCALE_LEAST;
		for (uint32_t n = 0; n != CALL_TREE_NONE; n = flame_graph_next(&g, n))
			g.scale = fmax(g.scale, fabs(flame_graph_change(&g, n)));
		g.gone = calloc(g.tree.count, sizeof(*g.gone));
		if (!g.gone) {
			err = -ENOMEM;
			goto out;
		}
		for (uint32_t i = 1; i < g.tree.count; i++)
			if (!flame_graph_weight(&g, i, NEW) &&
			    flame_graph_weight(&g, g.tree.nodes[i].parent, NEW))
				g.gone[g.gone_count++] = i;
		qsort_r(g.gone, g.gone_count, sizeof(*g.gone), compare_gone, &g);
	}
	err = make_notes(&g, p);
	if (!err)
		err = o->html ? print_html(&g, out) : print_svg(&g, out);
out:
	free(g.gone);
	call_tree_free(&g.tree);
	return err;
}
