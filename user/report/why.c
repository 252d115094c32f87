// SPDX-License-Identifier: GPL-2.0-only
#include "report/why.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile/pc_name.h"
#include "report/json_writer.h"
#include "report/row_view.h"
#include "report/text.h"
#include "report/time_slot.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/number.h"
#include "util/order.h"
#include "util/radix_sort.h"

#define SLOW 1 /* the sum of the slowest turns */

int why_select(const struct segments *s, const char *text, bool processes,
	       struct why_threads *threads)
{
	uint64_t number = 0;

	if (text)
		number_parse(text, 1, UINT32_MAX, &number);
	if (!threads->list)
		threads->list = calloc(s->thread_count + 1, sizeof(*threads->list));
	if (!threads->list)
		return -ENOMEM;
	for (size_t i = 0; i < s->thread_count; i++) {
		const struct segment_thread *t = &s->threads[i];

		if (!text || (number ? number == (processes ? t->pid : t->tid)
				     : strcmp(processes ? t->process : t->comm, text) == 0))
			threads->list[threads->count++] = i;
	}
	return 0;
}

/* --- Text --- */

static const char *const kind_names[] = {
	[CHAIN_WHOLE] = "whole",       [CHAIN_RAN] = "on_cpu",
	[CHAIN_FUNCTION] = "function", [CHAIN_RUNNABLE] = "runnable",
	[CHAIN_OTHER] = "other_ran",   [CHAIN_UNRECORDED] = "unrecorded",
	[CHAIN_EARLIER] = "earlier",   [CHAIN_UNKNOWN] = "unknown",
};

static const char *const unknown_texts[CHAIN_UNKNOWNS] = {
	[CHAIN_NO_WAKER] = "who ended the wait",
	[CHAIN_NOT_ENDED] = "the wait had not ended",
	[CHAIN_NOT_SEEN] = "what that thread did, which was not recorded",
	[CHAIN_NOT_ALIVE] = "it had not begun, or was exiting",
	[CHAIN_LOST] = "times of waits were lost",
	[CHAIN_NO_CPU] = "which CPU it got",
	[CHAIN_CIRCLE] = "threads wait for each other in a circle",
	[CHAIN_TOO_LONG] = "more than is followed",
};

#define NAME_SIZE 64

static const char *thread_name(const struct chain *c, uint32_t thread, char name[NAME_SIZE])
{
	const struct segment_thread *t = &c->s->threads[thread];

	if (c->by_name)
		snprintf(name, NAME_SIZE, "%s", *t->comm ? t->comm : "[no name]");
	else
		snprintf(name, NAME_SIZE, "%s (%" PRIu32 ")", t->comm, t->tid);
	return name;
}

/* The name of a function, in memory of the caller's; NULL: there is no memory. */
static char *function_name(const struct profile *p, uint32_t location)
{
	const struct profile_location *l;
	const struct profile_image *image;

	if (location == PROFILE_NONE)
		return strdup("[no tick]");
	l = &p->locations[location];
	if (l->line_count)
		return strdup(p->functions[p->lines[l->first_line].function].name);
	image = profile_location_image(p, location);
	return profile_pc_name(image ? image->path : "", l->image_address);
}

static const char *place_function(const struct segments *s, uint32_t place, int i)
{
	uint64_t function = s->places[place].functions[i];

	return function == UINT64_MAX ? NULL : s->p->functions[function].name;
}

/* Where a thread slept, innermost first: ", in get < main"; or "". NULL: there is no memory. */
static char *place_text(const struct segments *s, uint32_t place)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const char *name;

	for (int i = 0; out && i < SEGMENT_PLACE_DEPTH && (name = place_function(s, place, i)); i++)
		fprintf(out, "%s%s", i ? " < " : ", in ", name);
	return out && fclose(out) == 0 ? text : NULL;
}

/* What a node is, without its label. */
static char *node_text(const struct chain *c, const struct chain_node *n)
{
	const struct segment_kind *kind;
	char name[NAME_SIZE], waker[NAME_SIZE + 32] = "", *place, *text = NULL;
	const char *peer, *before = "";

	thread_name(c, n->thread, name);
	switch (n->kind) {
	case CHAIN_FUNCTION:
		return function_name(c->s->p, n->what);
	case CHAIN_RAN:
		return asprintf(&text, "%s on CPU", name) < 0 ? NULL : text;
	case CHAIN_RUNNABLE:
		return asprintf(&text, "%s runnable (no free CPU)", name) < 0 ? NULL : text;
	case CHAIN_OTHER:
		return asprintf(&text, "meanwhile on that CPU: %s", name) < 0 ? NULL : text;
	case CHAIN_UNRECORDED:
		return strdup("meanwhile on that CPU: nothing that was recorded");
	case CHAIN_EARLIER:
		return asprintf(&text, "%s busy with something else before", name) < 0 ? NULL
										       : text;
	case CHAIN_UNKNOWN:
		return asprintf(&text, "unknown: %s", unknown_texts[n->what]) < 0 ? NULL : text;
	case CHAIN_WHOLE:
	case CHAIN_SLEPT:
		break;
	}
	kind = &c->s->kinds[n->what];
	if (kind->waker && kind->waker_tid && !c->by_name)
		snprintf(waker, sizeof(waker), ", woken by %s (%" PRIu32 ")", kind->waker,
			 kind->waker_tid);
	else if (kind->waker)
		snprintf(waker, sizeof(waker), ", woken by %s", kind->waker);
	peer = chain_peer(c, n->what);
	if (peer)
		before = strncmp(kind->reason, "disk", kind->reason_size) == 0 ? " " : ", held by ";
	/* Who has a lock mostly ends the wait for it. */
	if (peer && *waker && strcmp(peer, waker + strlen(", woken by ")) == 0)
		*waker = '\0';
	place = place_text(c->s, kind->place);
	if (place &&
	    asprintf(&text, "%s %s: %.*s%s%s%s%s", name, thread_state_names[kind->state],
		     (int)kind->reason_size, kind->reason, before, peer ?: "", waker, place) < 0)
		text = NULL;
	free(place);
	return text;
}

