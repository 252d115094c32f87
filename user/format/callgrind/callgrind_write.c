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
#include "util/index.h"
#include "util/sum.h"
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
struct names {
	struct name {
		const char *text;
		bool written;
	} * names;
	size_t count, room;
	struct index index;
};

struct writer {
	const struct profile *p;
	FILE *out;
	size_t shown;	 /* the value type to be counted: profile_value() */
	size_t *columns; /* the value types that are written */
	struct callgraph g;
	struct names objects, files;
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

static void put_byte(const struct writer *w, unsigned char byte)
{
	static const char digits[] = "0123456789abcdef";

	put_char(w, '\\');
	put_char(w, 'x');
	put_char(w, digits[byte >> 4]);
	put_char(w, digits[byte & 15]);
}

/*
 * Writes a text as one line: blanks stand for control characters, which would end the line or name,
 * and \xNN for other hidden bytes, since readers print names to terminals unchanged.
 */
static void put_text(const struct writer *w, const char *text)
{
	while (*text && (unsigned char)*text <= ' ')
		text++;
	if (!*text)
		text = unknown;
	for (size_t i = 0; text[i]; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			put_char(w, ' ');
		else if (utf8_is_hidden_at(text, i))
			put_byte(w, text[i]);
		else
			put_char(w, text[i]);
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

/* PID and TID of all samples and calls; 0 where they differ. */
static struct profile_labels common_labels(const struct profile *p)
{
	struct profile_labels common = { 0 };

	for (size_t i = 0; i < p->label_count; i++) {
		const struct profile_labels *l = &p->labels[i];

		if (i == 0)
			common = *l;
		if (common.pid != l->pid)
			common.pid = 0;
		if (common.tid != l->tid)
			common.tid = 0;
	}
	return common;
}

/* What an event is called in the file: one word. The caller's to free(), or NULL. */
static char *event_name(const struct profile_value_type *type)
{
	char *name;

	if (strcmp(type->type, "cpu") == 0 && strcmp(type->unit, "nanoseconds") == 0)
		return strdup("ns");
	name = strdup(*type->type ? type->type : unknown);
	for (char *c = name; c && *c; c++)
		if ((unsigned char)*c <= ' ' || *c > '~')
			*c = '_';
	return name;
}

/* What Callgrind has no line for, each as a description of its own. */
static void put_account(const struct writer *w)
{
	const struct profile_totals *t = &w->p->totals;

	put_number(w, "desc: All samples", w->p->all_samples, "");
	put_number(w, "desc: All CPU time", w->p->all_cpu_ns, " ns");
	if (!t->known)
		return;
	fprintf(w->out, "desc: Ticks: %" PRIu64 "\n", t->ticks);
	put_number(w, "desc: Counted", t->counted, "");
	put_number(w, "desc: Out of range", t->out_of_range, "");
	put_number(w, "desc: Excluded", t->excluded, "");
	put_number(w, "desc: Kernel", t->kernel, "");
	put_number(w, "desc: CPU time", t->cpu_ns, " ns");
	put_number(w, "desc: BPF time per tick", t->bpf_ns_per_tick, " ns");
	put_number(w, "desc: Interrupt time", t->interrupt_ns, " ns");
	put_number(w, "desc: Interrupts", t->interrupts, "");
	put_number(w, "desc: Recorder's CPU time", t->own_ns, " ns");
	put_number(w, "desc: Machine time", t->machine_ns, " ns");
	for (size_t i = 0; i < t->lost_count; i++) {
		fprintf(w->out, "desc: Lost: %" PRIu64 " ", t->lost[i].count);
		put_text(w, t->lost[i].cause);
		put_char(w, '\n');
	}
}

static bool name_equal(const void *array, uint32_t id, const void *key)
{
	return strcmp(((const struct name *)array)[id].text, key) == 0;
}

static uint64_t name_hash(const char *text)
{
	return hash_bytes(text, strlen(text), 0);
}

static int find_name(struct names *n, const char *text, uint32_t *id)
{
	*id = index_find(&n->index, name_hash(text), name_equal, n->names, text);
	if (*id != INDEX_NONE)
		return 0;
	if (array_reserve(&n->names, &n->room, n->count + 1, sizeof(*n->names)) ||
	    index_add(&n->index, name_hash(text), n->count))
		return -ENOMEM;
	*id = n->count++;
	n->names[*id].text = text;
	return 0;
}

static bool has_object(const struct writer *w, const char *path)
{
	const struct names *n = &w->objects;

	return index_find(&n->index, name_hash(path), name_equal, n->names, path) != INDEX_NONE;
}

/* Only of objects in the call graph: a process maps many more. */
static void put_build_ids(const struct writer *w)
{
	for (size_t i = 0; i < w->p->image_count; i++) {
		const struct profile_image *image = &w->p->images[i];
		char hex[BUILD_ID_TEXT_SIZE];

		if (!image->build_id_size || !has_object(w, image->path))
			continue;
		put(w, "desc: Build ID: ");
		build_id_format(image->build_id, image->build_id_size, hex);
		put(w, hex);
		put_char(w, ' ');
		put_text(w, image->path);
		put_char(w, '\n');
	}
}

static void put_descriptions(const struct writer *w)
{
	const struct profile *p = w->p;

	put_line(w, "desc: Event", p->event);
	put_number(w, "desc: Period", p->period_ns, " ns");
	put_number(w, "desc: Start", p->time_ns, " ns");
	put_number(w, "desc: Duration", p->duration_ns, " ns");
	put_line(w, "desc: Host", p->host);
	put_account(w);
	put_build_ids(w);
	for (size_t i = 0; i < p->comment_count; i++)
		put_line(w, "desc: Comment", p->comments[i]);
	for (size_t i = 0; i < p->extra_count; i++)
		if (strcmp(p->extras[i].format, CALLGRIND_NAME) == 0 &&
		    strncmp(p->extras[i].bytes, "desc: ", strlen("desc: ")) == 0)
			put_line(w, "desc", p->extras[i].bytes + strlen("desc: "));
}

/* Writes the "event:" line of a value type, whose name in the file is `name`. */
static void put_event(const struct writer *w, const struct profile_value_type *type,
		      const char *name)
{
	const char *gap = *type->formula ? " = " : "";

	if (!*type->title && !*type->formula)
		return;
	fprintf(w->out, "event: %s%s", name, gap);
	if (*type->formula)
		put_text(w, type->formula);
	if (*type->title) {
		put(w, " : ");
		put_text(w, type->title);
	}
	put_char(w, '\n');
}

static void put_unit(const struct writer *w, const struct profile_value_type *type,
		     const char *name)
{
	if (type->period)
		fprintf(w->out, "desc: Period: %" PRIu64 " %s\n", type->period, name);
	if (!*type->unit || strcmp(type->unit, "count") == 0 || strcmp(name, "ns") == 0)
		return;
	fprintf(w->out, "desc: Unit: %s ", name);
	put_text(w, type->unit);
	put_char(w, '\n');
}

typedef void event_print(const struct writer *w, const struct profile_value_type *type,
			 const char *name);

static int put_each_event(const struct writer *w, event_print *print)
{
	for (size_t i = 0; i < w->p->value_type_count; i++) {
		char *name = event_name(&w->p->value_types[i]);

		if (!name)
			return -ENOMEM;
		print(w, &w->p->value_types[i], name);
		free(name);
	}
	return 0;
}

static int put_events(const struct writer *w)
{
	put(w, "events:");
	for (size_t i = 0; i < w->g.options.column_count; i++) {
		char *name = event_name(&w->p->value_types[w->columns[i]]);

		if (!name)
			return -ENOMEM;
		fprintf(w->out, " %s", name);
		free(name);
	}
	put_char(w, '\n');
	return 0;
}

static void put_costs(const struct writer *w, const int64_t *costs)
{
	for (size_t i = 0; i < w->g.options.column_count; i++) {
		put(w, costs[i] < 0 ? " -" : " ");
		put_decimal(w, magnitude(costs[i]));
	}
	put_char(w, '\n');
}

static int put_header(const struct writer *w)
{
	struct profile_labels labels = common_labels(w->p);

	put(w, "# callgrind format\nversion: 1\ncreator: profil " PROFIL_VERSION "\n");
	put_number(w, "pid", labels.pid, "");
	put_line(w, "cmd", w->p->command);
	put(w, "part: 1\n");
	put_number(w, "thread", labels.tid, "");
	put_descriptions(w);
	if (put_each_event(w, put_unit))
		return -ENOMEM;
	put(w, w->g.options.positions == CALLGRAPH_ADDRESSES ? "positions: instr line\n"
							     : "positions: line\n");
	if (put_each_event(w, put_event) || put_events(w))
		return -ENOMEM;
	put(w, "summary:");
	put_costs(w, w->g.sums);
	return 0;
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

static void put_name(const struct writer *w, const char *what, const struct names *names,
		     uint32_t id)
{
	if (!put_number_of_name(w, what, id, &names->names[id].written))
		return;
	put_text(w, names->names[id].text);
	put_char(w, '\n');
}

/* The same name as by profile_pc_name(). */
static void put_unnamed(const struct writer *w, const struct callgraph_key *key)
{
	if (strcmp(key->image, unknown) != 0) {
		put_text(w, profile_basename(key->image));
		put_char(w, '+');
	}
	fprintf(w->out, "0x%" PRIx64, key->address);
}

static void put_function_name(const struct writer *w, const char *what, uint32_t id)
{
	const struct callgraph_key *key = &w->g.nodes[id].key;

	if (!put_number_of_name(w, what, id, &w->functions[id].written))
		return;
	if (key->function)
		put_text(w, key->function);
	else
		put_unnamed(w, key);
	put_char(w, '\n');
}

static void begin_function(struct writer *w, uint32_t id)
{
	const struct function *f = &w->functions[id];

	if (w->function == id)
		return;
	put_char(w, '\n');
	put_name(w, "ob=", &w->objects, f->object);
	put_name(w, "fl=", &w->files, f->file);
	put_function_name(w, "fn=", id);
	w->function = id;
	w->file = f->file;
	w->has_address = false;
}

/* For code from another file. Never back to the function's own file, whose positions come first. */
static void begin_file(struct writer *w, uint32_t file)
{
	if (w->file == file)
		return;
	put_name(w, "fi=", &w->files, file);
	w->file = file;
}

static void put_address(const struct writer *w, uint64_t address)
{
	uint64_t ahead = address - w->address, back = w->address - address;

	if (!w->has_address || (ahead > UINT32_MAX && back > UINT32_MAX)) {
		fprintf(w->out, "0x%" PRIx64 " ", address);
		return;
	}
	put_char(w, ahead == 0 ? '*' : ahead <= UINT32_MAX ? '+' : '-');
	/* gprof2dot accepts decimal distances only. */
	if (ahead)
		put_decimal(w, ahead <= UINT32_MAX ? ahead : back);
	put_char(w, ' ');
}

static void put_place(const struct writer *w, const struct callgraph_position *position)
{
	if (w->g.options.positions == CALLGRAPH_ADDRESSES)
		put_address(w, position->address);
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
 * Whether a callee's file may be omitted: for that callgrind_annotate assumes the file of fi=,
 * KCachegrind that of fl=.
 */
static bool is_own_file(const struct writer *w, uint32_t file)
{
	return file == w->file && file == w->functions[w->function].file;
}

static void put_call(struct writer *w, const struct callgraph_edge *edge)
{
	const struct callgraph_position *to = &w->g.positions[edge->to];
	const struct function *callee = &w->functions[to->node];

	/* gprof2dot assumes the last cob= for calls without one, so all calls have it. */
	if (w->objects.count > 1)
		put_name(w, "cob=", &w->objects, callee->object);
	if (!is_own_file(w, callee->file))
		put_name(w, "cfl=", &w->files, callee->file);
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
	const struct callgraph_position *to = &w->g.positions[edge->to];

	if (!is_own_file(w, w->position_files[edge->to]))
		put_name(w, "jfi=", &w->files, w->position_files[edge->to]);
	if (to->node != w->function)
		put_function_name(w, "jfn=", to->node);
	if (edge->kind == PROFILE_JUMP)
		fprintf(w->out, "jump=%" PRIu64 " ", edge->count);
	else
		fprintf(w->out, "jcnd=%" PRIu64 "/%" PRIu64 " ", edge->count, edge->executed);
	put_place(w, to);
	put_char(w, '\n');
}

static void put_edge(struct writer *w, const struct callgraph_position *from, uint32_t id)
{
	const struct callgraph_edge *edge = &w->g.edges[id];

	if (edge->kind == PROFILE_CALL) {
		put_call(w, edge);
		put_source(w, from, w->g.edge_costs + id * w->g.options.column_count);
	} else {
		/* KCachegrind reports a cost here as garbage. */
		put_jump(w, edge);
		put_source(w, from, NULL);
	}
}

/* Edges are scattered in memory: without prefetching, a third of the time is cache misses. */
static void fetch_edges(const struct callgraph *g, const struct callgraph_position *from)
{
	const uint32_t *ids = g->edge_order + from->first_edge;

	for (uint32_t i = 0; i < from->edge_count; i++) {
		__builtin_prefetch(&g->edges[ids[i]]);
		__builtin_prefetch(g->edge_costs + ids[i] * g->options.column_count);
	}
	for (uint32_t i = 0; i < from->edge_count; i++)
		__builtin_prefetch(&g->positions[g->edges[ids[i]].to]);
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
	const struct callgraph_position *position = &w->g.positions[id];

	begin_function(w, position->node);
	begin_file(w, w->position_files[id]);
	if (has_cost(w, id))
		put_source(w, position, w->g.position_costs + id * w->g.options.column_count);
	fetch_edges(&w->g, position);
	for (uint32_t i = 0; i < position->edge_count; i++)
		put_edge(w, position, w->g.edge_order[position->first_edge + i]);
}

/* By function; within one, its own file first; then by file, address and line. */
static int compare_positions(const void *one, const void *other, void *context)
{
	uint32_t x = *(const uint32_t *)one, y = *(const uint32_t *)other;
	const struct writer *w = context;
	const struct callgraph_position *a = &w->g.positions[x], *b = &w->g.positions[y];
	uint32_t own = w->functions[a->node].file;
	uint32_t file_a = w->position_files[x], file_b = w->position_files[y];

	return compare_u64(a->node, b->node) ?: compare_u64(file_a != own, file_b != own)
		       ?: compare_u64(file_a, file_b) ?: compare_u64(a->address, b->address)
		       ?: compare_u64(a->line, b->line);
}

static int order_positions(struct writer *w)
{
	w->order = calloc(w->g.position_count + 1, sizeof(*w->order));
	if (!w->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->g.position_count; i++)
		if (w->g.positions[i].edge_count || has_cost(w, i))
			w->order[w->order_count++] = i;
	qsort_r(w->order, w->order_count, sizeof(*w->order), compare_positions, w);
	return 0;
}

static int number_names(struct writer *w)
{
	const struct callgraph *g = &w->g;
	int err = 0;

	w->functions = calloc(g->node_count + 1, sizeof(*w->functions));
	w->position_files = calloc(g->position_count + 1, sizeof(*w->position_files));
	if (!w->functions || !w->position_files)
		return -ENOMEM;
	for (size_t i = 0; i < g->node_count && !err; i++)
		err = find_name(&w->objects, g->nodes[i].key.image, &w->functions[i].object);
	for (size_t i = 0; i < g->position_count && !err; i++) {
		const struct callgraph_position *position = &g->positions[i];

		err = find_name(&w->files, position->source, &w->position_files[i]);
		if (!err && i == g->nodes[position->node].entry)
			w->functions[position->node].file = w->position_files[i];
	}
	return err;
}

/*
 * All value types that are not derived by a formula; if all are, all of them. The one to be counted
 * is first: callgrind_annotate sorts by the first event, and KCachegrind shows it.
 */
static size_t choose_columns(struct writer *w)
{
	const struct profile_value_type *types = w->p->value_types;
	size_t count = 0, all = w->p->value_type_count;

	if (all && !*types[w->shown].formula)
		w->columns[count++] = w->shown;
	for (size_t i = 0; i < all; i++)
		if (!*types[i].formula && i != w->shown)
			w->columns[count++] = i;
	for (size_t i = 0; i < all && !count; i++)
		w->columns[i] = i;
	return count ?: all;
}

static int make_graph(struct writer *w, bool addresses)
{
	struct callgraph_options options = {
		.fields = CALLGRAPH_FUNCTION | CALLGRAPH_FILE | CALLGRAPH_IMAGE,
		.positions = addresses ? CALLGRAPH_ADDRESSES : CALLGRAPH_LINES,
		.unknown = unknown,
	};
	struct callgraph_places places = { 0 };
	int err;

	w->columns = calloc(w->p->value_type_count + 1, sizeof(*w->columns));
	if (!w->columns)
		return -ENOMEM;
	options.column_count = choose_columns(w);
	err = callgraph_init(&w->g, &options) ?: callgraph_place(&w->g, w->p, &places);
	err = err ?: callgraph_count(&w->g, &places, w->columns, options.column_count, 0);
	callgraph_places_free(&places);
	return err;
}

static int write_all(struct writer *w, bool addresses)
{
	if (make_graph(w, addresses) || number_names(w) || order_positions(w) || put_header(w))
		return -ENOMEM;
	for (size_t i = 0; i < w->order_count; i++)
		put_position(w, w->order[i]);
	put(w, "\ntotals:");
	put_costs(w, w->g.sums);
	return 0;
}

static void writer_free(struct writer *w)
{
	callgraph_free(&w->g);
	free(w->objects.names);
	free(w->files.names);
	index_free(&w->objects.index);
	index_free(&w->files.index);
	free(w->columns);
	free(w->functions);
	free(w->position_files);
	free(w->order);
}

int callgrind_write(const struct profile *p, const struct format_options *options, FILE *out,
		    struct error *e)
{
	struct writer w = { .p = p,
			    .out = out,
			    .shown = profile_value(p, options->value),
			    .function = CALLGRAPH_NONE };
	int err = write_all(&w, options->instr_positions);

	writer_free(&w);
	if (err)
		return error_no_memory(e);
	if (ferror(out))
		return error_set(e, errno, "cannot write");
	return 0;
}
