// SPDX-License-Identifier: GPL-2.0-only
/*
 * The profile as the page's scripts take it: lists of numbers. Those that are near to the ones
 * before them are written as differences, which compress well.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile/callgraph.h"
#include "profile/filter.h"
#include "profile/image_name.h"
#include "profile/tags.h"
#include "profile/thread_state.h"
#include "report/json_writer.h"
#include "report/row_view.h"
#include "report/text.h"
#include "report/web/web_code.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/order.h"
#include "util/sum.h"
#include "util/table.h"

#define SIDES 2 /* a profile, and what it is compared with */
/* Bound: size. */
#define SLOTS_MAX 90000 /* of time: of 10 ms in 15 minutes, of 40 ms in an hour */

/*
 * Labels in the page that are not profil's own: each is a number for every set of labels.
 * Bound: files: names of labels; then: those that come first are in the page, which says so.
 */
#define WEB_LABELS_MAX 64

/* A call path: that of its parent, and one more frame. The first one is empty. */
struct node {
	uint32_t parent, frame;
};

/* What is known of a frame beside its name. */
struct frame {
	uint32_t image, file; /* numbers of texts */
	bool script, inlined, known;
};

/* A field of labels: a number of a text for each labels of a profile. */
struct dimension {
	const char *key;
	uint32_t *texts[SIDES];
};

struct builder {
	struct web_writer w;
	const struct web_options *o;
	const struct web_code *code;
	const struct profile *sides[SIDES];
	size_t side_count;
	struct callgraph graph; /* its nodes are frames */
	struct callgraph_places places[SIDES];
	struct frame *frames;
	TABLE(struct node) nodes;
	struct dimension *dimensions;
	size_t dimension_count, dimension_room;
	size_t other_dimensions; /* of these, labels that are not profil's own */
	bool lacks_labels;	 /* there are more of them */
	/* Samples, by labels and call paths, which makes neighbours alike: their numbers */
	uint32_t *order[SIDES];
};

/* --- Texts --- */

int web_add_text(struct web_writer *w, const char *text, uint32_t *id)
{
	size_t before = w->texts.count;

	if (table_add(&w->texts, &text, TABLE_TEXT, id))
		return -ENOMEM;
	if (*id == before)
		w->texts.all[*id] = strdup(text);
	return w->texts.all[*id] ? 0 : -ENOMEM;
}

/* --- Call paths --- */

/* Sets *node to the call path with one more frame. Returns 0, -ENOMEM or -E2BIG. */
static int find_child(struct builder *b, uint32_t frame, uint32_t *node)
{
	const struct node key = { *node, frame };

	if (table_add(&b->nodes, &key, sizeof(key), node))
		return -ENOMEM;
	return b->nodes.count > WEB_PATHS_MAX ? -E2BIG : 0;
}

/* Sets *node to the call path of a sample, from its root on. Returns 0, -ENOMEM or -E2BIG. */
static int find_path(struct builder *b, size_t side, const struct profile_sample *sample,
		     uint32_t *node)
{
	const struct callgraph_places *places = &b->places[side];
	const struct profile *p = b->sides[side];
	int err = 0;

	*node = 0;
	if (!sample->depth)
		return find_child(b, places->nodes[places->first[p->location_count] + 1], node);
	for (uint32_t i = sample->depth; i-- && !err;) {
		uint32_t location = p->frames[sample->first_frame + i];
		uint32_t place = places->first[location + 1];

		while (place-- > places->first[location] && !err)
			err = find_child(b, places->nodes[place], node);
	}
	return err;
}

/* Notes what is known of the frames of a profile. Returns 0 or -ENOMEM. */
static int note_frames(struct builder *b, size_t side)
{
	const struct callgraph_places *places = &b->places[side];
	const struct profile *p = b->sides[side];

	for (uint32_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];

		for (uint32_t place = places->first[i]; place < places->first[i + 1]; place++) {
			struct frame *frame = &b->frames[places->nodes[place]];
			const struct profile_function *f;

			if (frame->known)
				continue;
			frame->known = true;
			frame->script = profile_is_script(p, i);
			if (web_add_text(&b->w, row_image_path(p, i), &frame->image))
				return -ENOMEM;
			if (!l->line_count)
				continue;
			f = &p->functions[p->lines[l->first_line + place - places->first[i]]
						  .function];
			if (web_add_text(&b->w, f->file, &frame->file))
				return -ENOMEM;
		}
	}
	return 0;
}