char *why_node_text(const struct chain *c, const struct chain_node *n)
{
	char *text = node_text(c, n), *all = NULL;

	if (!text || !n->label)
		return text;
	if (asprintf(&all, "%s; %s: %s", text, c->s->label, n->label) < 0)
		all = NULL;
	free(text);
	return all;
}

/* --- What if --- */

/* Sets *within to which samples have the function of --without in their stacks; NULL: none. */
static int find_within(const struct profile *p, const struct why_options *o, bool **within)
{
	bool *matches = o->without ? calloc(p->location_count + 1, 1) : NULL;

	*within = o->without ? calloc(p->sample_count + 1, 1) : NULL;
	for (size_t i = 0; i < p->location_count && matches && *within; i++) {
		const struct profile_location *l = &p->locations[i];

		for (uint32_t k = 0; k < l->line_count; k++)
			matches[i] |= row_function_is(
				&p->functions[p->lines[l->first_line + k].function], o->without);
	}
	for (size_t i = 0; i < p->sample_count && matches && *within; i++)
		for (uint32_t k = 0; k < p->samples[i].depth; k++)
			(*within)[i] |= matches[p->frames[p->samples[i].first_frame + k]];
	free(matches);
	return o->without && !(matches && *within) ? -ENOMEM : 0;
}

/* Whether all of a part is what --without names: also what others did meanwhile. */
static bool is_named(const struct chain *c, const struct chain_node *n, const char *what)
{
	bool is_thread = strcmp(c->s->threads[n->thread].comm, what) == 0;
	const struct segment_kind *kind;

	switch (n->kind) {
	case CHAIN_RAN:
	case CHAIN_OTHER:
		return is_thread;
	case CHAIN_RUNNABLE:
		return is_thread || strcmp(what, PROFILE_DELAY_TYPE) == 0 ||
		       strcmp(what, thread_state_names[THREAD_RUNNABLE]) == 0;
	case CHAIN_SLEPT:
		kind = &c->s->kinds[n->what];
		return is_thread || (kind->reason_size == strlen(what) &&
				     memcmp(kind->reason, what, kind->reason_size) == 0);
	default:
		return false;
	}
}

/*
 * How much of a node is what --without names. Of what ran, the part of the ticks that were within
 * the function; of a wait, the part that was, and of the rest what others did meanwhile.
 */
static double named_ns(const struct chain *c, uint32_t number, const char *what, int sum)
{
	const struct chain_node *n = &c->nodes[number];
	double ns = (double)n->ns[sum], within_ns = (double)n->within_ns[sum], below = 0;

	if (!n->ns[sum] || is_named(c, n, what))
		return ns;
	if (n->within_ticks[sum])
		return ns * (double)n->within_ticks[sum] / (double)n->ticks[sum];
	for (uint32_t i = n->first_child; i != CHAIN_NONE; i = c->nodes[i].next)
		below += named_ns(c, i, what, sum);
	return within_ns + below * (ns - within_ns) / ns;
}

static uint64_t without_ns(const struct chain *c, const char *what, int sum)
{
	return (uint64_t)(named_ns(c, 0, what, sum) + 0.5);
}

struct printer {
	const struct chain *c;
	const struct why_options *o;
	FILE *out;
	int sums;		  /* 1, or 2: that of the slowest turns first */
	double units[CHAIN_SUMS]; /* numbers are divided by it: turns */
	int err;
};

static void print_line(struct printer *p, const uint64_t ns[CHAIN_SUMS], unsigned int depth,
		       char *text)
{
	const uint64_t *whole = p->c->nodes[0].ns;
	char number[TEXT_PERCENT_SIZE], percent[TEXT_PERCENT_SIZE];
	size_t before = 0;

	for (int i = p->sums - 1; i >= 0; i--) {
		text_percent(percent, (double)ns[i], (double)whole[i]);
		before += fprintf(p->out, "%11s  %6s  ",
				  text_number(number, (double)ns[i] / 1e6 / p->units[i], 3, false),
				  percent);
	}
	before += fprintf(p->out, "%*s", (int)(2 * depth), "");
	if (text && p->o->width)
		text_shorten_line(text, p->o->width > before + 20 ? p->o->width - before : 20);
	fprintf(p->out, "%s\n", text ?: "");
	p->err = text ? p->err : -ENOMEM;
}

