// SPDX-License-Identifier: GPL-2.0-only
#include "report/flame_graph/flame_graph.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/thread_state.h"
#include "report/text.h"
#include "util/sum.h"

/*
 * The picture needs neither the script nor a style sheet, for a README, an img element or a drawing
 * program, where those do not run or are forbidden. The script reads the positions of frames, their
 * names and shares from it: flame_graph.js.
 */

#define WIDTH	     1200
#define MARGIN	     10
#define ROW	     18
#define LINE	     18	 /* height of a line of the title and the notes */
#define SEAM	     0.7 /* between neighbours; a fifth of narrow ones */
#define GLYPH	     6.7 /* width of a character in the fixed font of names */
#define LEAST_GLYPHS 7	 /* a name shortened to fewer would mean nothing */

#define SCALE_LEAST 0.01 /* change of a share with the full colour: noise stays pale */

/*
 * An eighth of a pixel.
 * Bound: caller: the share of all samples that a frame has at least; then: it is folded; seen: in a
 * note of the picture.
 */
#define LEAST_SHARE 0.0001

/* Bound: caller: letters of a name in a note; then: it is cut; seen: not seen. */
#define NOTE_NAME_MAX 80 /* columns of a name in a note */

static const char script[] =
#include "flame_graph.js.h"
	;

/* The base64 of its SHA-256: what the page's policy allows. */
static const char script_hash[] =
#include "flame_graph.js.hash.h"
	;

enum {
	NEW, /* the profile's column in the tree */
	OLD, /* the earlier profile's, if there is one */
};

enum note {
	NOTE_STACKS,
	NOTE_FILTERED,
	NOTE_FOLDED,
	NOTE_CUT,
	NOTE_COLORS,
	NOTE_GONE,
	NOTES
};

/* Hues of images, far enough from each other and from the kernel's to be distinguished. */
static const unsigned short hues[] = { 55, 85, 130, 165, 190, 210, 235, 265, 290, 320, 345 };
#define HUES	   (sizeof(hues) / sizeof(hues[0]))
#define KERNEL_HUE 25
#define NEIGHBOURS 8 /* hues that the functions of one image have */

struct picture {
	const struct flame_graph_options *o;
	struct call_tree tree;
	bool compared;
	bool has_negative;	  /* colours show growth and reduction; widths are of magnitudes */
	const char *images[HUES]; /* base name of the image with this hue; or NULL */
	const char *unit;	  /* of the counted value: "samples", "nanoseconds", an event */
	double scale;		  /* the change of a share that has the full colour, from 0 to 1 */
	char notes[NOTES][256];	  /* sentences for the reader, raw text; "": none */
	double top;		  /* y of the highest row */
	uint32_t deepest;	  /* the largest depth of a node */
	double *left;		  /* of each node */
	double *next;		  /* of each node: where its next child begins */
	FILE *out;
};

static int64_t total_of(const struct picture *p, uint32_t node, size_t column)
{
	return p->tree.counts[node * p->tree.column_count + column].total;
}

/* What the width of a node is in proportion to. */
static uint64_t weight_of(const struct picture *p, uint32_t node, size_t column)
{
	return p->tree.counts[node * p->tree.column_count + column].weight;
}

/* How a node's share of all samples has changed since the earlier profile, from -1 to 1. */
static double change_of(const struct picture *p, uint32_t node)
{
	double share[2];

	for (size_t column = NEW; column <= OLD; column++) {
		double all = p->tree.samples[column];

		share[column] = all > 0 ? (double)total_of(p, node, column) / all : 0;
	}
	return share[NEW] - share[OLD];
}

/* Siblings are ordered by width: after one without a width, none has one. */
static bool is_wide(const struct picture *p, uint32_t node)
{
	return node != CALL_TREE_NONE && weight_of(p, node, NEW);
}