/* A sample's place in the order in which they are printed. */
struct ranked {
	uint32_t labels, path, sample;
};

ORDER(compare_ranked, struct ranked, LEAST(labels) ?: LEAST(path) ?: LEAST(sample))

/*
 * Numbers the call paths depth first, and orders the samples: lists of them are then of half the
 * size in the page. paths: of each sample, of all sides; they become the new ones, in this order.
 * Returns 0 or -ENOMEM.
 */
static int order_samples(struct builder *b, uint32_t *paths)
{
	size_t count = b->nodes.count, frames = b->graph.node_count, most = 0;
	uint32_t *first = calloc(count + 2, sizeof(*first)); /* of a node: where its children are */
	uint32_t *children = calloc(count + 1, sizeof(*children));
	uint32_t *by_frame = calloc(count + 1, sizeof(*by_frame));
	uint32_t *ends = calloc(frames + 2, sizeof(*ends)),
		 *renamed = calloc(count + 1, sizeof(*renamed));
	uint32_t *stack = calloc(count + 1, sizeof(*stack));
	struct node *nodes = calloc(count + 1, sizeof(*nodes));
	struct ranked *ranked = NULL;
	size_t depth = 0, next = 0;
	int err = -ENOMEM;

	for (size_t side = 0; side < b->side_count; side++)
		most = MAX(most, b->sides[side]->sample_count);
	ranked = calloc(most + 1, sizeof(*ranked));
	if (!first || !children || !by_frame || !ends || !renamed || !stack || !nodes || !ranked)
		goto out;
	/* Two counting sorts: children of a node are in the order of their frames. */
	for (size_t i = 1; i < count; i++) {
		ends[b->nodes.all[i].frame + 1]++;
		first[b->nodes.all[i].parent + 2]++;
	}
	for (size_t i = 0; i <= frames; i++)
		ends[i + 1] += ends[i];
	for (size_t i = 1; i < count; i++)
		by_frame[ends[b->nodes.all[i].frame]++] = i;
	for (size_t i = 1; i <= count; i++)
		first[i + 1] += first[i];
	for (size_t i = 0; i + 1 < count; i++)
		children[first[b->nodes.all[by_frame[i]].parent + 1]++] = by_frame[i];
	stack[depth++] = 0;
	while (depth) {
		uint32_t node = stack[--depth];

		renamed[node] = next;
		nodes[next++] = (struct node){ renamed[b->nodes.all[node].parent],
					       b->nodes.all[node].frame };
		for (uint32_t i = first[node + 1]; i-- > first[node];)
			stack[depth++] = children[i];
	}
	free(b->nodes.all);
	b->nodes.all = nodes;
	nodes = NULL;
	index_free(&b->nodes.index); /* it has the old numbers */
	b->nodes.index = (struct index){ 0 };

	for (size_t side = 0; side < b->side_count; side++) {
		const struct profile *p = b->sides[side];

		b->order[side] = calloc(p->sample_count + 1, sizeof(**b->order));
		if (!b->order[side])
			goto out;
		for (size_t i = 0; i < p->sample_count; i++)
			ranked[i] = (struct ranked){ p->samples[i].labels, renamed[paths[i]], i };
		qsort(ranked, p->sample_count, sizeof(*ranked), compare_ranked);
		for (size_t i = 0; i < p->sample_count; i++) {
			b->order[side][i] = ranked[i].sample;
			paths[i] = ranked[i].path;
		}
		paths += p->sample_count;
	}
	err = 0;
out:
	free(first);
	free(children);
	free(by_frame);
	free(ends);
	free(renamed);
	free(stack);
	free(nodes);
	free(ranked);
	return err;
}

/* --- Labels --- */