static void print_tree(struct printer *p, uint32_t number, unsigned int depth)
{
	const struct chain_node *nodes = p->c->nodes;
	uint64_t rest[CHAIN_SUMS] = { 0 };
	size_t rest_count = 0;
	char *text, *visible;

	for (uint32_t i = nodes[number].first_child; i != CHAIN_NONE; i = nodes[i].next) {
		bool small = true;

		for (int k = 0; k < p->sums; k++)
			small &= (double)nodes[i].ns[k] * 100 <
				 (double)nodes[0].ns[k] * p->o->percent;
		if (small) {
			rest_count++;
			for (int k = 0; k < CHAIN_SUMS; k++)
				add_u64(&rest[k], nodes[i].ns[k]);
			continue;
		}
		text = why_node_text(p->c, &nodes[i]);
		visible = text ? text_visible(text) : NULL;
		print_line(p, nodes[i].ns, depth, visible);
		free(text);
		free(visible);
		print_tree(p, i, depth + 1);
	}
	/* A line for all parts would say what their whole's says. */
	if (rest_count && (!number || rest_count < nodes[number].children) &&
	    (rest[0] || rest[SLOW])) {
		char more[64];

		snprintf(more, sizeof(more), "... %zu more", rest_count);
		print_line(p, rest, depth, more);
	}
}

static void print_without(struct printer *p)
{
	const struct chain_node *whole = &p->c->nodes[0];
	uint64_t ns[CHAIN_SUMS];
	char text[128], *visible;

	if (!p->o->without)
		return;
	for (int k = 0; k < CHAIN_SUMS; k++)
		ns[k] = without_ns(p->c, p->o->without, k);
	snprintf(text, sizeof(text), "without %s, at best%s", p->o->without,
		 ns[0] ? "" : ": no part is that");
	for (int k = 0; k < CHAIN_SUMS; k++)
		ns[k] = whole->ns[k] > ns[k] ? whole->ns[k] - ns[k] : 0;
	visible = text_visible(text);
	print_line(p, ns, 0, visible);
	free(visible);
}

/* --- JSON --- */

static struct json_object *place_list(const struct segments *s, uint32_t place)
{
	struct json_object *list = json_object_new_array();
	const char *name;

	for (int i = 0; i < SEGMENT_PLACE_DEPTH && (name = place_function(s, place, i)); i++)
		json_append(&list, json_text(name));
	return list;
}

static struct json_object *node_object(const struct chain *c, const struct chain_node *n,
				       unsigned int depth, int sums)
{
	const struct segment_thread *t = &c->s->threads[n->thread];
	struct json_object *o = json_object_new_object();

	json_add(&o, "depth", json_object_new_uint64(depth));
	if (n->kind == CHAIN_SLEPT) {
		const struct segment_kind *kind = &c->s->kinds[n->what];
		char reason[THREAD_STATE_SIZE];

		snprintf(reason, sizeof(reason), "%.*s", (int)kind->reason_size, kind->reason);
		json_add(&o, "kind", json_text(thread_state_names[kind->state]));
		json_add(&o, "reason", json_text(reason));
		json_add_text(&o, "peer", chain_peer(c, n->what));
		json_add_text(&o, "waker", kind->waker);
		if (!c->by_name)
			json_add_number(&o, "waker_tid", kind->waker_tid);
		json_add(&o, "place", place_list(c->s, kind->place));
	} else {
		json_add(&o, "kind", json_text(kind_names[n->kind]));
	}
	json_add_text(&o, "label", n->label);
	json_add(&o, "comm", json_text(t->comm));
	if (!c->by_name) {
		json_add_number(&o, "pid", t->pid);
		json_add_number(&o, "tid", t->tid);
	}
	if (n->kind == CHAIN_FUNCTION) {
		char *name = function_name(c->s->p, n->what);

		json_add(&o, "function", name ? json_text(name) : NULL);
		free(name);
	} else if (n->kind == CHAIN_UNKNOWN) {
		json_add(&o, "why", json_text(unknown_texts[n->what]));
	}
	json_add(&o, "ns", json_object_new_uint64(n->ns[0]));
	if (sums > 1)
		json_add(&o, "slow_ns", json_object_new_uint64(n->ns[SLOW]));
	return o;
}

/* Appends the nodes below one to a list: readers limit how deep JSON may be. */
static void append_tree(const struct chain *c, uint32_t number, unsigned int depth, int sums,
			struct json_object **list)
{
	for (uint32_t i = c->nodes[number].first_child; i != CHAIN_NONE && *list;
	     i = c->nodes[i].next) {
		json_append(list, node_object(c, &c->nodes[i], depth, sums));
		append_tree(c, i, depth + 1, sums, list);
	}
}

