/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_FLAME_GRAPH_PARTS_H
#define PROFIL_REPORT_FLAME_GRAPH_PARTS_H

#include <stdint.h>

#include "report/flame_graph/flame_graph.h"
#include "report/text.h"

/* What the picture in an SVG file and the data for the script have in common. */

enum {
	NEW, /* the profile's column in the tree; the only one when none is earlier */
	OLD,
};

#define FLAME_GRAPH_HUES 11

enum flame_graph_note {
	NOTE_STACKS,
	NOTE_FILTERED,
	NOTE_FOLDED,
	NOTE_GONE,
	NOTES
};

struct flame_graph {
	const struct flame_graph_options *o;
	struct call_tree tree;
	bool compared;
	const char *images[FLAME_GRAPH_HUES]; /* base names of those that have a hue; or NULL */
	const char *unit; /* of what is counted: "samples", "nanoseconds", an event */
	double scale;	  /* the change of a share that has the full colour, of 1 */
	/* Nodes of the earlier profile that have no width now, below one that has: largest first */
	uint32_t *gone;
	size_t gone_count;
	char notes[NOTES][256]; /* for a person; "" is none. Of raw names: to be made visible */
};

/* The node behind this one in depth-first order, of those with a width; or CALL_TREE_NONE. */
uint32_t flame_graph_next(const struct flame_graph *g, uint32_t node);

uint64_t flame_graph_total(const struct flame_graph *g, uint32_t node, size_t column);

/* How a node's share of all samples has changed since the earlier profile, from -1 to 1. */
double flame_graph_change(const struct flame_graph *g, uint32_t node);

/* The same as a colour, from -1 to 1: relative to g->scale. */
double flame_graph_heat(const struct flame_graph *g, uint32_t node);

/* The frame that a node is of; the root's is "all". */
const struct call_frame *flame_graph_frame(const struct flame_graph *g, uint32_t node);

/*
 * Gives each image its hue: the one that its base name has in every graph, unless an image of this
 * one has it already and there are others left. The kernel has its own.
 */
void flame_graph_choose_hues(struct flame_graph *g);

/* The hue of its image, in degrees, with a little of its own name in it. */
unsigned int flame_graph_hue(const struct flame_graph *g, const struct call_frame *f);

/* The class of it in flame_graph.css: "", inlined, unnamed or who. */
const char *flame_graph_class(const struct call_frame *f);

/* A number that is not below 0, with two decimals at most, whatever the locale. */
const char *flame_graph_decimal(double value, char text[TEXT_PERCENT_SIZE]);

/* Text, made visible, for between tags of XML or HTML or in quotes there. Returns 0 or -ENOMEM. */
int flame_graph_print_xml(const char *raw, FILE *out);

/* The same in quotes, for JSON inside a script element. */
int flame_graph_print_json(const char *raw, FILE *out);

/* The picture without scripts: a whole svg element but for its end tag. */
int flame_graph_print_picture(const struct flame_graph *g, FILE *out);

/* The JSON object that flame_graph.js takes. */
int flame_graph_print_data(const struct flame_graph *g, FILE *out);

#endif
