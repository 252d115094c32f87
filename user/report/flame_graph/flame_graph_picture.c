// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/flame_graph/flame_graph_parts.h"

/*
 * A picture that needs no script and no style sheet, for a README, an img element or a drawing
 * program, where those do not run or are forbidden. It has the light colours of flame_graph.css.
 */

#define WIDTH	     1200
#define MARGIN	     10
#define ROW	     18
#define LINE	     18	 /* height of a line of the title and the notes */
#define LEAST	     0.5 /* narrower frames are not drawn */
#define LEAST_TITLED 3	 /* narrower frames have neither a title nor a name */
#define GLYPH	     6.7 /* width of a character in the fixed font of names */
#define LEAST_GLYPHS 7	 /* a name shortened to fewer would mean nothing */

struct span {
	double left;
	double next; /* where the next child begins */
};

struct picture {
	const struct flame_graph *g;
	struct span *spans; /* of each node */
	double top;	    /* y of the highest row */
	uint32_t deepest;   /* the largest depth of a drawn node */
	FILE *out;
};

static double width_of(const struct flame_graph *g, uint32_t node)
{
	uint64_t whole = flame_graph_weight(g, 0, NEW), part = flame_graph_weight(g, node, NEW);

	if (!whole)
		return WIDTH - 2 * MARGIN;
	return (double)part * (WIDTH - 2 * MARGIN) / (double)whole;
}

/* Times are printed in seconds. */
static int print_total(const struct picture *p, uint32_t node, size_t column)
{
	int64_t total = flame_graph_total(p->g, node, column);

	if (strcmp(p->g->unit, "nanoseconds") == 0) {
		/* The locale may have another decimal point. */
		uint64_t ms = magnitude(total) / 1000000;

		fprintf(p->out, "%s%" PRIu64 ".%03u s", total < 0 ? "-" : "", ms / 1000,
			(unsigned int)(ms % 1000));
		return 0;
	}
	fprintf(p->out, "%" PRId64 " ", total);
	return flame_graph_print_xml(p->g->unit, p->out);
}

/* Prints what browsers show under the pointer. */
static int print_title(const struct picture *p, uint32_t node)
{
	const struct flame_graph *g = p->g;
	const struct call_frame *f = flame_graph_frame(g, node);
	char part[TEXT_PERCENT_SIZE];
	int err;

	fputs("<title>", p->out);
	err = flame_graph_print_xml(f->name, p->out);
	if (*f->image) {
		fputs("\n", p->out);
		err = err ?: flame_graph_print_xml(f->image, p->out);
	}
	text_percent(part, flame_graph_total(g, node, NEW), g->tree.samples[NEW]);
	fputc('\n', p->out);
	err = err ?: print_total(p, node, NEW);
	fprintf(p->out, ", %s %%", part);
	if (g->compared) {
		text_percent(part, flame_graph_total(g, node, OLD), g->tree.samples[OLD]);
		fputs("; old ", p->out);
		if (strcmp(g->unit, "nanoseconds") == 0) {
			err = err ?: print_total(p, node, OLD);
			fputs(", ", p->out);
		}
		fprintf(p->out, "%s %%", part);
	}
	fputs("</title>", p->out);
	return err;
}

static int print_name(const struct picture *p, uint32_t node, double width, double y)
{
	const char *raw = flame_graph_frame(p->g, node)->name;
	char *name, text[TEXT_PERCENT_SIZE];
	size_t columns = (size_t)(width / GLYPH);
	int err;

	/* One column is left free. */
	if (columns <= LEAST_GLYPHS && columns <= text_columns(raw))
		return 0;
	name = text_visible(raw);
	if (!name)
		return -ENOMEM;
	if (columns > LEAST_GLYPHS)
		text_shorten(name, columns - 1);
	fprintf(p->out, "<text x=\"%s\" ", flame_graph_decimal(p->spans[node].left + 4, text));
	fprintf(p->out, "y=\"%s\">", flame_graph_decimal(y + 12.5, text));
	err = flame_graph_print_xml(name, p->out);
	fputs("</text>", p->out);
	free(name);
	return err;
}

