// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/callgrind/callgrind.h"
#include "profile/build_id.h"
#include "profile/callgraph.h"
#include "profile/pc_name.h"
#include "util/array.h"
#include "util/sum.h"
#include "util/table.h"
#include "util/utf8.h"

/*
 * Written so that all readers accept it (callgrind_annotate, KCachegrind, gprof2dot, speedscope):
 * header lines in this order with one blank after the colon, no tabs, no empty names, one part;
 * ob=, fl= and fn= for each function, in this order, and one number for each function of one file
 * and object; no call without a count; all costs in each cost line, and nothing after the last.
 */

/* Stands for an empty name of a file or object, which readers reject. */
static const char unknown[] = "???";

/* Names of object files or source files; the index of one is its number - 1 in the file. */
struct name {
	const char *text;
	bool written;
};

struct writer {
	const struct profile *p;
	FILE *out;
	size_t shown;	    /* the value type to be counted: profile_value() */
	char **event_names; /* of each value type */
	size_t *columns;    /* the value types that are written */
	struct callgraph g;
	TABLE(struct name) objects, files;
	struct function {
		uint32_t object, file;
		bool written;
	} * functions;		  /* of each node */
	uint32_t *position_files; /* of each position */
	uint32_t *order;	  /* the positions that are written, function by function */
	size_t order_count;

	/* What the last lines set: addresses are written relative to the last one if possible. */
	uint32_t function; /* CALLGRAPH_NONE: none yet */
	uint32_t file;
	uint64_t address;
	bool has_address;
};

static void put(const struct writer *w, const char *text)
{
	fputs_unlocked(text, w->out);
}

static void put_char(const struct writer *w, char c)
{
	putc_unlocked(c, w->out);
}

/* Faster than fprintf(), which would take most of the time for a large file. */
static void put_decimal(const struct writer *w, uint64_t number)
{
	char digits[20];
	int count = 0;

	do
		digits[count++] = '0' + number % 10;
	while (number /= 10);
	while (count)
		put_char(w, digits[--count]);
}

/*
 * Writes a text as one line: blanks stand for control characters, which would end the line or name,
 * and \xNN for other hidden bytes, since readers print names to terminals unchanged.
 */
static void put_text(const struct writer *w, const char *text)
{
	static const char digits[] = "0123456789abcdef";

	while (*text && (unsigned char)*text <= ' ')
		text++;
	if (!*text)
		text = unknown;
	for (size_t i = 0; text[i]; i++) {
		unsigned char c = text[i];

		if (c < ' ' || c == 0x7f) {
			put_char(w, ' ');
		} else if (utf8_is_hidden_at(text, i)) {
			put(w, "\\x");
			put_char(w, digits[c >> 4]);
			put_char(w, digits[c & 15]);
		} else {
			put_char(w, c);
		}
	}
}

/* --- Header --- */

static void put_line(const struct writer *w, const char *key, const char *text)
{
	if (!*text)
		return;
	fprintf(w->out, "%s: ", key);
	put_text(w, text);
	put_char(w, '\n');
}

static void put_number(const struct writer *w, const char *key, uint64_t number, const char *unit)
{
	if (number)
		fprintf(w->out, "%s: %" PRIu64 "%s\n", key, number, unit);
}