/* The parts of a whole: all nodes but the first. */
static struct json_object *tree_list(const struct chain *c, int sums)
{
	struct json_object *list = json_object_new_array();

	append_tree(c, 0, 0, sums, &list);
	return list;
}

static struct json_object *when_object(const struct segment_thread *t,
				       const struct time_interval *interval)
{
	struct json_object *o = json_object_new_object();
	char text[TABLE_CELL_SIZE];

	json_add(&o, "comm", json_text(t->comm));
	json_add_number(&o, "pid", t->pid);
	json_add_number(&o, "tid", t->tid);
	json_add(&o, "time", json_text(time_slot_text(interval->since_ns, NS_PER_MS, true, text)));
	json_add(&o, "since_ns", json_object_new_uint64(interval->since_ns));
	json_add(&o, "ns", json_object_new_uint64(interval->until_ns - interval->since_ns));
	return o;
}

/* --- An interval --- */

struct busy {
	uint32_t thread;
	uint64_t ns;
};

ORDER(busiest_first, struct busy, MOST(ns) ?: LEAST(thread))

/* For how long a thread was there in an interval, and not idle. */
static uint64_t busy_ns(const struct segments *s, uint32_t thread,
			const struct time_interval *interval)
{
	const struct segment_thread *t = &s->threads[thread];
	uint64_t since_ns = interval->since_ns, until_ns = interval->until_ns, ns;

	since_ns = t->life.since_ns > since_ns ? t->life.since_ns : since_ns;
	until_ns = t->life.until_ns < until_ns ? t->life.until_ns : until_ns;
	ns = since_ns < until_ns ? until_ns - since_ns : 0;
	for (size_t i = segments_after(s, thread, since_ns);
	     i < t->first + t->count && s->all[i].since_ns < until_ns; i++) {
		uint64_t from = s->all[i].since_ns > since_ns ? s->all[i].since_ns : since_ns;
		uint64_t to = s->all[i].until_ns < until_ns ? s->all[i].until_ns : until_ns;

		if (segment_kind(s, &s->all[i])->state == THREAD_IDLE)
			ns -= to - from;
	}
	return ns;
}

static int explain_thread(const struct segments *s, uint32_t thread,
			  const struct time_interval *interval, const struct why_options *o,
			  const bool *within, struct json_writer *json, FILE *out)
{
	struct printer p = { .o = o, .out = out, .sums = 1, .units = { 1, 1 } };
	char name[NAME_SIZE], time[TABLE_CELL_SIZE], *line = NULL, *visible;
	struct chain c;
	int err = chain_begin(&c, s, false);

	c.within = within;
	err = err ?: chain_add(&c, thread, interval) ?: chain_end(&c, 0);
	p.c = &c;
	if (!err && json) {
		struct json_object *object = when_object(&s->threads[thread], interval);

		json_add(&object, "tree", tree_list(&c, 1));
		if (o->without)
			json_add(&object, "without_ns",
				 json_object_new_uint64(without_ns(&c, o->without, 0)));
		json_element(json, object);
	} else if (!err) {
		time_slot_text(interval->since_ns, NS_PER_MS, false, time);
		if (asprintf(&line, "%s, from %s", thread_name(&c, thread, name), time) < 0)
			line = NULL;
		visible = line ? text_visible(line) : NULL;
		fprintf(out, "%11s  %6s\n", "ms", "%");
		print_line(&p, c.nodes[0].ns, 0, visible);
		free(line);
		free(visible);
		print_tree(&p, 0, 1);
		print_without(&p);
		err = p.err;
	}
	chain_free(&c);
	return err;
}

int why_print_interval(const struct segments *s, const struct why_threads *threads,
		       const struct time_interval *interval, const struct why_options *o, FILE *out)
{
	struct busy *busy = calloc(threads->count + 1, sizeof(*busy));
	struct json_writer json;
	bool *within;
	int err = find_within(s->p, o, &within);

	err = busy ? err : -ENOMEM;
	for (size_t i = 0; i < threads->count && !err; i++)
		busy[i] = (struct busy){ threads->list[i], busy_ns(s, threads->list[i], interval) };
	if (!err)
		qsort(busy, threads->count, sizeof(*busy), busiest_first);
	if (o->json) {
		json_begin(&json, out);
		json_begin_list(&json, "threads");
	}
	for (size_t i = 0; i < threads->count && !err && (!i || busy[i].ns); i++) {
		if (i && !o->json)
			fprintf(out, "\n");
		err = explain_thread(s, busy[i].thread, interval, o, within, o->json ? &json : NULL,
				     out);
	}
	if (o->json) {
		json_end_list(&json);
		err = json_end(&json) ?: err;
	}
	free(busy);
	free(within);
	return err;
}

/* --- A profile --- */

