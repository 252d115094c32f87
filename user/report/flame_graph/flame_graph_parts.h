/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_FLAME_GRAPH_PARTS_H
#define PROFIL_REPORT_FLAME_GRAPH_PARTS_H

#include <stdint.h>

#include "report/flame_graph/flame_graph.h"
#include "report/text.h"

/* Shared by the picture in an SVG file and the data for the script. */

enum {
	NEW, /* the profile's column in the tree */
	OLD, /* the earlier profile's, if there is one */
};

#define FLAME_GRAPH_HUES 11

enum flame_graph_note {
	NOTE_STACKS,
	NOTE_FILTERED,
	NOTE_FOLDED,
	NOTE_CUT,
	NOTE_GONE,
	NOTES
};

struct flame_graph {
	const struct flame_graph_options *o;
	struct call_tree tree;
	bool compared;
	bool has_negative; /* colours show growth and reduction; widths are of magnitudes */
	const char *images[FLAME_GRAPH_HUES]; /* base name of the image with this hue; or NULL */
	const char *unit; /* of the counted value: "samples", "nanoseconds", an event */
	double scale;	  /* the change of a share that has the full colour, from 0 to 1 */
	/* Nodes only of the earlier profile, below a node of this one; largest first */
	uint32_t *gone;
	size_t gone_count;
	char notes[NOTES][256]; /* sentences for the reader, raw text; "": none */
};

/* The next node with a width in depth-first order, or CALL_TREE_NONE. */
uint32_t flame_graph_next(const struct flame_graph *g, uint32_t node);

int64_t flame_graph_total(const struct flame_graph *g, uint32_t node, size_t column);

/* The weight of a node, which its width is in proportion to. */
uint64_t flame_graph_weight(const struct flame_graph *g, uint32_t node, size_t column);

/* How a node's share of all samples has changed since the earlier profile, from -1 to 1. */
double flame_graph_change(const struct flame_graph *g, uint32_t node);

/*
 * The same as a colour, from -1 to 1: relative to g->scale; without an earlier profile, and with
 * negative values, what is left of the samples of a node where growth and reduction cancel out.
 */
double flame_graph_heat(const struct flame_graph *g, uint32_t node);

/* The frame of a node; the root's is named "all". */
const struct call_frame *flame_graph_frame(const struct flame_graph *g, uint32_t node);

/*
 * Chooses a hue for each image: the one that its base name has in every graph, or if another image
 * of this graph has that, a free one while there are any. The kernel has a hue of its own.
 */
void flame_graph_choose_hues(struct flame_graph *g);

/* The hue of a frame in degrees: that of its image, varied a little by the function's name. */
unsigned int flame_graph_hue(const struct flame_graph *g, const struct call_frame *f);

/* The frame's class in flame_graph.css: "", inlined, unnamed or who (a process or thread). */
const char *flame_graph_class(const struct call_frame *f);

/* Prints a number, at least 0, with two decimals at most, in every locale alike. Returns text. */
const char *flame_graph_decimal(double value, char text[TEXT_PERCENT_SIZE]);

/* Prints the visible form as content or quoted attribute of XML and HTML. Returns 0 or -ENOMEM. */
int flame_graph_print_xml(const char *raw, FILE *out);

/* The same as a quoted JSON string inside a script element. */
int flame_graph_print_json(const char *raw, FILE *out);

/* Prints the picture for viewers without scripts: the svg element up to its end tag. */
int flame_graph_print_picture(const struct flame_graph *g, FILE *out);

#endif