static int set_label(struct builder *b, size_t side, size_t labels, const char *key,
		     const char *text)
{
	struct dimension *d;
	size_t at = 0;
	bool own = false;

	while (at < b->dimension_count && strcmp(b->dimensions[at].key, key) != 0)
		at++;
	if (at < b->dimension_count)
		return web_add_text(&b->w, text, &b->dimensions[at].texts[side][labels]);
	for (int i = 0; i < TAG_COUNT; i++)
		own |= strcmp(key, tag_kinds[i].key) == 0;
	if (!own && b->other_dimensions == WEB_LABELS_MAX) {
		b->lacks_labels = true;
		return 0;
	}
	if (array_reserve(&b->dimensions, &b->dimension_room, at + 1, sizeof(*d)))
		return -ENOMEM;
	b->other_dimensions += !own;
	b->dimension_count++;
	d = &b->dimensions[at];
	*d = (struct dimension){ .key = key };
	for (size_t i = 0; i < b->side_count; i++) {
		d->texts[i] = calloc(b->sides[i]->label_count + 1, sizeof(**d->texts));
		if (!d->texts[i])
			return -ENOMEM;
	}
	return web_add_text(&b->w, text, &d->texts[side][labels]);
}

/* The number of two recordings' processes and threads are not the same: names are. */
static int set_task(struct builder *b, size_t side, size_t labels, const char *key,
		    const char *comm, uint32_t id)
{
	char text[128];

	if (!*comm && !id)
		return 0;
	if (!*comm)
		comm = row_unknown;
	if (id && b->side_count == 1)
		snprintf(text, sizeof(text), "%.96s %" PRIu32, comm, id);
	else
		snprintf(text, sizeof(text), "%.96s", comm);
	return set_label(b, side, labels, key, text);
}

static int note_labels(struct builder *b, size_t side)
{
	const struct profile *p = b->sides[side];
	const char **processes = calloc(p->label_count + 1, sizeof(*processes));
	int err = processes ? row_process_names(p, processes) : -ENOMEM;

	for (size_t i = 0; i < p->label_count && !err; i++) {
		const struct profile_labels *l = &p->labels[i];

		err = set_task(b, side, i, "process", processes[i], l->pid)
			      ?: set_task(b, side, i, "thread", l->comm, l->tid);
		for (uint32_t j = 0; j < l->tag_count && !err; j++) {
			const struct profile_tag *tag = &l->tags[j];
			char number[64];

			if (strcmp(tag->key, tag_kinds[TAG_TIME].key) == 0)
				continue;
			snprintf(number, sizeof(number), "%" PRId64 "%s%s", tag->number,
				 tag->unit && *tag->unit ? " " : "", tag->unit ?: "");
			err = set_label(b, side, i, tag->key, tag->text ?: number);
		}
	}
	free(processes);
	return err;
}

/* --- Printing --- */

void web_begin_list(struct web_writer *w, const char *key)
{
	fprintf(w->out, ",\n\"%s\":[", key);
	w->in_list = false;
}

void web_number(struct web_writer *w, int64_t number)
{
	fprintf(w->out, w->in_list ? ",%" PRId64 : "%" PRId64, number);
	w->in_list = true;
}

void web_text_number(struct web_writer *w, const char *text)
{
	uint32_t id = 0;

	if (web_add_text(w, text, &id))
		w->err = -ENOMEM;
	web_number(w, id);
}

void web_end_list(struct web_writer *w)
{
	putc(']', w->out);
}

void web_text(struct web_writer *w, const char *text)
{
	char *visible = text_visible(text);

	if (w->in_list)
		putc(',', w->out);
	w->in_list = true;
	if (!visible || json_print(json_text(visible), JSON_C_TO_STRING_PLAIN, w->out))
		w->err = -ENOMEM;
	free(visible);
}

static void print_member(struct builder *b, const char *key, const char *text)
{
	fprintf(b->w.out, ",\n\"%s\":", key);
	b->w.in_list = false;
	web_text(&b->w, text);
}

/* Kinds of frames, by which they are coloured: as in the page's scripts. */
enum kind {
	KIND_USER,
	KIND_KERNEL,
	KIND_SCRIPT,
	KIND_UNNAMED,
	KIND_LABEL, /* the scripts' own */
	KIND_STATE, /* and enum thread_state behind it: of a thread that is not on a CPU */
};