/* Each node is a frame; a stack has what a node took without its children. */
static int add_stacks(struct profile *p, const struct chain *c, uint32_t labels)
{
	uint32_t *frames = calloc(2 * c->count, sizeof(*frames)), *locations = frames + c->count;
	int64_t *own_ns = calloc(c->count, sizeof(*own_ns));
	int err = frames && own_ns ? 0 : -ENOMEM;

	for (size_t i = 1; i < c->count && !err; i++) {
		char *text = why_node_text(c, &c->nodes[i]);

		err = text ? profile_add_named_location(p, text, PROFILE_NONE, &locations[i])
			   : -ENOMEM;
		free(text);
		own_ns[i] += (int64_t)c->nodes[i].ns[0];
		own_ns[c->nodes[i].parent] -= (int64_t)c->nodes[i].ns[0];
	}
	for (size_t i = 1; i < c->count && !err; i++) {
		uint32_t depth = 0;

		for (uint32_t k = i; k; k = c->nodes[k].parent)
			frames[depth++] = locations[k];
		if (own_ns[i] > 0)
			err = profile_add_sample(p, frames, depth, labels, &own_ns[i]);
	}
	free(frames);
	free(own_ns);
	return err;
}

int why_sum(const struct segments *s, const struct why_threads *threads,
	    const struct time_interval *interval, struct profile **out)
{
	const struct profile_labels none = { .comm = "" };
	struct profile *p = profile_new();
	struct chain c;
	uint32_t labels;
	int err = chain_begin(&c, s, true);

	err = err ?: (p ? 0 : -ENOMEM);
	for (size_t i = 0; i < threads->count && !err; i++)
		err = chain_add_blocked(&c, threads->list[i], interval);
	err = err ?: chain_end(&c, 0);
	err = err ?: profile_add_value_type(p, "blocked", "nanoseconds");
	err = err ?: profile_add_labels(p, &none, &labels);
	err = err ?: add_stacks(p, &c, labels);
	if (!err) {
		p->time_ns = interval->since_ns;
		p->duration_ns = interval->until_ns - interval->since_ns;
		err = profile_string(p, s->p->host, &p->host);
	}
	chain_free(&c);
	*out = p;
	return err;
}

/* --- Turns --- */

static uint64_t turn_ns(const struct why_turn *turn)
{
	return turn->when.until_ns - turn->when.since_ns;
}

ORDER(longest_first, struct why_turn,
      COMPARE(turn_ns(b), turn_ns(a)) ?: LEAST(when.since_ns) ?: LEAST(thread))

static uint64_t turn_thread(const void *turn)
{
	return ((const struct why_turn *)turn)->thread;
}

static uint64_t turn_since(const void *turn)
{
	return ((const struct why_turn *)turn)->when.since_ns;
}

static uint64_t turn_shortness(const void *turn)
{
	return UINT64_MAX - turn_ns(turn);
}

/* Bound: files: labels of one turn that are compared; then: the time of others does not count. */
#define TURN_LABELS 16

const char *why_label(const struct segments *s, uint32_t thread, const struct time_interval *when)
{
	struct time_of_label {
		const char *label;
		uint64_t ns;
	} all[TURN_LABELS], *most = NULL;
	const struct segment_thread *t = &s->threads[thread];
	uint64_t at_ns = when->since_ns;
	size_t count = 0, k;

	for (size_t i = segments_after(s, thread, at_ns); s->label && at_ns < when->until_ns; i++) {
		bool waits = i < t->first + t->count && s->all[i].since_ns < when->until_ns;
		const struct time_interval run = { at_ns,
						   waits ? s->all[i].since_ns : when->until_ns };
		const struct time_of_label parts[] = {
			{ segments_run_label(s, thread, &run),
			  run.until_ns > at_ns ? run.until_ns - at_ns : 0 },
			{ waits ? segment_kind(s, &s->all[i])->label : NULL,
			  waits ? s->all[i].until_ns - s->all[i].since_ns : 0 },
		};

		for (size_t part = 0; part < 2; part++) {
			for (k = 0; k < count && all[k].label != parts[part].label; k++)
				;
			if (!parts[part].label || k == TURN_LABELS)
				continue;
			if (k == count)
				all[count++] = (struct time_of_label){ parts[part].label, 0 };
			all[k].ns += parts[part].ns;
		}
		at_ns = waits ? s->all[i].until_ns : when->until_ns;
	}
	for (k = 0; k < count; k++)
		if (!most || all[k].ns > most->ns)
			most = &all[k];
	return most ? most->label : NULL;
}

/* Finds the labels of turns, and keeps those that o->pattern matches. */
static void label_turns(const struct segments *s, const struct why_options *o,
			struct why_turn *turns, size_t *count)
{
	size_t kept = 0;

	for (size_t i = 0; i < *count; i++) {
		const char *label = turns[i].label = why_label(s, turns[i].thread, &turns[i].when);

		if (!o->pattern || (label && (strcmp(label, o->pattern) == 0 ||
					      fnmatch(o->pattern, label, 0) == 0)))
			turns[kept++] = turns[i];
	}
	*count = kept;
}

/* Whether a sample is of calls of this function. */
static bool is_call_of(const struct profile *p, uint32_t sample, const char *function)
{
	const struct profile_sample *calls = &p->samples[sample];
	const struct profile_location *l =
		calls->depth ? &p->locations[p->frames[calls->first_frame]] : NULL;

	return l && l->line_count &&
	       row_function_is(&p->functions[p->lines[l->first_line].function], function);
}