/* The lines "desc: Key: value", for which Callgrind has no lines of its own. */
static void put_descriptions(const struct writer *w)
{
	const struct profile *p = w->p;
	const struct profile_totals *t = &p->totals;

	put_line(w, "desc: Event", p->event);
	put_number(w, "desc: Period", profile_tick_ns(p), " ns");
	put_number(w, "desc: Start", p->time_ns, " ns");
	put_number(w, "desc: Duration", p->duration_ns, " ns");
	put_line(w, "desc: Host", p->host);
	put_number(w, "desc: All samples", p->all_samples, "");
	put_number(w, "desc: All CPU time", p->all_cpu_ns, " ns");
	put_number(w, "desc: All duration", p->all_duration_ns, " ns");
	/* Zeros are omitted, except for ticks, which shows that there is an account. */
	for (int i = 0; t->known && i < ACCOUNT_COUNT; i++) {
		const struct account_counter *c = &account_counters[i];

		if (t->account.values[i] || i == ACCOUNT_ticks)
			fprintf(w->out, "desc: %s: %" PRIu64 "%s\n", c->callgrind ?: c->name,
				t->account.values[i], strstr(c->name, "_ns") ? " ns" : "");
	}
	for (size_t i = 0; t->known && i < t->lost_count; i++) {
		fprintf(w->out, "desc: Lost: %" PRIu64 " ", t->lost[i].count);
		put_text(w, t->lost[i].cause);
		put_char(w, '\n');
	}
	/* Only of objects in the call graph: a process maps many more. */
	for (size_t i = 0; i < p->image_count; i++) {
		const struct profile_image *image = &p->images[i];
		char hex[BUILD_ID_TEXT_SIZE];

		if (!image->build_id_size ||
		    table_find(&w->objects, &image->path, TABLE_TEXT) == INDEX_NONE)
			continue;
		build_id_format(image->build_id, image->build_id_size, hex);
		fprintf(w->out, "desc: Build ID: %s ", hex);
		put_text(w, image->path);
		put_char(w, '\n');
	}
	for (size_t i = 0; i < p->comment_count; i++)
		put_line(w, "desc: Comment", p->comments[i]);
	for (size_t i = 0; i < p->extra_count; i++)
		if (strcmp(p->extras[i].format, CALLGRIND_NAME) == 0 &&
		    strncmp(p->extras[i].bytes, "desc: ", strlen("desc: ")) == 0)
			put_line(w, "desc", p->extras[i].bytes + strlen("desc: "));
}

static void put_costs(const struct writer *w, const int64_t *costs)
{
	for (size_t i = 0; i < w->g.options.column_count; i++) {
		put(w, costs[i] < 0 ? " -" : " ");
		put_decimal(w, magnitude(costs[i]));
	}
	put_char(w, '\n');
}

static void put_header(const struct writer *w)
{
	const struct profile *p = w->p;
	uint32_t pid = 0, tid = 0; /* of all samples and calls; 0 where they differ */

	for (size_t i = 0; i < p->label_count; i++) {
		const struct profile_labels *l = &p->labels[i];

		pid = i == 0 || pid == l->pid ? l->pid : 0;
		tid = i == 0 || tid == l->tid ? l->tid : 0;
	}
	put(w, "# callgrind format\nversion: 1\ncreator: profil " PROFIL_VERSION "\n");
	put_number(w, "pid", pid, "");
	put_line(w, "cmd", p->command);
	put(w, "part: 1\n");
	put_number(w, "thread", tid, "");
	put_descriptions(w);
	for (size_t i = 0; i < p->value_type_count; i++) {
		const struct profile_value_type *type = &p->value_types[i];
		const char *name = w->event_names[i];

		if (type->period)
			fprintf(w->out, "desc: Period: %" PRIu64 " %s\n", type->period, name);
		if (!*type->unit || strcmp(type->unit, "count") == 0 || strcmp(name, "ns") == 0)
			continue;
		fprintf(w->out, "desc: Unit: %s ", name);
		put_text(w, type->unit);
		put_char(w, '\n');
	}
	put(w, "positions:");
	if (w->g.options.positions == CALLGRAPH_ADDRESSES)
		put(w, " instr");
	put(w, " line\n");
	for (size_t i = 0; i < p->value_type_count; i++) {
		const struct profile_value_type *type = &p->value_types[i];

		if (!*type->title && !*type->formula)
			continue;
		fprintf(w->out, "event: %s", w->event_names[i]);
		if (*type->formula) {
			put(w, " = ");
			put_text(w, type->formula);
		}
		if (*type->title) {
			put(w, " : ");
			put_text(w, type->title);
		}
		put_char(w, '\n');
	}
	put(w, "events:");
	for (size_t i = 0; i < w->g.options.column_count; i++)
		fprintf(w->out, " %s", w->event_names[w->columns[i]]);
	put(w, "\nsummary:");
	put_costs(w, w->g.sums);
}

