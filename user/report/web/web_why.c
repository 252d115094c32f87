// SPDX-License-Identifier: GPL-2.0-only
#include "report/web/web.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile/tags.h"
#include "report/why.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/order.h"
#include "util/sum.h"
#include "util/table.h"

/*
 * Bound: files: turns, and waits, whose chains are in a page; then: the longest ones of each
 * process are; seen: in a note of the page.
 */
#define WEB_MOMENTS_MAX 1000

/*
 * Bound: files: labels of turns of a process; then: those whose turns took most are in the page;
 * seen: in their table.
 */
#define WEB_TURN_LABELS_MAX 100

/* Bound: files: parts of all chains of a page; then: further ones are not in it; seen: as above. */
#define WEB_WHY_NODES_MAX 200000

/* Parts with less of the whole are one: in a tree as profiltool why does, in a picture a pixel. */
#define LEAST_PERCENT	  1
#define LEAST_SUM_PERCENT 0.1

/* A turn or a wait, whose chain is in the page. */
struct moment {
	struct time_interval when;
	uint32_t thread;
	uint32_t rank; /* how many of its process are longer */
};

enum moment_kind {
	TURNS,
	WAITS,
	MOMENT_KINDS
};

/* The turns of a process with one label. */
struct turn_label {
	const char *label; /* NULL: none */
	uint64_t count, ns, longest_ns;
};

/* All processes of one name. */
struct process {
	struct why_threads threads; /* a part of builder->threads */
	size_t counts[MOMENT_KINDS];
	TABLE(struct turn_label) labels;   /* those that took most first */
	uint64_t quantiles[WHY_QUANTILES]; /* of its turns */
	uint64_t blocked_ns;		   /* all its threads */
};

/* How parts are coloured: by enum thread_state, or one of these, as in the page's scripts. */
enum part_kind {
	PART_UNKNOWN = THREAD_STATES,
	PART_OTHER,
};

/* A part of a chain. What is below it follows it, with a greater depth. */
struct part {
	uint32_t depth, text, kind, thread;
	uint64_t ns;
};

struct builder {
	const struct segments *s;
	struct web_writer *w;
	uint32_t *threads; /* by their processes */
	struct process *processes;
	size_t process_count, process_room;
	struct moments {
		struct moment *list;
		size_t count, room;
	} moments[MOMENT_KINDS];
	struct part *parts;
	size_t part_count, part_room;
};

/* --- Which moments --- */

static uint64_t length_ns(const struct time_interval *when)
{
	return when->until_ns - when->since_ns;
}

ORDER(longest_first, struct moment,
      compare_u64(length_ns(&b->when), length_ns(&a->when)) ?: LEAST(when.since_ns)
                                                            ?: LEAST(thread))

/* The longest one of each process, then the second of each, and so on. */
ORDER(by_rank, struct moment, LEAST(rank) ?: longest_first(a, b))

static int add_moment(struct moments *m, const struct time_interval *when, uint32_t thread)
{
	return array_add(m->list, m->count, m->room, (struct moment){ *when, thread, 0 });
}

/* Sorts the moments of a process, which are those from `first` on, and keeps the longest ones. */
static void keep_longest(struct moments *m, size_t first)
{
	if (m->count > first)
		qsort(m->list + first, m->count - first, sizeof(*m->list), longest_first);
	for (size_t i = first; i < m->count; i++)
		m->list[i].rank = i - first;
	if (m->count - first > WEB_MOMENTS_MAX)
		m->count = first + WEB_MOMENTS_MAX;
}

ORDER(most_time_first, struct turn_label, MOST(ns) ?: strcmp(a->label ?: "", b->label ?: ""))

/* Sums up the turns of a process by their labels. */
static int find_labels(struct builder *b, struct process *process, const struct why_turn *turns,
		       size_t count)
{
	for (size_t i = 0; i < count && b->s->label; i++) {
		const struct time_interval *when = &turns[i].when;
		struct turn_label *l, key = { why_label(b->s, turns[i].thread, when), 0, 0, 0 };
		uint64_t ns = length_ns(when);
		uint32_t number;

		if (table_add(&process->labels, &key, sizeof(key.label), &number))
			return -ENOMEM;
		l = &process->labels.all[number];
		l->count++;
		add_u64(&l->ns, ns);
		if (ns > l->longest_ns)
			l->longest_ns = ns;
	}
	if (process->labels.count)
		qsort(process->labels.all, process->labels.count, sizeof(*process->labels.all),
		      most_time_first);
	return 0;
}