/* Lists the calls of a function by some threads. Returns 0 or -ENOMEM. */
static int list_calls(const struct segments *s, const struct why_threads *threads,
		      const char *function, struct why_turn **turns, size_t *count)
{
	const struct wait_list *calls = &s->p->calls;
	enum {
		UNSEEN,
		NO,
		YES
	} *are = calloc(s->p->sample_count + 1, sizeof(*are));
	bool *wanted = calloc(s->thread_count + 1, sizeof(*wanted));
	size_t room = 0;
	int err = are && wanted ? 0 : -ENOMEM;

	for (size_t i = 0; i < threads->count && !err; i++)
		wanted[threads->list[i]] = true;
	for (size_t i = 0; i < calls->count && !err; i++) {
		const struct timed_wait *call = &calls->waits[i];
		uint32_t thread = s->kinds[call->sample].thread;

		if (are[call->sample] == UNSEEN)
			are[call->sample] = is_call_of(s->p, call->sample, function) ? YES : NO;
		if (are[call->sample] == NO || !wanted[thread])
			continue;
		err = array_add(
			*turns, *count, room,
			(struct why_turn){ { call->since_ns, call->since_ns + call->length_ns },
					   thread,
					   NULL });
	}
	free(are);
	free(wanted);
	return err;
}

int why_list_turns(const struct segments *s, const struct why_threads *threads,
		   struct why_turn **turns, size_t *count)
{
	size_t room = 0;

	for (size_t i = 0; i < threads->count; i++) {
		const struct segment_thread *t = &s->threads[threads->list[i]];
		uint64_t since_ns = t->began ? t->life.since_ns : 0;

		for (size_t k = t->first; k < t->first + t->count + t->ended; k++) {
			bool is_end = k == t->first + t->count;
			uint64_t until_ns = is_end ? t->life.until_ns : s->all[k].since_ns;

			if (!is_end && segment_kind(s, &s->all[k])->state != THREAD_IDLE)
				continue;
			if (since_ns && since_ns < until_ns) {
				if (array_add(*turns, *count, room,
					      (struct why_turn){ { since_ns, until_ns },
								 threads->list[i],
								 NULL }))
					return -ENOMEM;
			}
			since_ns = is_end ? 0 : s->all[k].until_ns;
		}
	}
	return 0;
}

const struct why_quantile why_quantiles[WHY_QUANTILES] = {
	{ "median", "median_ns", 500 }, { "90 %", "p90_ns", 900 },     { "99 %", "p99_ns", 990 },
	{ "99.9 %", "p999_ns", 999 },	{ "longest", "max_ns", 1000 },
};

size_t why_quantile(size_t count, int quantile)
{
	return count - (count * why_quantiles[quantile].per_mille + 999) / 1000;
}

/* Turns that are printed together: all, or those with one label. */
struct turn_group {
	const struct why_turn *turns; /* by thread and time */
	struct why_turn *sorted;      /* the longest first */
	size_t count, slow;	      /* slow: of which the first sum is */
	uint64_t ns;
	const char *label;
	struct chain chain;
};

/* All that is printed: all groups together follow no more than one chain may. */
struct turns {
	const struct segments *s;
	const bool *within;
	uint64_t steps; /* so far */
};

static const char *group_name(const struct turn_group *g)
{
	return g->label ?: "[none]";
}

/* Returns 0 or -ENOMEM; free_group() in any case. */
static int make_group(struct turns *all, struct turn_group *g)
{
	struct chain *c = &g->chain;
	int err = chain_begin(c, all->s, true);

	c->within = all->within;
	c->steps = all->steps;
	g->sorted = malloc((g->count + 1) * sizeof(*g->sorted));
	err = g->sorted ? err : -ENOMEM;
	if (!err && g->count) {
		memcpy(g->sorted, g->turns, g->count * sizeof(*g->turns));
		/* As longest_first(). */
		err = radix_sort(g->sorted, g->count, sizeof(*g->sorted), turn_thread)
			      ?: radix_sort(g->sorted, g->count, sizeof(*g->sorted), turn_since)
			      ?: radix_sort(g->sorted, g->count, sizeof(*g->sorted),
					    turn_shortness);
	}
	g->slow = g->count < 100 ? g->count > 0 : g->count / 100;
	/* The slowest first, in case it is too much; and in the order of time, as it is in memory.
	 */
	for (c->sums = 1U << 0 | 1U << SLOW; c->sums && !err; c->sums = c->sums >> SLOW)
		for (size_t i = 0; i < g->count && !err; i++)
			if ((longest_first(&g->turns[i], &g->sorted[g->slow - 1]) <= 0) ==
			    (c->sums > 1))
				err = chain_add(c, g->turns[i].thread, &g->turns[i].when);
	all->steps = c->steps;
	return err ?: chain_end(c, SLOW);
}

static void free_group(struct turn_group *g)
{
	chain_free(&g->chain);
	free(g->sorted);
	g->sorted = NULL;
}