/* --- Body --- */

/*
 * Writes "fn=(NUMBER)" for the prefix `what`. Returns true the first time: the name has to follow;
 * sets *written.
 */
static bool put_number_of_name(const struct writer *w, const char *what, uint32_t id, bool *written)
{
	bool first = !*written;

	put(w, what);
	put_char(w, '(');
	put_decimal(w, id + 1);
	put(w, first ? ") " : ")\n");
	*written = true;
	return first;
}

static void put_name(const struct writer *w, const char *what, struct name *names, uint32_t id)
{
	if (!put_number_of_name(w, what, id, &names[id].written))
		return;
	put_text(w, names[id].text);
	put_char(w, '\n');
}

static void put_function_name(const struct writer *w, const char *what, uint32_t id)
{
	const struct callgraph_key *key = &w->g.nodes[id].key;

	if (!put_number_of_name(w, what, id, &w->functions[id].written))
		return;
	if (key->function) {
		put_text(w, key->function);
	} else {
		/* The same name as by profile_pc_name(). */
		if (strcmp(key->image, unknown) != 0) {
			put_text(w, profile_basename(key->image));
			put_char(w, '+');
		}
		fprintf(w->out, "0x%" PRIx64, key->address);
	}
	put_char(w, '\n');
}

/* Writes the address, relative to the last one if that is near, and the line. */
static void put_place(const struct writer *w, const struct callgraph_position *position)
{
	if (w->g.options.positions == CALLGRAPH_ADDRESSES) {
		uint64_t ahead = position->address - w->address, back = -ahead;
		bool is_ahead = ahead <= UINT32_MAX;

		if (w->has_address && ahead == 0) {
			put_char(w, '*');
		} else if (w->has_address && (is_ahead || back <= UINT32_MAX)) {
			put_char(w, is_ahead ? '+' : '-');
			/* gprof2dot accepts decimal distances only. */
			put_decimal(w, is_ahead ? ahead : back);
		} else {
			fprintf(w->out, "0x%" PRIx64, position->address);
		}
		put_char(w, ' ');
	}
	put_decimal(w, position->line);
}

/* Writes a cost line; of a jump (costs NULL), its position. The next address is relative to it. */
static void put_source(struct writer *w, const struct callgraph_position *position,
		       const int64_t *costs)
{
	put_place(w, position);
	if (costs)
		put_costs(w, costs);
	else
		put_char(w, '\n');
	w->address = position->address;
	w->has_address = true;
}

/*
 * True if a callee's file may be omitted: for that callgrind_annotate assumes the file of fi=,
 * KCachegrind that of fl=.
 */
static bool is_own_file(const struct writer *w, uint32_t file)
{
	return file == w->file && file == w->functions[w->function].file;
}

static void put_call(struct writer *w, const struct callgraph_edge *edge)
{
	const struct callgraph_position *to = &w->g.positions.all[edge->to];
	const struct function *callee = &w->functions[to->node];

	/* gprof2dot assumes the last cob= for calls without one, so all calls have it. */
	if (w->objects.count > 1)
		put_name(w, "cob=", w->objects.all, callee->object);
	if (!is_own_file(w, callee->file))
		put_name(w, "cfl=", w->files.all, callee->file);
	put_function_name(w, "cfn=", to->node);
	/* With a count of 0, callgrind_annotate would add the cost to the caller's own. */
	put(w, "calls=");
	put_decimal(w, edge->count ?: 1);
	put_char(w, ' ');
	put_place(w, to);
	put_char(w, '\n');
}