/* The next node with a width in depth-first order, or CALL_TREE_NONE. */
static uint32_t next_node(const struct picture *p, uint32_t node)
{
	const struct call_node *nodes = p->tree.nodes;

	if (is_wide(p, nodes[node].first_child))
		return nodes[node].first_child;
	while (node != CALL_TREE_NONE && !is_wide(p, nodes[node].next_sibling))
		node = nodes[node].parent;
	return node == CALL_TREE_NONE ? node : nodes[node].next_sibling;
}

/* The frame of a node; the root's is named "all". */
static const struct call_frame *frame_of(const struct picture *p, uint32_t node)
{
	static const struct call_frame root = { .name = "all", .image = "", .named = true };
	uint32_t frame = p->tree.nodes[node].frame;

	return frame == CALL_TREE_NONE ? &root : &p->tree.frames[frame];
}

/* --- Colours --- */

/* FNV-1a. hash_bytes() differs from process to process. */
static uint32_t stable_hash(const char *text)
{
	uint32_t hash = 2166136261;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619;
	return hash;
}

/*
 * The index of an image in p->images: the one that its base name has in every graph, or if another
 * image of this graph has that, a free one while there are any.
 */
static size_t place_of(const struct picture *p, const char *name)
{
	size_t wanted = stable_hash(name) % HUES;

	for (size_t i = 0; i < HUES; i++) {
		size_t place = (wanted + i) % HUES;

		if (!p->images[place] || strcmp(p->images[place], name) == 0)
			return place;
	}
	return wanted;
}

/* Prints the colour of a frame: its image's, varied a little by the function's name. */
static void print_color(const struct picture *p, uint32_t node)
{
	/* Red for what is blocked, orange for what is runnable. */
	static const unsigned int states[THREAD_STATES] = { [THREAD_RUNNABLE] = 30 };
	const struct call_frame *f = frame_of(p, node);
	unsigned int hue = stable_hash(f->name) % NEIGHBOURS, saturation = 68;
	const char *reason;
	size_t size;
	enum thread_state state = thread_state_of(f->name, &reason, &size);

	if (p->compared || p->has_negative) {
		/*
		 * From -1 to 1: the change relative to p->scale; without an earlier profile, and
		 * with negative values, what is left where growth and reduction cancel out.
		 */
		double change = p->compared ? change_of(p, node) : 0;
		double heat =
			sqrt(fmin(1, fabs(change) / p->scale)); /* makes small changes visible */

		if (!p->compared)
			heat = (double)total_of(p, node, NEW) /
			       (double)(weight_of(p, node, NEW) ?: 1);
		else if (change < 0)
			heat = -heat;
		fprintf(p->out, "hsl(%d,%u%%,%u%%)", heat > 0 ? 12 : 215,
			(unsigned int)(88 * fmin(1, 8 * fabs(heat))),
			(unsigned int)(95 - 36 * fabs(heat)));
		return;
	}
	if (state != THREAD_ON_CPU)
		hue += states[state];
	else
		hue += f->kernel ? KERNEL_HUE : hues[place_of(p, text_basename(f->image))];
	if (!*f->image || state == THREAD_IDLE)
		saturation = 0; /* processes and threads */
	else if (!f->named)
		saturation = 22;
	fprintf(p->out, "hsl(%u,%u%%,%d%%)", hue, saturation,
		saturation == 68 && f->inlined ? 88 : 78);
}

/* --- Text --- */

/* Prints the visible form as content or quoted attribute of XML and HTML. Returns 0 or -ENOMEM. */
static int print_xml(const char *raw, FILE *out)
{
	char *visible = text_visible(raw);

	if (!visible)
		return -ENOMEM;
	for (const char *s = visible; *s; s++) {
		/* U+FFFE and U+FFFF are invalid in XML, even escaped. */
		if (strncmp(s, "\xef\xbf\xbe", 3) == 0 || strncmp(s, "\xef\xbf\xbf", 3) == 0) {
			fputs("\xef\xbf\xbd", out);
			s += 2;
		} else if (strchr("<>&\"'", *s)) {
			fprintf(out, "&#%d;", *s);
		} else {
			fputc(*s, out);
		}
	}
	free(visible);
	return 0;
}