static void print_frames(struct builder *b)
{
	const struct callgraph *g = &b->graph;
	size_t count = g->node_count;

	web_begin_list(&b->w, "names");
	for (size_t i = 0; i < g->node_count && !b->w.err; i++) {
		const struct callgraph_key *key = &g->nodes[i].key;
		const char *base = text_basename(key->image);
		char *name = NULL;

		if (!key->function &&
		    asprintf(&name, image_is_bracketed(base) ? "%s" : "[%s]", base) < 0) {
			b->w.err = -ENOMEM;
			return;
		}
		web_text(&b->w, name ?: key->function);
		free(name);
	}
	web_end_list(&b->w);
	web_begin_list(&b->w, "kinds");
	for (size_t i = 0; i < g->node_count; i++) {
		const char *name = g->nodes[i].key.function, *reason;
		enum kind kind = KIND_USER;
		enum thread_state state;
		size_t size;

		state = name ? thread_state_of(name, &reason, &size) : THREAD_ON_CPU;
		if (state != THREAD_ON_CPU)
			kind = KIND_STATE + state;
		else if (!name)
			kind = KIND_UNNAMED;
		else if (g->nodes[i].kernel)
			kind = KIND_KERNEL;
		else if (b->frames[i].script)
			kind = KIND_SCRIPT;
		web_number(&b->w, kind);
	}
	web_end_list(&b->w);
	WEB_LIST(&b->w, "inlined", web_number, i, count, b->frames[i].inlined);
	WEB_LIST(&b->w, "images", web_number, i, count, b->frames[i].image);
	WEB_LIST(&b->w, "files", web_number, i, count, b->frames[i].file);
}

/* A function that another one calls in some call path. */
struct call {
	uint32_t from, to, number; /* the number-th that is found there */
};

/*
 * The call paths: each one's parent, as how far before it that is; and its frame, as a number among
 * those that follow the parent's frame anywhere, in the order in which they are first found there.
 * That of a new one is followed by the frame's own. Such numbers are small: a function calls few
 * others. Returns 0 or -ENOMEM.
 */
static int print_nodes(struct builder *b)
{
	size_t frames = b->graph.node_count, known;
	uint32_t *found = calloc(frames + 1, sizeof(*found)); /* of each frame; then of the root */
	TABLE(struct call) calls = { 0 };
	int err = found ? 0 : -ENOMEM;

	WEB_LIST(&b->w, "parents", web_number, i, b->nodes.count - 1,
		 i + 1 - b->nodes.all[i + 1].parent);
	web_begin_list(&b->w, "frames");
	for (size_t i = 1; i < b->nodes.count && !err; i++) {
		uint32_t parent = b->nodes.all[b->nodes.all[i].parent].frame, id;
		struct call call = { parent == CALLGRAPH_NONE ? frames : parent,
				     b->nodes.all[i].frame, 0 };

		known = calls.count;
		err = table_add(&calls, &call, offsetof(struct call, number), &id);
		if (err)
			break;
		if (id == known)
			calls.all[id].number = found[call.from]++;
		web_number(&b->w, calls.all[id].number);
		if (id == known)
			web_number(&b->w, call.to);
	}
	web_end_list(&b->w);
	table_free(&calls);
	free(found);
	return err;
}

static void print_labels(struct builder *b)
{
	fputs(",\n\"labels\":[", b->w.out);
	for (size_t i = 0; i < b->dimension_count; i++) {
		struct dimension *d = &b->dimensions[i];

		fputs(i ? ",\n{\"key\":" : "\n{\"key\":", b->w.out);
		b->w.in_list = false;
		web_text(&b->w, d->key);
		web_begin_list(&b->w, "texts");
		for (size_t side = 0; side < b->side_count; side++)
			for (size_t j = 0; j < b->sides[side]->label_count; j++)
				web_number(&b->w, d->texts[side][j]);
		web_end_list(&b->w);
		putc('}', b->w.out);
	}
	fprintf(b->w.out, "],\n\"lacks_labels\":%s", b->lacks_labels ? "true" : "false");
}