/* callgrind writes the slash; valgrind's manual has a blank. */
static void put_jump(struct writer *w, const struct callgraph_edge *edge)
{
	const struct callgraph_position *to = &w->g.positions.all[edge->to];

	if (!is_own_file(w, w->position_files[edge->to]))
		put_name(w, "jfi=", w->files.all, w->position_files[edge->to]);
	if (to->node != w->function)
		put_function_name(w, "jfn=", to->node);
	if (edge->kind == PROFILE_JUMP)
		fprintf(w->out, "jump=%" PRIu64 " ", edge->count);
	else
		fprintf(w->out, "jcnd=%" PRIu64 "/%" PRIu64 " ", edge->count, edge->executed);
	put_place(w, to);
	put_char(w, '\n');
}

static bool has_cost(const struct writer *w, uint32_t position)
{
	const int64_t *costs = w->g.position_costs + position * w->g.options.column_count;

	for (size_t i = 0; i < w->g.options.column_count; i++)
		if (costs[i])
			return true;
	return false;
}

static void put_position(struct writer *w, uint32_t id)
{
	const struct callgraph_position *position = &w->g.positions.all[id];
	const struct function *f = &w->functions[position->node];
	size_t columns = w->g.options.column_count;
	const uint32_t *ids = w->g.edge_order + position->first_edge;

	if (w->function != position->node) {
		put_char(w, '\n');
		put_name(w, "ob=", w->objects.all, f->object);
		put_name(w, "fl=", w->files.all, f->file);
		put_function_name(w, "fn=", position->node);
		w->function = position->node;
		w->file = f->file;
		w->has_address = false;
	}
	/* Never back to the function's own file, whose positions come first. */
	if (w->file != w->position_files[id]) {
		w->file = w->position_files[id];
		put_name(w, "fi=", w->files.all, w->file);
	}
	if (has_cost(w, id))
		put_source(w, position, w->g.position_costs + id * columns);
	/*
	 * Edges are scattered in memory: without prefetching, a third of the time is cache misses.
	 */
	for (uint32_t i = 0; i < position->edge_count; i++) {
		__builtin_prefetch(&w->g.edges.all[ids[i]]);
		__builtin_prefetch(w->g.edge_costs + ids[i] * w->g.options.column_count);
	}
	for (uint32_t i = 0; i < position->edge_count; i++)
		__builtin_prefetch(&w->g.positions.all[w->g.edges.all[ids[i]].to]);
	for (uint32_t i = 0; i < position->edge_count; i++) {
		uint32_t edge = w->g.edge_order[position->first_edge + i];

		if (w->g.edges.all[edge].kind == PROFILE_CALL) {
			put_call(w, &w->g.edges.all[edge]);
			put_source(w, position, w->g.edge_costs + edge * columns);
		} else {
			/* KCachegrind reports a cost here as garbage. */
			put_jump(w, &w->g.edges.all[edge]);
			put_source(w, position, NULL);
		}
	}
}

/* By function; within one, its own file first; then by file, address and line. */
static int compare_positions(const void *one, const void *other, void *context)
{
	uint32_t x = *(const uint32_t *)one, y = *(const uint32_t *)other;
	const struct writer *w = context;
	const struct callgraph_position *a = &w->g.positions.all[x], *b = &w->g.positions.all[y];
	uint32_t own = w->functions[a->node].file;
	uint32_t file_a = w->position_files[x], file_b = w->position_files[y];
	int order = compare_u64(a->node, b->node);

	order = order ?: compare_u64(file_a != own, file_b != own);
	order = order ?: compare_u64(file_a, file_b);
	order = order ?: compare_u64(a->address, b->address);
	return order ?: compare_u64(a->line, b->line);
}