/* Prints an attribute, at least 0, in every locale alike. Four decimals are enough to zoom by. */
static void print_number(const char *name, double value, FILE *out)
{
	unsigned int parts = (unsigned int)lround(value * 10000);

	fprintf(out, " %s=\"%u.%04u\"", name, parts / 10000, parts % 10000);
}

/* Prints a number of samples and its share of all; times are printed in seconds. */
static int print_part(const struct picture *p, const char *what, int64_t part, size_t column)
{
	char percent[TEXT_PERCENT_SIZE];
	int err = 0;

	if (strcmp(p->unit, "nanoseconds") == 0) {
		/* The locale may have another decimal point. */
		uint64_t ms = (magnitude(part) + 500000) / 1000000;

		fprintf(p->out, "%s%s%" PRIu64 ".%03u s", what, part < 0 ? "-" : "", ms / 1000,
			(unsigned int)(ms % 1000));
	} else {
		fprintf(p->out, "%s%" PRId64 " ", what, part);
		err = print_xml(p->unit, p->out);
	}
	text_percent(percent, part, p->tree.samples[column]);
	fprintf(p->out, ", %s %%", percent);
	return err;
}

/* Prints what browsers show under the pointer. */
static int print_title(const struct picture *p, uint32_t node)
{
	const struct call_frame *f = frame_of(p, node);
	int err;

	fputs("<title>", p->out);
	err = print_xml(f->name, p->out);
	fputc('\n', p->out);
	if (*f->image) {
		err = err ?: print_xml(f->image, p->out);
		fputs(f->inlined ? ", inlined\n" : "\n", p->out);
	}
	err = err ?: print_part(p, "", total_of(p, node, NEW), NEW);
	if (p->compared)
		err = err ?: print_part(p, "; old ", total_of(p, node, OLD), OLD);
	err = err
		      ?: print_part(p, "; self ", p->tree.counts[node * p->tree.column_count].self,
				    NEW);
	fputs("</title>", p->out);
	return err;
}

static int print_name(const struct picture *p, uint32_t node, double width, double y)
{
	const char *raw = frame_of(p, node)->name;
	size_t columns = (size_t)(width / GLYPH);
	char *name;
	int err;

	/* One column is left free. */
	if (columns <= LEAST_GLYPHS && columns <= text_columns(raw))
		return 0;
	name = text_visible(raw);
	if (!name)
		return -ENOMEM;
	if (columns > LEAST_GLYPHS)
		text_shorten(name, columns - 1);
	fputs("<text", p->out);
	print_number("x", p->left[node] + 4, p->out);
	fprintf(p->out, " y=\"%u\">", (unsigned int)y + 13);
	err = print_xml(name, p->out);
	fputs("</text>", p->out);
	free(name);
	return err;
}

static int print_frame(const struct picture *p, uint32_t node, double width)
{
	uint32_t row = p->tree.nodes[node].depth;
	double y = p->top + ROW * (p->o->icicle ? row : p->deepest - row);
	int err;

	fputs("<g>", p->out);
	err = print_title(p, node);
	fputs("<rect", p->out);
	print_number("x", p->left[node], p->out);
	print_number("width", width - fmin(SEAM, width / 5), p->out);
	fprintf(p->out, " y=\"%u\" height=\"%d\" fill=\"", (unsigned int)y, ROW - 1);
	print_color(p, node);
	fputs("\"/>", p->out);
	err = err ?: print_name(p, node, width, y);
	fputs("</g>\n", p->out);
	return err;
}

static int print_line(const struct picture *p, double y, unsigned int size, const char *text)
{
	int err;

	fprintf(p->out, "<text x=\"%d\" y=\"%u\" font-size=\"%u\">", MARGIN, (unsigned int)y, size);
	err = print_xml(text, p->out);
	fputs("</text>\n", p->out);
	return err;
}