ORDER(by_label, struct why_turn,
      COMPARE((uintptr_t)a->label, (uintptr_t)b->label) ?: LEAST(thread) ?: LEAST(when.since_ns))

ORDER(most_time_first, struct turn_group, MOST(ns) ?: strcmp(group_name(a), group_name(b)))

/* Lists turns by label, or all as one group; the caller free()s *groups. */
static int group_turns(const struct why_options *o, struct why_turn *turns, size_t count,
		       struct turn_group **groups, size_t *group_count)
{
	size_t room = 0;

	*groups = NULL;
	*group_count = 0;
	if (o->by_label && count)
		qsort(turns, count, sizeof(*turns), by_label);
	for (size_t i = 0; i < count || !*group_count; i++) {
		bool is_first = !i || (o->by_label && turns[i].label != turns[i - 1].label);

		if (is_first &&
		    array_add(*groups, *group_count, room,
			      (struct turn_group){
				      .turns = turns + i,
				      .label = o->by_label && count ? turns[i].label : NULL,
			      }))
			return -ENOMEM;
		if (i < count) {
			(*groups)[*group_count - 1].count++;
			add_u64(&(*groups)[*group_count - 1].ns, turn_ns(&turns[i]));
		}
	}
	qsort(*groups, *group_count, sizeof(**groups), most_time_first);
	return 0;
}

static void add_quantiles(struct json_object **o, const struct turn_group *g)
{
	for (int i = 0; i < WHY_QUANTILES && g->count; i++)
		json_add(o, why_quantiles[i].key,
			 json_object_new_uint64(turn_ns(&g->sorted[why_quantile(g->count, i)])));
}

/* What of all turns are members, of those with one label an object. */
static struct json_object *group_object(const struct turn_group *g, const struct why_options *o)
{
	const struct chain *c = &g->chain;
	struct json_object *object = json_object_new_object(), *list = json_object_new_array();
	size_t limit = o->limit && o->limit < g->count ? o->limit : g->count;

	if (o->by_label)
		json_add_text(&object, "label", g->label);
	json_add(&object, "turns", json_object_new_uint64(g->count));
	json_add(&object, "slow_turns", json_object_new_uint64(g->slow));
	json_add(&object, "turns_ns", json_object_new_uint64(c->nodes[0].ns[0]));
	json_add(&object, "slow_turns_ns", json_object_new_uint64(c->nodes[0].ns[SLOW]));
	add_quantiles(&object, g);
	for (size_t i = 0; i < limit; i++) {
		struct json_object *turn =
			when_object(&c->s->threads[g->sorted[i].thread], &g->sorted[i].when);

		json_add_text(&turn, "label", g->sorted[i].label);
		json_append(&list, turn);
	}
	json_add(&object, "slowest", list);
	json_add(&object, "tree", tree_list(c, 2));
	if (o->without) {
		json_add(&object, "without_ns",
			 json_object_new_uint64(without_ns(c, o->without, 0)));
		json_add(&object, "slow_without_ns",
			 json_object_new_uint64(without_ns(c, o->without, SLOW)));
	}
	return object;
}

static int print_turns_json(struct turns *all, struct turn_group *groups, size_t count,
			    const struct why_options *o, FILE *out)
{
	struct json_writer w;
	int err = 0;

	json_begin(&w, out);
	if (o->span)
		json_member(&w, "span", json_text(o->span));
	if (all->s->label)
		json_member(&w, "by", json_text(all->s->label));
	if (o->by_label)
		json_begin_list(&w, "groups");
	for (size_t i = 0; i < count && !err; i++) {
		struct json_object *object;

		err = make_group(all, &groups[i]);
		object = err ? NULL : group_object(&groups[i], o);
		if (object && o->by_label) {
			json_element(&w, object);
		} else if (object) {
			struct json_object_iterator at = json_object_iter_begin(object);
			struct json_object_iterator end = json_object_iter_end(object);

			for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at))
				json_member(&w, json_object_iter_peek_name(&at),
					    json_object_get(json_object_iter_peek_value(&at)));
			json_object_put(object);
		}
		free_group(&groups[i]);
	}
	if (o->by_label)
		json_end_list(&w);
	return json_end(&w) ?: err;
}

static void print_quantiles(const struct turn_group *g, const struct why_options *o, FILE *out)
{
	char number[TEXT_PERCENT_SIZE];

	fprintf(out, "%zu %s%s", g->count, o->span ? "call" : "turn", g->count == 1 ? "" : "s");
	if (o->span)
		text_printf(out, " of %s", o->span);
	for (int i = 0; i < WHY_QUANTILES; i++)
		fprintf(out, "%s%s %s ms", i ? ", " : ": ", why_quantiles[i].name,
			text_number(number,
				    (double)turn_ns(&g->sorted[why_quantile(g->count, i)]) / 1e6, 3,
				    false));
	fprintf(out, "\n");
}

/* Prints a label at the end of a line of which `before` columns are in use. */
static int print_label(const char *label, size_t before, unsigned int width, FILE *out)
{
	char *visible = text_visible(label);

	if (!visible)
		return -ENOMEM;
	if (width)
		text_shorten_line(visible, width > before + 20 ? width - before : 20);
	fprintf(out, "%s\n", visible);
	free(visible);
	return 0;
}