/*
 * The samples: the call path and labels of each, the line where it is, and its values. Those of
 * what it is compared with come last. Returns 0, -ENOMEM or -E2BIG.
 */
static int print_samples(struct builder *b, uint32_t *paths)
{
	const struct profile *first = b->sides[0];
	uint32_t before = 0, labels = 0;
	size_t at = 0;
	int err = 0;

	web_begin_list(&b->w, "counts");
	for (size_t side = 0; side < b->side_count; side++) {
		web_number(&b->w, b->sides[side]->sample_count);
		for (size_t i = 0; i < b->sides[side]->sample_count && !err; i++)
			err = find_path(b, side, &b->sides[side]->samples[i], &paths[at++]);
	}
	web_end_list(&b->w);
	if (err)
		return err;
	if (order_samples(b, paths) || print_nodes(b))
		return -ENOMEM;

	web_begin_list(&b->w, "paths");
	for (size_t i = 0; i < at; i++) {
		web_number(&b->w, (int64_t)paths[i] - before);
		before = paths[i];
	}
	web_end_list(&b->w);
	web_begin_list(&b->w, "sample_labels");
	for (size_t side = 0; side < b->side_count; side++) {
		for (size_t i = 0; i < b->sides[side]->sample_count; i++)
			web_number(&b->w,
				   labels + b->sides[side]->samples[b->order[side][i]].labels);
		labels += b->sides[side]->label_count;
	}
	web_end_list(&b->w);
	web_begin_list(&b->w, "lines");
	for (size_t side = 0; side < b->side_count; side++) {
		const struct profile *p = b->sides[side];

		for (size_t i = 0; i < p->sample_count; i++) {
			const struct profile_sample *s = &p->samples[b->order[side][i]];
			const struct profile_location *l =
				s->depth ? &p->locations[p->frames[s->first_frame]] : NULL;

			web_number(&b->w, l && l->line_count ? p->lines[l->first_line].line : 0);
		}
	}
	web_end_list(&b->w);

	fputs(",\n\"values\":[", b->w.out);
	for (size_t v = 0; v < first->value_type_count; v++) {
		const struct profile_value_type *type = &first->value_types[v];
		uint64_t step = 0;

		fputs(v ? ",\n{\"type\":" : "\n{\"type\":", b->w.out);
		b->w.in_list = false;
		web_text(&b->w, type->type);
		print_member(b, "unit", type->unit);
		/* CPU time is a number of ticks: what divides all values is written once. */
		for (size_t side = 0; side < b->side_count; side++) {
			const struct profile *p = b->sides[side];
			size_t value = profile_find_value(p, type->type);

			for (size_t i = 0; i < p->sample_count && value < p->value_type_count;
			     i++) {
				uint64_t rest =
					magnitude(p->values[i * p->value_type_count + value]);

				while (rest) {
					uint64_t next = step % rest;

					step = rest;
					rest = next;
				}
			}
		}
		if (!step || step > INT64_MAX)
			step = 1;
		fprintf(b->w.out, ",\n\"step\":%" PRIu64, step);
		for (size_t side = 0; side < b->side_count; side++) {
			const struct profile *p = b->sides[side];

			fprintf(b->w.out, side ? ",%.17g" : ",\"samples\":[%.17g",
				profile_meaning(p, profile_find_value(p, type->type)).samples);
		}
		putc(']', b->w.out);
		web_begin_list(&b->w, "of");
		for (size_t side = 0; side < b->side_count; side++) {
			const struct profile *p = b->sides[side];
			size_t width = p->value_type_count,
			       value = profile_find_value(p, type->type);

			for (size_t i = 0; i < p->sample_count; i++)
				web_number(&b->w,
					   value < width
						   ? p->values[b->order[side][i] * width + value] /
							     (int64_t)step
						   : 0);
		}
		web_end_list(&b->w);
		putc('}', b->w.out);
	}
	fprintf(b->w.out, "],\n\"value\":%zu", profile_value(first, b->o->value));
	return 0;
}

/* --- Times --- */