/* Prints the svg element but for its end tag. */
static int print_picture(struct picture *p)
{
	double whole = weight_of(p, 0, NEW);
	unsigned int lines = 1, height;
	int err;

	for (uint32_t node = 0; node != CALL_TREE_NONE; node = next_node(p, node))
		p->deepest = MAX(p->deepest, p->tree.nodes[node].depth);
	for (size_t i = 0; i < NOTES; i++)
		lines += *p->notes[i] != '\0';
	p->top = 2 * MARGIN + lines * LINE;
	height = (unsigned int)p->top + (p->deepest + 1) * ROW + MARGIN;
	fprintf(p->out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
		"viewBox=\"0 0 %d %u\" font-family=\"sans-serif\">\n<title>",
		WIDTH, height, WIDTH, height);
	err = print_xml(p->o->title, p->out);
	fputs("</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", p->out);
	err = err ?: print_line(p, MARGIN + 14, 15, p->o->title);
	lines = 1;
	for (size_t i = 0; i < NOTES && !err; i++)
		if (*p->notes[i])
			err = print_line(p, MARGIN + 14 + LINE * lines++, 12, p->notes[i]);

	fputs("<g id=\"frames\" font-family=\"DejaVu Sans Mono,Menlo,Consolas,monospace\" "
	      "font-size=\"11\">\n",
	      p->out);
	for (uint32_t node = 0; node != CALL_TREE_NONE && !err; node = next_node(p, node)) {
		uint32_t parent = p->tree.nodes[node].parent;
		double width = WIDTH - 2 * MARGIN;

		if (whole > 0)
			width *= (double)weight_of(p, node, NEW) / whole;
		p->left[node] = p->next[node] = node ? p->next[parent] : MARGIN;
		if (node)
			p->next[parent] += width;
		err = print_frame(p, node, width);
	}
	fputs("</g>\n", p->out);
	return err;
}

/* --- The notes above --- */

static int make_notes(struct picture *p, const struct profile *profile)
{
	const struct profile_totals *t = &profile->totals;
	enum profile_stacks stacks = profile_stacks_unfiltered(profile, p->o->tree.filtered);
	uint64_t shown = weight_of(p, 0, NEW);
	uint32_t gone = CALL_TREE_NONE, gone_count = 0;
	char part[TEXT_PERCENT_SIZE], *name;

	text_percent(part, t->stacks_complete, t->stacks_user);
	if (stacks != PROFILE_CALL_STACKS)
		snprintf(p->notes[NOTE_STACKS], sizeof(p->notes[0]),
			 "There are no call stacks here%s: record them with -g.",
			 stacks == PROFILE_INLINED_STACKS ? " but of inlined functions" : "");
	else if (t->stacks_user && strcmp(profile->stacks, "cfi") == 0 &&
		 t->stacks_complete < t->stacks_user)
		snprintf(p->notes[NOTE_STACKS], sizeof(p->notes[0]),
			 "%s %% of the user stacks reach the program's start.", part);

	text_percent(part, shown, p->tree.samples[NEW]);
	if (shown < magnitude_u64(p->tree.samples[NEW]))
		snprintf(p->notes[NOTE_FILTERED], sizeof(p->notes[0]),
			 "This is a part of the profile: %s %% of all samples.", part);
	if (p->tree.folded)
		snprintf(p->notes[NOTE_FOLDED], sizeof(p->notes[0]),
			 "%zu frame%s under %g %% of all samples %s not shown.", p->tree.folded,
			 p->tree.folded == 1 ? "" : "s", p->tree.min_share * 100,
			 p->tree.folded == 1 ? "is" : "are");
	if (p->tree.cut)
		snprintf(p->notes[NOTE_CUT], sizeof(p->notes[0]),
			 "Stacks are shown up to %d frames: %zu %s deeper.", FLAME_GRAPH_DEPTH_MAX,
			 p->tree.cut, p->tree.cut == 1 ? "is" : "are");
	text_percent(part, lround(p->scale * 10000), 10000);
	if (p->compared)
		snprintf(p->notes[NOTE_COLORS], sizeof(p->notes[0]),
			 "Red is a larger share than in the old profile, blue a smaller one; the "
			 "full colour is %s percentage points.",
			 part);
	else if (p->has_negative)
		snprintf(p->notes[NOTE_COLORS], sizeof(p->notes[0]),
			 "Red is above 0, blue below; widths are of magnitudes, and pale is what "
			 "cancels out.");

	/* What only the earlier profile has, below a node that this one has, too. */
	for (uint32_t i = 1; i < p->tree.count && p->compared; i++) {
		if (weight_of(p, i, NEW) || !weight_of(p, p->tree.nodes[i].parent, NEW))
			continue;
		gone_count++;
		if (gone == CALL_TREE_NONE || weight_of(p, i, OLD) > weight_of(p, gone, OLD))
			gone = i;
	}
	if (!gone_count)
		return 0;
	name = text_visible(frame_of(p, gone)->name);
	if (!name)
		return -ENOMEM;
	text_shorten(name, NOTE_NAME_MAX);
	text_percent(part, total_of(p, gone, OLD), p->tree.samples[OLD]);
	snprintf(p->notes[NOTE_GONE], sizeof(p->notes[0]),
		 "%" PRIu32 " frame%s of the old profile %s gone; the largest had %s %%: %s",
		 gone_count, gone_count == 1 ? "" : "s", gone_count == 1 ? "is" : "are", part,
		 name);
	free(name);
	return 0;
}