/* Numbers objects and files, and sets the order of the positions that are written. */
static int order_positions(struct writer *w)
{
	const struct callgraph *g = &w->g;
	int err = 0;

	w->functions = calloc(g->node_count + 1, sizeof(*w->functions));
	w->position_files = calloc(g->positions.count + 1, sizeof(*w->position_files));
	w->order = calloc(g->positions.count + 1, sizeof(*w->order));
	if (!w->functions || !w->position_files || !w->order)
		return -ENOMEM;
	for (size_t i = 0; i < g->node_count && !err; i++)
		err = table_add(&w->objects, &(struct name){ .text = g->nodes[i].key.image },
				TABLE_TEXT, &w->functions[i].object);
	for (size_t i = 0; i < g->positions.count && !err; i++) {
		const struct callgraph_position *position = &g->positions.all[i];

		err = table_add(&w->files, &(struct name){ .text = position->source }, TABLE_TEXT,
				&w->position_files[i]);
		if (!err && i == g->nodes[position->node].entry)
			w->functions[position->node].file = w->position_files[i];
		if (position->edge_count || has_cost(w, i))
			w->order[w->order_count++] = i;
	}
	if (!err)
		qsort_r(w->order, w->order_count, sizeof(*w->order), compare_positions, w);
	return err;
}

static int make_graph(struct writer *w, bool addresses)
{
	struct callgraph_options options = {
		.fields = CALLGRAPH_FUNCTION | CALLGRAPH_FILE | CALLGRAPH_IMAGE,
		.positions = addresses ? CALLGRAPH_ADDRESSES : CALLGRAPH_LINES,
		.unknown = unknown,
	};
	const struct profile_value_type *types = w->p->value_types;
	size_t count = 0, all = w->p->value_type_count;
	struct callgraph_places places = { 0 };
	int err;

	w->event_names = calloc(all + 1, sizeof(*w->event_names));
	w->columns = calloc(all + 1, sizeof(*w->columns));
	if (!w->event_names || !w->columns)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++) {
		bool is_cpu = strcmp(types[i].type, "cpu") == 0 &&
			      strcmp(types[i].unit, "nanoseconds") == 0;

		/* One word */
		w->event_names[i] = strdup(is_cpu	    ? "ns"
					   : *types[i].type ? types[i].type
							    : unknown);
		if (!w->event_names[i])
			return -ENOMEM;
		for (char *c = w->event_names[i]; *c; c++)
			if ((unsigned char)*c <= ' ' || *c > '~')
				*c = '_';
	}
	/*
	 * All value types that are not derived by a formula; if all are, all of them. The one to be
	 * counted is first: callgrind_annotate sorts by the first event, and KCachegrind shows it.
	 */
	if (all && !*types[w->shown].formula)
		w->columns[count++] = w->shown;
	for (size_t i = 0; i < all; i++)
		if (!*types[i].formula && i != w->shown)
			w->columns[count++] = i;
	for (size_t i = 0; i < all && !count; i++)
		w->columns[i] = i;
	options.column_count = count ?: all;
	err = callgraph_init(&w->g, &options) ?: callgraph_place(&w->g, w->p, &places);
	err = err ?: callgraph_count(&w->g, &places, w->columns, options.column_count, 0);
	callgraph_places_free(&places);
	return err;
}

int callgrind_write(const struct profile *p, const struct format_options *options, FILE *out,
		    struct error *e)
{
	struct writer w = { .p = p,
			    .out = out,
			    .shown = profile_value(p, options->value),
			    .function = CALLGRAPH_NONE };
	int err = make_graph(&w, options->instr_positions) ?: order_positions(&w);

	if (err) {
		err = error_no_memory(e);
	} else {
		put_header(&w);
		for (size_t i = 0; i < w.order_count; i++)
			put_position(&w, w.order[i]);
		put(&w, "\ntotals:");
		put_costs(&w, w.g.sums);
		if (ferror(out))
			err = error_set(e, errno, "cannot write");
	}
	callgraph_free(&w.g);
	table_free(&w.objects);
	table_free(&w.files);
	array_free_texts(w.event_names, p->value_type_count);
	free(w.columns);
	free(w.functions);
	free(w.position_files);
	free(w.order);
	return err;
}