static void print_rectangle(const struct picture *p, uint32_t node, double width, double y)
{
	const struct flame_graph *g = p->g;
	const struct call_frame *f = flame_graph_frame(g, node);
	char class = *flame_graph_class(f);
	unsigned int saturation = 68, lightness = 78;
	char text[TEXT_PERCENT_SIZE];
	double heat;

	fprintf(p->out, "<rect x=\"%s\" ", flame_graph_decimal(p->spans[node].left, text));
	/* Leave a seam between neighbours that are wide enough. */
	fprintf(p->out, "y=\"%u\" width=\"%s\" height=\"%d\" fill=\"", (unsigned int)y,
		flame_graph_decimal(width > 3 ? width - 0.7 : width, text), ROW - 1);
	if (g->compared || g->has_negative) {
		heat = flame_graph_heat(g, node);
		fprintf(p->out, "hsl(%d,%u%%,%u%%)", heat > 0 ? 12 : 215,
			(unsigned int)(88 * fmin(1, 8 * fabs(heat))),
			(unsigned int)(95 - 36 * fabs(heat)));
	} else {
		if (class == 'i')
			lightness = 88;
		if (class == 'u')
			saturation = 22;
		if (class == 'w')
			saturation = 0;
		fprintf(p->out, "hsl(%u,%u%%,%u%%)", flame_graph_hue(g, f), saturation, lightness);
	}
	fputs(width > 3 ? "\" rx=\"2\"/>" : "\"/>\n", p->out);
}

static int print_line(const struct picture *p, double y, unsigned int size, const char *text)
{
	int err;

	fprintf(p->out, "<text x=\"%d\" y=\"%u\" font-size=\"%u\">", MARGIN, (unsigned int)y, size);
	err = flame_graph_print_xml(text, p->out);
	fputs("</text>\n", p->out);
	return err;
}

/* Prints the start tag of the element, the title and the notes. */
static int print_head(struct picture *p)
{
	unsigned int lines = 1, height;
	int err;

	for (size_t i = 0; i < NOTES; i++)
		lines += *p->g->notes[i] != '\0';
	p->top = 2 * MARGIN + lines * LINE;
	height = (unsigned int)p->top + (p->deepest + 1) * ROW + MARGIN;
	fprintf(p->out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
		"viewBox=\"0 0 %d %u\" font-family=\"sans-serif\">\n<title>",
		WIDTH, height, WIDTH, height);
	err = flame_graph_print_xml(p->g->o->title, p->out);
	fputs("</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", p->out);
	err = err ?: print_line(p, MARGIN + 14, 15, p->g->o->title);
	lines = 1;
	for (size_t i = 0; i < NOTES && !err; i++)
		if (*p->g->notes[i])
			err = print_line(p, MARGIN + 14 + LINE * lines++, 12, p->g->notes[i]);
	return err;
}

int flame_graph_print_picture(const struct flame_graph *g, FILE *out)
{
	struct picture p = {
		.g = g,
		.spans = calloc(g->tree.count, sizeof(*p.spans)),
		.out = out,
	};
	const struct call_node *nodes = g->tree.nodes;
	int err;

	if (!p.spans)
		return -ENOMEM;
	/* The position of each node, and the height of the picture. */
	p.spans[0] = (struct span){ MARGIN, MARGIN };
	for (uint32_t node = flame_graph_next(g, 0); node != CALL_TREE_NONE;
	     node = flame_graph_next(g, node)) {
		struct span *parent = &p.spans[nodes[node].parent];

		p.spans[node] = (struct span){ parent->next, parent->next };
		parent->next += width_of(g, node);
		if (width_of(g, node) >= LEAST && nodes[node].depth > p.deepest)
			p.deepest = nodes[node].depth;
	}
	err = print_head(&p);
	fputs("<g font-family=\"DejaVu Sans Mono,Menlo,Consolas,monospace\" font-size=\"11\">\n",
	      out);
	for (uint32_t node = 0; node != CALL_TREE_NONE && !err; node = flame_graph_next(g, node)) {
		uint32_t row = g->o->icicle ? nodes[node].depth : p.deepest - nodes[node].depth;
		double y = p.top + ROW * row, width = width_of(g, node);

		if (width < LEAST)
			continue;
		if (width < LEAST_TITLED) {
			print_rectangle(&p, node, width, y);
			continue;
		}
		fputs("<g>", out);
		err = print_title(&p, node);
		print_rectangle(&p, node, width, y);
		err = err ?: print_name(&p, node, width, y);
		fputs("</g>\n", out);
	}
	fputs("</g>\n", out);
	free(p.spans);
	return err;
}