/* --- The file --- */

int flame_graph_print(const struct profile *profile, const struct profile *earlier,
		      const struct flame_graph_options *o, FILE *out)
{
	const struct profile *profiles[] = { [NEW] = profile, [OLD] = earlier };
	const struct profile_value_type *type;
	struct call_tree_options tree = o->tree;
	struct picture p = {
		.o = o, .compared = earlier, .unit = "samples", .scale = SCALE_LEAST, .out = out
	};
	int err;

	tree.min_share = fmax(tree.min_share, LEAST_SHARE);
	err = call_tree_make(&p.tree, profiles, earlier ? 2 : 1, &tree);
	p.left = err ? NULL : calloc(p.tree.count, sizeof(*p.left));
	p.next = err ? NULL : calloc(p.tree.count, sizeof(*p.next));
	if (!p.left || !p.next) {
		err = -ENOMEM;
		goto out;
	}
	if (profile->value_type_count) {
		type = &profile->value_types[profile_value(profile, o->tree.value)];
		p.unit = strcmp(type->unit, "nanoseconds") == 0 ? type->unit : type->type;
	}
	for (size_t i = 0; i < p.tree.count && !p.has_negative; i++)
		p.has_negative = weight_of(&p, i, NEW) != magnitude(total_of(&p, i, NEW)) ||
				 total_of(&p, i, NEW) < 0;
	for (uint32_t node = 0; node != CALL_TREE_NONE; node = next_node(&p, node)) {
		const struct call_frame *f = frame_of(&p, node);
		const char *name = text_basename(f->image);
		size_t place = place_of(&p, name);

		if (!f->kernel && *f->image && !p.images[place])
			p.images[place] = name;
		if (earlier)
			p.scale = fmax(p.scale, fabs(change_of(&p, node)));
	}
	err = make_notes(&p, profile);
	if (o->html) /* The policy keeps it from any network access, and allows this script alone.
		      */
		fprintf(out,
			"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
			"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
			"'none'; "
			"script-src 'sha256-%s'; base-uri 'none'; form-action 'none'\">\n"
			"<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
			script_hash);
	else
		fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
	if (o->html && !err) {
		err = print_xml(o->title, out);
		fputs("</title>\n</head>\n<body>\n", out);
	}
	err = err ?: print_picture(&p);
	/* SVG is XML: CDATA keeps the script from being parsed as markup. */
	fprintf(out,
		o->html ? "</svg>\n<script>%s</script>\n</body>\n</html>\n"
			: "<script><![CDATA[\n%s]]></script>\n</svg>\n",
		script);
out:
	free(p.left);
	free(p.next);
	call_tree_free(&p.tree);
	return err;
}