/*
 * When the ticks came: for each sample how many slots have some, then for each of these how far it
 * is behind the one before, and how many. Ticks without a time of their own, of a window of the
 * archive, are where that begins. Returns 0 or -ENOMEM.
 */
static int print_ticks(struct builder *b, const struct time_interval *recorded, uint64_t slot_ns)
{
	const struct profile *p = b->sides[0];
	size_t slots = 0, slot_room = 0, entries = 0, entry_room = 0;
	struct tick_groups groups;
	uint32_t *counts = NULL; /* pairs: the difference, and the number of ticks */
	uint32_t *of = NULL;
	int err = tick_list_group(&p->ticks, p->sample_count, &groups);

	if (err)
		return err;
	for (size_t place = 0; place < p->sample_count && !err; place++) {
		uint32_t i = b->order[0][place];
		const struct profile_tag *tag =
			profile_find_tag(&p->labels[p->samples[i].labels], tag_kinds[TAG_TIME].key);
		uint64_t ticks = magnitude(p->values[i * p->value_type_count]), slot = 0;
		size_t at = groups.first[i], end = groups.first[i + 1], own = 0;
		bool windowed = tag && !tag->text && tag->number > 0 && ticks > end - at;

		err = array_reserve(&of, &slot_room, slots + 1, sizeof(*of));
		while (!err && (at < end || windowed)) {
			uint64_t time_ns = at < end ? groups.times[at] : tag->number * NS_PER_S;
			uint64_t number = at < end ? 1 : ticks - (end - groups.first[i]), next;

			if (at < end)
				at++;
			else
				windowed = false;
			time_ns = MAX(time_ns, recorded->since_ns);
			next = (time_ns - recorded->since_ns) / slot_ns;
			if (own && next <= slot) {
				counts[2 * (entries - 1) + 1] += number;
				continue;
			}
			err = array_reserve(&counts, &entry_room, entries + 1, 2 * sizeof(*counts));
			if (err)
				break;
			counts[2 * entries] = next - slot;
			counts[2 * entries++ + 1] = number;
			slot = next;
			own++;
		}
		if (!err)
			of[slots++] = own;
	}
	tick_groups_free(&groups);
	if (!err) {
		WEB_LIST(&b->w, "tick_slots", web_number, i, slots, of[i]);
		WEB_LIST(&b->w, "tick_steps", web_number, i, entries, counts[2 * i]);
		WEB_LIST(&b->w, "tick_counts", web_number, i, entries, counts[2 * i + 1]);
	}
	free(counts);
	free(of);
	return err;
}

/* When the waits were: of which sample, since when, and how long, in microseconds. */
static int print_waits(struct builder *b, const struct time_interval *recorded)
{
	const struct profile *p = b->sides[0];
	struct wait_groups groups;
	int err = wait_list_group(&p->waits, p->sample_count, &groups);

	if (err)
		return err;
	WEB_LIST(&b->w, "wait_counts", web_number, i, p->sample_count,
		 groups.first[b->order[0][i] + 1] - groups.first[b->order[0][i]]);
	web_begin_list(&b->w, "wait_steps");
	for (size_t i = 0; i < p->sample_count; i++) {
		int64_t before = 0;

		uint32_t sample = b->order[0][i];

		for (size_t at = groups.first[sample]; at < groups.first[sample + 1]; at++) {
			int64_t since =
				groups.waits[at].since_ns > recorded->since_ns
					? (groups.waits[at].since_ns - recorded->since_ns) / 1000
					: 0;

			web_number(&b->w, since - before);
			before = since;
		}
	}
	web_end_list(&b->w);
	web_begin_list(&b->w, "wait_lengths");
	for (size_t i = 0; i < p->sample_count; i++) {
		uint32_t sample = b->order[0][i];

		for (size_t at = groups.first[sample]; at < groups.first[sample + 1]; at++)
			web_number(&b->w, groups.waits[at].length_ns / 1000);
	}
	web_end_list(&b->w);
	wait_groups_free(&groups);
	return 0;
}

