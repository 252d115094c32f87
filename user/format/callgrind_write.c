// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/callgrind.h"
#include "format/callgrind_graph.h"
#include "profile/build_id.h"
#include "profile/pc_name.h"
#include "util/sum.h"
#include "util/utf8.h"

/*
 * What all readers take (callgrind_annotate, KCachegrind, gprof2dot, speedscope): the header's
 * lines in this order with one blank behind the colon, no tabs, no empty names, one part; ob=, fl=
 * and fn= for each function and in this order, one number for each function of one file and object;
 * no call without a count; nothing behind the last cost of a line, and none of them left out.
 */

struct writer {
	const struct profile *p;
	FILE *out;
	struct graph g;
	uint32_t *order; /* the positions that are written, function by function */
	size_t order_count;

	/* Where the file is: addresses are told as distance from the last, as far as it goes. */
	uint32_t function; /* GRAPH_NONE: in none */
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

/* printf would take most of the time of a large file. */
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
 * A text in one line: control characters would end it, or a name. Readers print names on terminals
 * as they are: what else is hidden comes as \xNN.
 */
static void put_text(const struct writer *w, const char *text)
{
	while (*text && (unsigned char)*text <= ' ')
		text++;
	if (!*text)
		text = GRAPH_UNKNOWN;
	for (size_t i = 0; text[i]; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			put_char(w, ' ');
		else if (utf8_is_hidden_at(text, i))
			put_byte(w, text[i]);
		else
			put_char(w, text[i]);
}

/* ---- the header ---- */

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

/* The one process and the one thread of all samples and calls; 0 when they are several. */
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
	name = strdup(*type->type ? type->type : GRAPH_UNKNOWN);
	for (char *c = name; c && *c; c++)
		if ((unsigned char)*c <= ' ' || *c > '~')
			*c = '_';
	return name;
}

/* What Callgrind has no line for, each as a description of its own. */
static void put_account(const struct writer *w)
{
	const struct profile_totals *t = &w->p->totals;

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
	put_number(w, "desc: Machine time", t->machine_ns, " ns");
	for (size_t i = 0; i < t->lost_count; i++) {
		fprintf(w->out, "desc: Lost: %" PRIu64 " ", t->lost[i].count);
		put_text(w, t->lost[i].cause);
		put_char(w, '\n');
	}
}

/* Of all that is mapped, most has no part in the profile. */
static void put_build_ids(const struct writer *w)
{
	for (size_t i = 0; i < w->p->image_count; i++) {
		const struct profile_image *image = &w->p->images[i];
		char hex[BUILD_ID_TEXT_SIZE];

		if (!image->build_id_size || !graph_has_object(&w->g, image->path))
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
		if (strcmp(p->extras[i].format, "callgrind") == 0 &&
		    strncmp(p->extras[i].bytes, "desc: ", strlen("desc: ")) == 0)
			put_line(w, "desc", p->extras[i].bytes + strlen("desc: "));
}

/* The lines about a value type, whose name in the file is `name`. */
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
	for (size_t i = 0; i < w->g.column_count; i++) {
		char *name = event_name(&w->p->value_types[w->g.columns[i]]);

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
	for (size_t i = 0; i < w->g.column_count; i++) {
		put_char(w, ' ');
		put_decimal(w, costs[i]);
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
	put(w, w->g.addresses ? "positions: instr line\n" : "positions: line\n");
	if (put_each_event(w, put_event) || put_events(w))
		return -ENOMEM;
	put(w, "summary:");
	put_costs(w, w->g.totals);
	return 0;
}

/* ---- the body ---- */

/* What is before the number of a name: "fn=". Behind it, the name where it comes first. */
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

static void put_name(const struct writer *w, const char *what, const struct graph_names *names,
		     uint32_t id)
{
	if (!put_number_of_name(w, what, id, &names->names[id].written))
		return;
	put_text(w, names->names[id].text);
	put_char(w, '\n');
}

/* As profile_pc_name() has it. */
static void put_unnamed(const struct writer *w, const struct graph_function *f)
{
	const char *object = w->g.objects.names[f->object].text;

	if (strcmp(object, GRAPH_UNKNOWN) != 0) {
		put_text(w, profile_basename(object));
		put_char(w, '+');
	}
	fprintf(w->out, "0x%" PRIx64, f->address);
}

static void put_function_name(const struct writer *w, const char *what, uint32_t id)
{
	struct graph_function *f = &w->g.functions[id];

	if (!put_number_of_name(w, what, id, &f->written))
		return;
	if (f->name)
		put_text(w, f->name);
	else
		put_unnamed(w, f);
	put_char(w, '\n');
}

static void begin_function(struct writer *w, uint32_t id)
{
	const struct graph_function *f = &w->g.functions[id];

	if (w->function == id)
		return;
	put_char(w, '\n');
	put_name(w, "ob=", &w->g.objects, f->object);
	put_name(w, "fl=", &w->g.files, f->file);
	put_function_name(w, "fn=", id);
	w->function = id;
	w->file = f->file;
	w->has_address = false;
}

/* Code from another file: never back to the function's own, whose positions come first. */
static void begin_file(struct writer *w, uint32_t file)
{
	if (w->file == file)
		return;
	put_name(w, "fi=", &w->g.files, file);
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
	/* Decimal, as gprof2dot takes no other distance */
	if (ahead)
		put_decimal(w, ahead <= UINT32_MAX ? ahead : back);
	put_char(w, ' ');
}

static void put_place(const struct writer *w, const struct graph_position *position)
{
	if (w->g.addresses)
		put_address(w, position->address);
	put_decimal(w, position->line);
}

/* The line of a cost, or of a jump, which has none. The next distance counts from it. */
static void put_source(struct writer *w, const struct graph_position *position,
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

/* callgrind_annotate takes the file of fi= for the callee's, KCachegrind the one of fl=. */
static bool is_own_file(const struct writer *w, uint32_t file)
{
	return file == w->file && file == w->g.functions[w->function].file;
}

static void put_call(struct writer *w, const struct graph_arc *arc)
{
	const struct graph_position *to = &w->g.positions[arc->to];
	const struct graph_function *callee = &w->g.functions[to->function];

	/* Where one had it, gprof2dot takes the next call without it for one of the same object. */
	if (w->g.objects.count > 1)
		put_name(w, "cob=", &w->g.objects, callee->object);
	if (!is_own_file(w, callee->file))
		put_name(w, "cfl=", &w->g.files, callee->file);
	put_function_name(w, "cfn=", to->function);
	/* With 0, callgrind_annotate would take the cost for the caller's own. */
	put(w, "calls=");
	put_decimal(w, arc->count ?: 1);
	put_char(w, ' ');
	put_place(w, to);
	put_char(w, '\n');
}

/* The slash is what the tool writes, whatever its manual says. */
static void put_jump(struct writer *w, const struct graph_arc *arc)
{
	const struct graph_position *to = &w->g.positions[arc->to];

	if (!is_own_file(w, to->file))
		put_name(w, "jfi=", &w->g.files, to->file);
	if (to->function != w->function)
		put_function_name(w, "jfn=", to->function);
	if (arc->kind == PROFILE_JUMP)
		fprintf(w->out, "jump=%" PRIu64 " ", arc->count);
	else
		fprintf(w->out, "jcnd=%" PRIu64 "/%" PRIu64 " ", arc->count, arc->executed);
	put_place(w, to);
	put_char(w, '\n');
}

static void put_arc(struct writer *w, const struct graph_position *from, uint32_t id)
{
	const struct graph_arc *arc = &w->g.arcs[id];

	if (arc->kind == PROFILE_CALL) {
		put_call(w, arc);
		put_source(w, from, w->g.arc_costs + id * w->g.column_count);
	} else {
		/* KCachegrind takes a cost for garbage here. */
		put_jump(w, arc);
		put_source(w, from, NULL);
	}
}

/* They lie anywhere in memory: waiting for one after the other takes a third of the time. */
static void fetch_arcs(const struct graph *g, const struct graph_position *from)
{
	const uint32_t *ids = g->arc_order + from->first_arc;

	for (uint32_t i = 0; i < from->arc_count; i++) {
		__builtin_prefetch(&g->arcs[ids[i]]);
		__builtin_prefetch(g->arc_costs + ids[i] * g->column_count);
	}
	for (uint32_t i = 0; i < from->arc_count; i++)
		__builtin_prefetch(&g->positions[g->arcs[ids[i]].to]);
}

static void put_position(struct writer *w, uint32_t id)
{
	const struct graph_position *position = &w->g.positions[id];

	begin_function(w, position->function);
	begin_file(w, position->file);
	if (graph_position_has_cost(&w->g, id))
		put_source(w, position, w->g.position_costs + id * w->g.column_count);
	fetch_arcs(&w->g, position);
	for (uint32_t i = 0; i < position->arc_count; i++)
		put_arc(w, position, w->g.arc_order[position->first_arc + i]);
}

/* By function; in it, its own file first; then as they stand in the program. */
static int compare_positions(const void *one, const void *other, void *context)
{
	const struct graph *g = context;
	const struct graph_position *a = &g->positions[*(const uint32_t *)one];
	const struct graph_position *b = &g->positions[*(const uint32_t *)other];
	uint32_t own = g->functions[a->function].file;

	return compare_u64(a->function, b->function) ?: compare_u64(a->file != own, b->file != own)
		       ?: compare_u64(a->file, b->file) ?: compare_u64(a->address, b->address)
		       ?: compare_u64(a->line, b->line);
}

static int order_positions(struct writer *w)
{
	w->order = calloc(w->g.position_count + 1, sizeof(*w->order));
	if (!w->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->g.position_count; i++)
		if (graph_position_used(&w->g, i))
			w->order[w->order_count++] = i;
	qsort_r(w->order, w->order_count, sizeof(*w->order), compare_positions, &w->g);
	return 0;
}

static int write_all(struct writer *w, bool addresses)
{
	if (graph_build(&w->g, w->p, addresses) || order_positions(w) || put_header(w))
		return -ENOMEM;
	for (size_t i = 0; i < w->order_count; i++)
		put_position(w, w->order[i]);
	put(w, "\ntotals:");
	put_costs(w, w->g.totals);
	return 0;
}

int callgrind_write(const struct profile *p, const struct format_options *options, FILE *out,
		    struct error *e)
{
	struct writer w = { .p = p, .out = out, .function = GRAPH_NONE };
	int err = write_all(&w, options->instr_positions);

	graph_free(&w.g);
	free(w.order);
	if (err)
		return error_no_memory(e);
	if (ferror(out))
		return error_set(e, errno, "cannot write");
	return 0;
}