static int print_slowest(const struct turn_group *g, const struct why_options *o, FILE *out)
{
	const struct segments *s = g->chain.s;
	size_t limit = o->limit && o->limit < g->count ? o->limit : g->count;
	char number[TEXT_PERCENT_SIZE], time[TABLE_CELL_SIZE], name[NAME_SIZE];
	int err = 0;

	fprintf(out, "\n%11s  %-27s  thread%s%s\n", "ms", "from", s->label ? ", " : "",
		s->label ?: "");
	for (size_t i = 0; i < limit && !err; i++) {
		const struct segment_thread *t = &s->threads[g->sorted[i].thread];
		size_t before = 42;

		snprintf(name, sizeof(name), "%s (%" PRIu32 ")", t->comm, t->tid);
		time_slot_text(g->sorted[i].when.since_ns, NS_PER_MS, false, time);
		fprintf(out, "%11s  %-27s  ",
			text_number(number, (double)turn_ns(&g->sorted[i]) / 1e6, 3, false), time);
		text_print(name, out);
		if (g->sorted[i].label)
			before += strlen(name) + fprintf(out, ", ");
		err = print_label(g->sorted[i].label ?: "", before, o->width, out);
	}
	return err;
}

/* Prints of what the slowest turns consist beside all. */
static int print_causes(const struct turn_group *g, const struct why_options *o, FILE *out)
{
	struct printer p = { .c = &g->chain,
			     .o = o,
			     .out = out,
			     .sums = 2,
			     .units = { (double)g->count, (double)g->slow } };
	char title[64];

	fprintf(out, "\n%11s  %6s  %11s  %6s\n%11s  %6s  %11s  %6s\n", "slowest", "1 %",
		o->span ? "all calls" : "all turns", "", "ms", "%", "ms", "%");
	snprintf(title, sizeof(title), "a %s, on average", o->span ? "call" : "turn");
	print_line(&p, g->chain.nodes[0].ns, 0, title);
	print_tree(&p, 0, 1);
	print_without(&p);
	return p.err;
}

/* Prints a table of labels, then the causes of each. */
static int print_groups(struct turns *all, struct turn_group *groups, size_t count,
			const struct why_options *o, FILE *out)
{
	size_t shown = o->limit && o->limit < count ? o->limit : count;
	char number[3][TEXT_PERCENT_SIZE];
	int err = 0;

	fprintf(out, "%11s  %8s  %11s  %11s  %s\n", "total ms", o->span ? "calls" : "turns",
		"median ms", "longest ms", all->s->label ?: "");
	for (size_t i = 0; i < shown && !err; i++) {
		struct turn_group *g = &groups[i];
		uint64_t median_ns, longest_ns;

		err = make_group(all, g);
		if (err)
			break;
		median_ns = turn_ns(&g->sorted[why_quantile(g->count, 0)]);
		longest_ns = turn_ns(&g->sorted[0]);
		fprintf(out, "%11s  %8zu  %11s  %11s  ",
			text_number(number[0], (double)g->ns / 1e6, 3, false), g->count,
			text_number(number[1], (double)median_ns / 1e6, 3, false),
			text_number(number[2], (double)longest_ns / 1e6, 3, false));
		err = print_label(group_name(g), 49, o->width, out);
	}
	if (!err && count > shown)
		fprintf(out, "... %zu more\n", count - shown);
	for (size_t i = 0; i < shown && !err; i++) {
		fprintf(out, "\n");
		err = print_label(group_name(&groups[i]), 0, o->width, out);
		if (err)
			break;
		print_quantiles(&groups[i], o, out);
		err = print_causes(&groups[i], o, out);
	}
	for (size_t i = 0; i < shown; i++)
		free_group(&groups[i]);
	return err;
}

int why_print_turns(const struct segments *s, const struct why_threads *threads,
		    const struct why_options *o, size_t *count, FILE *out)
{
	struct turn_group *groups = NULL;
	struct why_turn *turns = NULL;
	struct turns all = { .s = s };
	size_t group_count = 0;
	bool *within = NULL;
	int err;

	*count = 0;
	err = o->span ? list_calls(s, threads, o->span, &turns, count)
		      : why_list_turns(s, threads, &turns, count);
	err = err ?: find_within(s->p, o, &within);
	all.within = within;
	if (!err && (s->label || o->pattern))
		label_turns(s, o, turns, count);
	err = err ?: group_turns(o, turns, *count, &groups, &group_count);
	if (!err && o->json) {
		err = print_turns_json(&all, groups, group_count, o, out);
	} else if (!err && *count && o->by_label) {
		err = print_groups(&all, groups, group_count, o, out);
	} else if (!err && *count) {
		err = make_group(&all, groups);
		if (!err) {
			print_quantiles(groups, o, out);
			err = print_slowest(groups, o, out) ?: print_causes(groups, o, out);
		}
		free_group(groups);
	}
	free(groups);
	free(within);
	free(turns);
	return err;
}