static int print_times(struct builder *b)
{
	const struct time_interval recorded = profile_recorded(b->sides[0]);
	uint64_t length_ns = recorded.until_ns - recorded.since_ns, slot_ns = 10 * NS_PER_MS;

	if (!recorded.since_ns || recorded.until_ns <= recorded.since_ns)
		return 0;
	while (length_ns / slot_ns >= SLOTS_MAX)
		slot_ns *= 2;
	fprintf(b->w.out, ",\n\"begin_ms\":%.3f,\n\"slot_ms\":%.3f,\n\"slots\":%" PRIu64,
		recorded.since_ns / 1e6, slot_ns / 1e6, (length_ns - 1) / slot_ns + 1);
	return print_ticks(b, &recorded, slot_ns) ?: print_waits(b, &recorded);
}

/* --- Recorded calls --- */

/*
 * Prints the calls that a profile without stacks has recorded: between which functions, how often,
 * and what was spent in them, by the values of the first profile. Where that was not recorded it is
 * an estimate, as everywhere. Returns 0 or -ENOMEM.
 */
static int print_calls_of(struct builder *b, size_t side)
{
	const struct profile *p = b->sides[side], *first = b->sides[0];
	size_t count = p->value_type_count, cost_room = 0;
	const struct callgraph_options options = {
		.fields = b->graph.options.fields,
		.positions = CALLGRAPH_LINES,
		.column_count = count,
		.unknown = row_unknown,
	};
	size_t *values = calloc(count + 1, sizeof(*values));
	uint32_t *frame_of = NULL; /* of each node of this graph: its frame in the page */
	TABLE(struct call) calls = { 0 };
	int64_t *costs = NULL; /* of each: how often, as far as it fits, and the values */
	struct callgraph_places places = { 0 };
	struct callgraph g;
	int err = callgraph_init(&g, &options) ?: callgraph_place(&g, p, &places);

	for (size_t i = 0; i < count && values; i++)
		values[i] = i;
	err = err ?: values ? callgraph_count(&g, &places, values, count, 0) : -ENOMEM;
	frame_of = err ? NULL : calloc(g.node_count + 1, sizeof(*frame_of));
	if (!frame_of)
		err = -ENOMEM;
	for (uint32_t i = 0; !err && i < places.first[p->location_count]; i++)
		frame_of[places.nodes[i]] = b->places[side].nodes[i];
	for (size_t i = 0; i < g.edges.count && !err; i++) {
		struct call call = { frame_of[g.positions.all[g.edges.all[i].from].node],
				     frame_of[g.positions.all[g.edges.all[i].to].node], 0 };
		uint64_t times;
		uint32_t id;

		if (g.edges.all[i].kind != PROFILE_CALL)
			continue;
		err = table_add(&calls, &call, sizeof(call), &id)
			      ?: array_reserve(&costs, &cost_room, calls.count,
					       (count + 1) * sizeof(*costs));
		if (err)
			break;
		times = g.edges.all[i].count;
		add_i64(&costs[id * (count + 1)], times < INT64_MAX ? (int64_t)times : INT64_MAX);
		for (size_t v = 0; v < count; v++)
			add_i64(&costs[id * (count + 1) + 1 + v], g.edge_costs[i * count + v]);
	}
	if (err)
		goto out;
	WEB_LIST(&b->w, "from", web_number, i, calls.count, calls.all[i].from);
	WEB_LIST(&b->w, "to", web_number, i, calls.count, calls.all[i].to);
	WEB_LIST(&b->w, "counts", web_number, i, calls.count, costs[i * (count + 1)]);
	fputs(",\n\"values\":[", b->w.out);
	for (size_t v = 0; v < first->value_type_count; v++) {
		size_t value = profile_find_value(p, first->value_types[v].type);

		fputs(v ? ",\n[" : "[", b->w.out);
		b->w.in_list = false;
		for (size_t i = 0; i < calls.count; i++)
			web_number(&b->w, value < count ? costs[i * (count + 1) + 1 + value] : 0);
		web_end_list(&b->w);
	}
	putc(']', b->w.out);
out:
	free(values);
	free(frame_of);
	table_free(&calls);
	free(costs);
	callgraph_places_free(&places);
	callgraph_free(&g);
	return err;
}