static int find_turns(struct builder *b, struct process *process)
{
	struct moments *all = &b->moments[TURNS];
	size_t first = all->count, count = 0;
	struct why_turn *turns = NULL;
	int err = why_list_turns(b->s, &process->threads, &turns, &count);

	for (size_t i = 0; i < count && !err; i++)
		err = add_moment(all, &turns[i].when, turns[i].thread);
	err = err ?: find_labels(b, process, turns, count);
	free(turns);
	if (err)
		return err;
	process->counts[TURNS] = count;
	keep_longest(all, first);
	for (int i = 0; i < WHY_QUANTILES && count; i++)
		process->quantiles[i] = length_ns(&all->list[first + why_quantile(count, i)].when);
	return 0;
}

static int find_waits(struct builder *b, struct process *process)
{
	struct moments *all = &b->moments[WAITS];
	size_t first = all->count;
	int err = 0;

	for (size_t i = 0; i < process->threads.count; i++) {
		uint32_t thread = process->threads.list[i];
		const struct segment_thread *t = &b->s->threads[thread];

		for (size_t k = t->first; k < t->first + t->count && !err; k++) {
			const struct segment *s = &b->s->all[k];
			const struct time_interval when = { s->since_ns, s->until_ns };
			enum thread_state state = segment_kind(b->s, s)->state;

			if (state != THREAD_IDLE)
				err = add_moment(all, &when, thread);
			if (state == THREAD_BLOCKED)
				add_u64(&process->blocked_ns, length_ns(&when));
		}
	}
	process->counts[WAITS] = all->count - first;
	keep_longest(all, first);
	return err;
}

static int by_process(const void *left, const void *right, void *context)
{
	const struct segment_thread *threads = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return strcmp(threads[a].process, threads[b].process) ?: compare_u64(a, b);
}

ORDER(most_blocked_first, struct process,
      MOST(blocked_ns) ?: compare_u64(*a->threads.list, *b->threads.list))

static int find_moments(struct builder *b)
{
	const struct segment_thread *threads = b->s->threads;
	size_t count = b->s->thread_count;
	struct process *process = NULL;

	b->threads = malloc((count + 1) * sizeof(*b->threads));
	if (!b->threads)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		b->threads[i] = i;
	qsort_r(b->threads, count, sizeof(*b->threads), by_process, b->s->threads);
	for (size_t i = 0; i < count; i++) {
		if (!i || strcmp(threads[b->threads[i]].process,
				 threads[b->threads[i - 1]].process) != 0) {
			if (array_add(b->processes, b->process_count, b->process_room,
				      (struct process){ .threads = { b->threads + i, 0 } }))
				return -ENOMEM;
			process = &b->processes[b->process_count - 1];
		}
		process->threads.count++;
	}
	for (size_t i = 0; i < b->process_count; i++)
		if (find_turns(b, &b->processes[i]) || find_waits(b, &b->processes[i]))
			return -ENOMEM;
	if (b->process_count)
		qsort(b->processes, b->process_count, sizeof(*b->processes), most_blocked_first);
	for (int kind = 0; kind < MOMENT_KINDS; kind++) {
		struct moments *m = &b->moments[kind];

		if (m->count > WEB_MOMENTS_MAX) {
			qsort(m->list, m->count, sizeof(*m->list), by_rank);
			m->count = WEB_MOMENTS_MAX;
		}
		if (m->count)
			qsort(m->list, m->count, sizeof(*m->list), longest_first);
	}
	return 0;
}

/* --- Their chains --- */

static uint32_t part_kind(const struct chain *c, const struct chain_node *n)
{
	switch (n->kind) {
	case CHAIN_RAN:
	case CHAIN_OTHER:
	case CHAIN_FUNCTION:
		return THREAD_ON_CPU;
	case CHAIN_RUNNABLE:
		return THREAD_RUNNABLE;
	case CHAIN_SLEPT:
		return c->s->kinds[n->what].state;
	case CHAIN_UNKNOWN:
	case CHAIN_UNRECORDED:
		return PART_UNKNOWN;
	default:
		return PART_OTHER;
	}
}

static int add_part(struct builder *b, const char *text, struct part part)
{
	if (!text || web_add_text(b->w, text, &part.text))
		return -ENOMEM;
	return array_add(b->parts, b->part_count, b->part_room, part);
}

/* Adds the parts of a node. Those with less than a share of the whole are one. */
static int add_parts(struct builder *b, const struct chain *c, uint32_t number, uint32_t depth,
		     double percent)
{
	struct part rest = { .depth = depth, .kind = PART_OTHER };
	size_t rest_count = 0;
	int err = 0;

	for (uint32_t i = c->nodes[number].first_child; i != CHAIN_NONE && !err;
	     i = c->nodes[i].next) {
		const struct chain_node *n = &c->nodes[i];
		char *text;

		if ((double)n->ns[0] * 100 < (double)c->nodes[0].ns[0] * percent) {
			rest_count++;
			rest.thread = n->thread;
			add_u64(&rest.ns, n->ns[0]);
			continue;
		}
		text = why_node_text(c, n);
		err = add_part(b, text,
			       (struct part){ depth, 0, part_kind(c, n), n->thread, n->ns[0] })
			      ?: add_parts(b, c, i, depth + 1, percent);
		free(text);
	}
	/* A line for all parts would say what their whole's says. */
	if (rest.ns && !err && (!number || rest_count < c->nodes[number].children)) {
		char more[64];

		snprintf(more, sizeof(more), "... %zu more", rest_count);
		err = add_part(b, more, rest);
	}
	return err;
}

/*
 * Prints how many parts each chain of moments has, as long as there are not more than `room` parts
 * in the page. Together they take as many steps as one chain may: those beyond are not in it.
 */
static int print_moments(struct builder *b, struct moments *m, size_t room, struct web_writer *w)
{
	uint64_t steps = 0;
	bool cut = false;

	web_begin_list(w, "sizes");
	for (size_t i = 0; i < m->count; i++) {
		size_t before = b->part_count;
		struct chain c;
		int err = chain_begin(&c, b->s, false);

		c.steps = steps;
		err = err ?: chain_add(&c, m->list[i].thread, &m->list[i].when);
		steps = c.steps;
		cut = c.cut || before > room;
		if (!cut)
			err = err ?: chain_end(&c, 0) ?: add_parts(b, &c, 0, 0, LEAST_PERCENT);
		chain_free(&c);
		if (err)
			return err;
		if (cut)
			m->count = i;
		else
			web_number(w, b->part_count - before);
	}
	web_end_list(w);
	WEB_LIST(w, "labels", web_text_number, i, m->count,
		 why_label(b->s, m->list[i].thread, &m->list[i].when) ?: "");
	WEB_LIST(w, "threads", web_number, i, m->count, m->list[i].thread);
	WEB_LIST(w, "since", web_number, i, m->count,
		 (int64_t)(m->list[i].when.since_ns - b->s->recorded.since_ns));
	WEB_LIST(w, "lengths", web_number, i, m->count, (int64_t)length_ns(&m->list[i].when));
	return 0;
}

/*
 * Prints, of each process, for what all its threads were blocked, the longest first, as long as
 * that takes half of the parts. Together they take as many steps as one chain may.
 */
static int print_processes(struct builder *b, struct web_writer *w)
{
	uint64_t steps = 0;

	web_begin_list(w, "sizes");
	for (size_t i = 0; i < b->process_count; i++) {
		const struct why_threads *threads = &b->processes[i].threads;
		size_t before = b->part_count;
		struct chain c;
		int err = chain_begin(&c, b->s, true);

		c.steps = steps;
		for (size_t k = 0; k < threads->count && before <= WEB_WHY_NODES_MAX / 2; k++)
			err = err ?: chain_add_blocked(&c, threads->list[k], &b->s->recorded);
		steps = c.steps;
		if (!err && c.nodes[0].ns[0])
			b->processes[i].blocked_ns = c.nodes[0].ns[0];
		err = err ?: chain_end(&c, 0) ?: add_parts(b, &c, 0, 0, LEAST_SUM_PERCENT);
		chain_free(&c);
		if (err)
			return err;
		web_number(w, b->part_count - before);
	}
	web_end_list(w);
	WEB_LIST(w, "names", web_text_number, i, b->process_count,
		 b->s->threads[*b->processes[i].threads.list].process);
	WEB_LIST(w, "blocked", web_number, i, b->process_count,
		 (int64_t)b->processes[i].blocked_ns);
	WEB_LIST(w, "turns", web_number, i, b->process_count, b->processes[i].counts[TURNS]);
	WEB_LIST(w, "waits", web_number, i, b->process_count, b->processes[i].counts[WAITS]);
	WEB_LIST(w, "quantiles", web_number, i, b->process_count * WHY_QUANTILES,
		 (int64_t)b->processes[i / WHY_QUANTILES].quantiles[i % WHY_QUANTILES]);
	fputs(",\n\"labels\":[", w->out);
	for (size_t i = 0; i < b->process_count; i++) {
		const struct turn_label *l = b->processes[i].labels.all;
		size_t all = b->processes[i].labels.count;
		size_t count = all < WEB_TURN_LABELS_MAX ? all : WEB_TURN_LABELS_MAX;

		fprintf(w->out, "%s{\"all\":%zu,\"count\":%zu", i ? ",\n" : "", all, count);
		WEB_LIST(w, "texts", web_text_number, k, count, l[k].label ?: "");
		WEB_LIST(w, "turns", web_number, k, count, (int64_t)l[k].count);
		WEB_LIST(w, "lengths", web_number, k, count, (int64_t)l[k].ns);
		WEB_LIST(w, "longest", web_number, k, count, (int64_t)l[k].longest_ns);
		putc('}', w->out);
	}
	putc(']', w->out);
	return 0;
}