/* The calls of each profile that has recorded some instead of stacks. */
static int print_calls(struct builder *b)
{
	int err = 0;

	fputs(",\n\"calls\":[", b->w.out);
	for (size_t side = 0; side < b->side_count && !err; side++) {
		const struct profile *p = b->sides[side];
		bool any = false;

		for (size_t i = 0; i < p->arc_count && profile_stacks(p) == PROFILE_NO_STACKS; i++)
			any |= p->arcs[i].kind == PROFILE_CALL;
		if (any) {
			fprintf(b->w.out, "%s{\"side\":%zu", b->w.in_list ? ",\n" : "", side);
			err = print_calls_of(b, side);
			putc('}', b->w.out);
			b->w.in_list = true;
		}
	}
	putc(']', b->w.out);
	return err;
}

/* --- All --- */

static int print_all(struct builder *b)
{
	const struct callgraph_options options = {
		.fields = CALLGRAPH_FUNCTION | CALLGRAPH_IMAGE | CALLGRAPH_NO_ADDRESS,
		.unknown = row_unknown,
		.image_name = b->side_count > 1 ? row_image_of_any_run : NULL,
	};
	const struct profile *p = b->sides[0];
	uint32_t root, *paths = NULL, empty;
	size_t samples = 0;
	int err = callgraph_init(&b->graph, &options);

	for (size_t side = 0; side < b->side_count && !err; side++) {
		err = callgraph_place(&b->graph, b->sides[side], &b->places[side]);
		samples += b->sides[side]->sample_count;
	}
	b->frames = calloc(b->graph.node_count + 1, sizeof(*b->frames));
	paths = calloc(samples + 1, sizeof(*paths));
	if (!b->frames || !paths || err ||
	    table_add(&b->nodes, &((struct node){ 0, CALLGRAPH_NONE }), sizeof(struct node),
		      &root)) {
		err = -ENOMEM;
		goto out;
	}
	err = web_add_text(&b->w, "", &empty);
	for (size_t side = 0; side < b->side_count && !err; side++)
		err = note_frames(b, side) ?: note_labels(b, side);
	for (size_t i = 0; i < b->graph.node_count; i++)
		b->frames[i].inlined = b->graph.nodes[i].inlined;
	if (err)
		goto out;
	fputs("{\"version\":1", b->w.out);
	print_member(b, "title", b->o->title);
	print_member(b, "host", p->host);
	print_member(b, "event", p->event);
	fprintf(b->w.out, ",\n\"duration_s\":%.6f", p->duration_ns / 1e9);
	print_frames(b);
	err = print_samples(b, paths);
	if (err)
		goto out;
	print_labels(b);
	b->w.in_list = false;
	err = print_calls(b) ?: print_times(b);
	err = err ?: web_code_print(b->code, p, &b->places[0], b->order[0], &b->w)
		      ?: web_why_print(p, &b->w);
	WEB_LIST(&b->w, "texts", web_text, i, b->w.texts.count, b->w.texts.all[i]);
	fputs("}\n", b->w.out);
out:
	free(paths);
	return err ?: b->w.err;
}

int web_print_data(const struct profile *p, const struct profile *earlier,
		   const struct web_code *code, const struct web_options *o, FILE *out)
{
	struct builder b = { .w = { .out = out }, .o = o, .code = code, .sides = { p, earlier } };
	int err;

	b.side_count = earlier ? 2 : 1;
	err = print_all(&b);
	for (size_t side = 0; side < b.side_count; side++)
		callgraph_places_free(&b.places[side]);
	callgraph_free(&b.graph);
	for (size_t i = 0; i < b.w.texts.count; i++)
		free(b.w.texts.all[i]);
	for (size_t i = 0; i < b.dimension_count; i++)
		for (size_t side = 0; side < SIDES; side++)
			free(b.dimensions[i].texts[side]);
	for (size_t side = 0; side < SIDES; side++)
		free(b.order[side]);
	table_free(&b.w.texts);
	free(b.dimensions);
	table_free(&b.nodes);
	free(b.frames);
	return err;
}