/* Prints the threads, and of each labels of the profile the number of its thread. */
static int print_threads(struct builder *b, struct web_writer *w)
{
	const struct segments *s = b->s;
	int64_t *of = malloc((s->p->label_count + 1) * sizeof(*of));
	uint32_t *process_of = calloc(s->thread_count + 1, sizeof(*process_of));
	int err = of && process_of ? 0 : -ENOMEM;

	WEB_LIST(w, "names", web_text_number, i, s->thread_count, s->threads[i].comm);
	for (size_t i = 0; i < b->process_count && !err; i++)
		for (size_t k = 0; k < b->processes[i].threads.count; k++)
			process_of[b->processes[i].threads.list[k]] = i;
	for (size_t i = 0; i < s->p->label_count && !err; i++)
		of[i] = -1;
	for (size_t i = 0; i < s->p->sample_count && !err; i++)
		of[s->p->samples[i].labels] = s->kinds[i].thread;
	if (!err) {
		WEB_LIST(w, "tids", web_number, i, s->thread_count, s->threads[i].tid);
		WEB_LIST(w, "processes", web_number, i, s->thread_count, process_of[i]);
		WEB_LIST(w, "since", web_number, i, s->thread_count,
			 (int64_t)(s->threads[i].life.since_ns - s->recorded.since_ns));
		WEB_LIST(w, "lengths", web_number, i, s->thread_count,
			 (int64_t)length_ns(&s->threads[i].life));
		/* Which part of the time between its waits it ran, in millionths. */
		WEB_LIST(w, "certain", web_number, i, s->thread_count,
			 (int64_t)(s->threads[i].certain * 1e6 + 0.5));
		WEB_LIST(w, "of_labels", web_number, i, s->p->label_count, of[i]);
	}
	free(of);
	free(process_of);
	return err;
}

int web_why_print(const struct profile *p, struct web_writer *w)
{
	struct segments s;
	struct builder b = { .s = &s, .w = w };
	enum profile_tag_number label = TAG_ROUTE;
	int err;

	if (!p->waits.count || !p->waits.complete)
		return 0;
	for (size_t i = 0; i < p->label_count && label != TAG_QUERY; i++)
		if (profile_tag_text(&p->labels[i], TAG_QUERY))
			label = TAG_QUERY;
	err = segments_make(p, tag_kinds[label].key, &s) ?: find_moments(&b);
	if (err)
		goto out;
	fprintf(w->out,
		",\n\"why\":{\"label\":\"%s\",\"begin_s\":%" PRIu64 ",\"begin_ns\":%" PRIu64
		",\"threads\":{\"count\":%zu",
		s.label ?: "", s.recorded.since_ns / NS_PER_S, s.recorded.since_ns % NS_PER_S,
		s.thread_count);
	err = print_threads(&b, w);
	fprintf(w->out, "},\n\"processes\":{\"quantile_names\":[");
	w->in_list = false;
	for (int i = 0; i < WHY_QUANTILES; i++)
		web_text(w, why_quantiles[i].name);
	putc(']', w->out);
	err = err ?: print_processes(&b, w);
	fprintf(w->out, "},\n\"turns\":{\"kind\":\"turn\"");
	err = err ?: print_moments(&b, &b.moments[TURNS], WEB_WHY_NODES_MAX / 4 * 3, w);
	fprintf(w->out, "},\n\"waits\":{\"kind\":\"wait\"");
	err = err ?: print_moments(&b, &b.moments[WAITS], WEB_WHY_NODES_MAX, w);
	/* In the order in which the chains were printed. */
	fprintf(w->out, "},\n\"parts\":{\"count\":%zu", b.part_count);
	WEB_LIST(w, "depths", web_number, i, b.part_count, b.parts[i].depth);
	WEB_LIST(w, "texts", web_number, i, b.part_count, b.parts[i].text);
	WEB_LIST(w, "kinds", web_number, i, b.part_count, b.parts[i].kind);
	WEB_LIST(w, "threads", web_number, i, b.part_count, b.parts[i].thread);
	WEB_LIST(w, "lengths", web_number, i, b.part_count, (int64_t)b.parts[i].ns);
	fputs("}}", w->out);
out:
	for (int kind = 0; kind < MOMENT_KINDS; kind++)
		free(b.moments[kind].list);
	for (size_t i = 0; i < b.process_count; i++)
		table_free(&b.processes[i].labels);
	free(b.processes);
	free(b.threads);
	free(b.parts);
	segments_free(&s);
	return err;
}
