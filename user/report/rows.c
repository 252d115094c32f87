// SPDX-License-Identifier: GPL-2.0-only
#include "report/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"
#include "util/array.h"
#include "util/index.h"
#include "util/sum.h"

/* What is needed while one column is collected. */
struct collector {
	const struct profile *p;
	const struct rows_options *o;
	struct rows *r;
	size_t column;
	size_t value;
	bool has_stacks;
	bool *wanted;		/* images, and behind them what lies in none */
	uint32_t *known;	/* each place's row by place_number(); INDEX_NONE: not yet known */
	struct index processes; /* with base_names: the labels that have a process's name */
};

/* Rows of who ran have samples, but no frames of stacks. */
static bool is_of_labels(const struct row_view *view)
{
	return view->fields & ROW_COMM;
}

/* Whether a function and what is inlined in it at one address may be rows apart. */
static bool tells_inlined(const struct row_view *view)
{
	return view->fields & (ROW_FUNCTION | ROW_SOURCE) && !(view->fields & ROW_ADDRESS);
}

static bool row_equal(const void *array, uint32_t id, const void *key)
{
	return row_key_compare(&((const struct row *)array)[id].key, key) == 0;
}

/* Where the function begins in which an address is; 0: not known, or it is inlined code. */
static uint64_t function_start(const struct collector *c, uint32_t location)
{
	if (!c->o->extents || location == PROFILE_NONE || c->p->locations[location].line_count > 1)
		return 0;
	return c->o->extents[location].start;
}

static int add_row(struct rows *r, const struct row_key *key)
{
	if (array_reserve(&r->rows, &r->room, r->count + 1, sizeof(*r->rows)) ||
	    array_reserve(&r->counts, &r->count_room, r->count + 1,
			  r->column_count * sizeof(*r->counts)))
		return -ENOMEM;
	r->rows[r->count++] = (struct row){ .key = *key };
	return 0;
}

static bool is_of_process(const void *labels, uint32_t id, const void *pid)
{
	return ((const struct profile_labels *)labels)[id].pid == *(const uint32_t *)pid;
}

/* The labels of each process's first thread, else the first that there are. */
static int index_processes(struct collector *c)
{
	const struct profile_labels *labels = c->p->labels;

	for (int others = 0; others < 2; others++)
		for (size_t i = 0; i < c->p->label_count; i++) {
			uint64_t hash = hash_u64(labels[i].pid, 0);

			if ((others || labels[i].tid == labels[i].pid) &&
			    index_find(&c->processes, hash, is_of_process, labels,
				       &labels[i].pid) == INDEX_NONE &&
			    index_add(&c->processes, hash, i))
				return -ENOMEM;
		}
	return 0;
}

/* Leaves of a key what is the same in every run. */
static void name_for_any_run(const struct collector *c, struct row_key *key)
{
	const struct profile_labels *labels = c->p->labels;

	key->image = row_image_of_any_run(key->image);
	if (!is_of_labels(c->r->view))
		return;
	if (key->pid && !(c->o->view->fields & ROW_THREAD))
		key->comm = labels[index_find(&c->processes, hash_u64(key->pid, 0), is_of_process,
					      labels, &key->pid)]
				    .comm;
	key->pid = key->tid = 0;
}

/* The row of a place: found or made. */
static int find_row(struct collector *c, const struct row_place *place, uint32_t *id)
{
	struct rows *r = c->r;
	struct row_key whole = row_key_of(c->p, place), key;
	uint64_t hash;

	if (c->o->base_names)
		name_for_any_run(c, &whole);
	key = whole;
	row_key_reduce(r->view, &key);
	hash = row_key_hash(&key);
	*id = index_find(&r->index, hash, row_equal, r->rows, &key);
	if (*id == INDEX_NONE) {
		*id = r->count;
		if (index_add(&r->index, hash, r->count) || add_row(r, &key))
			return -ENOMEM;
		r->rows[*id].function_start = function_start(c, place->location);
	}
	if (!r->rows[*id].comm || (whole.pid && whole.tid == whole.pid))
		r->rows[*id].comm = whole.comm;
	return 0;
}

static size_t place_count(const struct collector *c)
{
	const struct profile *p = c->p;

	return 1 + (is_of_labels(c->r->view) ? p->label_count : p->line_count + p->location_count);
}

/* Below place_count(). Places of one number have one row; the last is of what is nowhere. */
static size_t place_number(const struct collector *c, const struct row_place *place)
{
	const struct profile *p = c->p;
	const struct profile_location *l;

	if (is_of_labels(c->r->view))
		return place->labels < p->label_count ? place->labels : p->label_count;
	if (place->location == PROFILE_NONE)
		return p->line_count + p->location_count;
	l = &p->locations[place->location];
	return l->line_count ? l->first_line + place->line : p->line_count + place->location;
}

static int row_of(struct collector *c, const struct row_place *place, uint32_t *id)
{
	uint32_t *known = &c->known[place_number(c, place)];
	int err = *known == INDEX_NONE ? find_row(c, place, known) : 0;

	*id = *known;
	return err;
}

static struct row_count *count_of(const struct collector *c, uint32_t row)
{
	return &c->r->counts[row * c->r->column_count + c->column];
}

static bool is_wanted(const struct collector *c, uint32_t location)
{
	const struct profile *p = c->p;
	uint32_t mapping = location == PROFILE_NONE ? PROFILE_NONE : p->locations[location].mapping;

	return c->wanted[mapping == PROFILE_NONE ? p->image_count : p->mappings[mapping].image];
}

/* Adds a stack's value to a row, to its total once however often recursion brings it up. */
static int add_place(struct collector *c, const struct row_place *place, bool leaf, uint64_t value)
{
	uint64_t *last;
	uint32_t row;

	if (!is_wanted(c, place->location))
		return 0;
	if (row_of(c, place, &row))
		return -ENOMEM;
	if (leaf)
		add_u64(&count_of(c, row)->self, value);
	last = &c->r->rows[row].last_stack;
	if (*last != c->r->stack_count)
		add_u64(&count_of(c, row)->total, value);
	*last = c->r->stack_count;
	return 0;
}

/* A frame, and the functions that it is inlined into. */
static int add_frame(struct collector *c, struct row_place *place, bool leaf, uint64_t value)
{
	bool inlined = c->has_stacks && tells_inlined(c->r->view);
	uint32_t lines = inlined ? c->p->locations[place->location].line_count : 0;
	int err = 0;

	place->line = 0;
	do
		err = add_place(c, place, leaf && place->line == 0, value);
	while (!err && ++place->line < lines);
	return err;
}

static bool is_of_wanted_thread(const struct collector *c, const struct profile_sample *sample)
{
	const struct profile_labels *labels;

	if (!c->o->pid && !c->o->tid)
		return true;
	labels = &c->p->labels[sample->labels];
	return (!c->o->pid || labels->pid == c->o->pid) && (!c->o->tid || labels->tid == c->o->tid);
}

static int add_sample(struct collector *c, const struct profile_sample *sample, uint64_t value)
{
	struct row_place place = { .location = PROFILE_NONE, .labels = sample->labels };
	const uint32_t *frames = c->p->frames + sample->first_frame;
	uint32_t depth = c->has_stacks ? sample->depth : sample->depth > 0;
	int err = 0;

	c->r->stack_count++;
	add_u64(&c->r->columns[c->column].samples, value);
	if (!is_of_wanted_thread(c, sample))
		return 0;
	if (!sample->depth)
		return add_place(c, &place, true, value);
	for (uint32_t i = 0; i < depth && !err; i++) {
		place.location = frames[i];
		err = add_frame(c, &place, i == 0, value);
	}
	return err;
}

static int add_samples(struct collector *c)
{
	const struct profile *p = c->p;
	int err = 0;

	for (size_t i = 0; i < p->sample_count && !err; i++) {
		int64_t value = p->values[i * p->value_type_count + c->value];

		if (value > 0)
			err = add_sample(c, &p->samples[i], value);
	}
	return err;
}

/* A call comes from the innermost function at its pc, and goes to the one whose code begins. */
static int add_call(struct collector *c, const struct profile_arc *arc, uint64_t value)
{
	uint32_t lines = c->p->locations[arc->to].line_count;
	struct row_place from = { .location = arc->from, .labels = arc->labels };
	struct row_place to = { arc->to, lines ? lines - 1 : 0, arc->labels };
	uint32_t caller, callee;

	if (row_of(c, &from, &caller) || row_of(c, &to, &callee))
		return -ENOMEM;
	if (caller == callee)
		return 0;
	if (is_wanted(c, arc->from))
		add_u64(&c->r->rows[caller].calling, value);
	if (is_wanted(c, arc->to))
		add_u64(&c->r->rows[callee].called, value);
	c->r->rows[callee].called_often |= arc->count > 0;
	return 0;
}

/* Calls with what was spent in them: the total of a row that has none of its own. */
static void finish_totals(struct collector *c)
{
	for (size_t i = 0; i < c->r->count; i++) {
		struct row *row = &c->r->rows[i];
		struct row_count *count = count_of(c, i);

		count->total = row->called;
		if (!row->called_often || !row->called) {
			count->total = count->self;
			add_u64(&count->total, row->calling);
		}
		if (count->total > c->r->columns[c->column].samples)
			count->total = c->r->columns[c->column].samples;
		row->called = row->calling = 0;
		row->called_often = false;
	}
	c->r->stacks = true;
}

static int add_calls(struct collector *c)
{
	const struct profile *p = c->p;
	const int64_t *values = p->arc_values + c->value;
	bool known = false;
	int err = 0;

	for (size_t i = 0; i < p->arc_count && !known; i++)
		known = p->arcs[i].kind == PROFILE_CALL && values[i * p->value_type_count] > 0;
	if (!known || c->has_stacks || is_of_labels(c->r->view))
		return 0;
	for (size_t i = 0; i < p->arc_count && !err; i++) {
		int64_t value = values[i * p->value_type_count];

		if (p->arcs[i].kind == PROFILE_CALL)
			err = add_call(c, &p->arcs[i], value > 0 ? value : 0);
	}
	if (!err)
		finish_totals(c);
	return err;
}

char *rows_title(const struct profile *p, size_t value)
{
	const struct profile_value_type *type = &p->value_types[value];
	bool counts = !p->value_type_count || strcmp(type->unit, "count") == 0;
	char *title;

	if (!p->value_type_count)
		return strdup("samples");
	if (asprintf(&title, "%s%s%s", type->type, counts ? "" : "/", counts ? "" : type->unit) < 0)
		return NULL;
	return title;
}

static int prepare(struct collector *c)
{
	const struct profile *p = c->p;
	size_t places = place_count(c);

	c->wanted = calloc(p->image_count + 1, sizeof(*c->wanted));
	c->known = reallocarray(NULL, places, sizeof(*c->known));
	c->r->columns[c->column].title = rows_title(p, c->value);
	if (!c->wanted || !c->known || !c->r->columns[c->column].title)
		return -ENOMEM;
	memset(c->known, 0xff, places * sizeof(*c->known)); /* INDEX_NONE */
	for (size_t i = 0; i < p->image_count; i++)
		c->wanted[i] = row_image_is(p->images[i].path, c->o->image);
	c->wanted[p->image_count] = row_image_is(row_unknown, c->o->image);
	c->has_stacks = !is_of_labels(c->r->view) &&
			profile_stacks(p) > (tells_inlined(c->r->view) ? PROFILE_NO_STACKS
								       : PROFILE_INLINED_STACKS);
	c->r->columns[c->column].samples = profile_filtered(p, c->value);
	c->r->stacks |= c->has_stacks;
	return c->o->base_names && is_of_labels(c->r->view) ? index_processes(c) : 0;
}

int rows_begin(struct rows *r, const struct rows_options *o, size_t column_count)
{
	*r = (struct rows){
		.view = o->view ?: row_views,
		.column_count = column_count,
		.by_total = o->by_total,
	};
	if (o->base_names)
		r->view = row_view_of_any_run(r->view);
	r->columns = calloc(column_count, sizeof(*r->columns));
	return r->columns ? 0 : -ENOMEM;
}

int rows_add(struct rows *r, const struct profile *p, const struct rows_options *o, size_t value,
	     size_t column)
{
	struct collector c = { .p = p, .o = o, .r = r, .column = column, .value = value };
	int err = prepare(&c);

	err = err ?: add_samples(&c);
	err = err ?: add_calls(&c);
	free(c.wanted);
	free(c.known);
	index_free(&c.processes);
	return err;
}

/* The name of a row's function; *made is to be free()d. NULL: there is no memory. */
static const char *make_name(const struct row *row, bool offsets, char **made)
{
	const struct row_key *key = &row->key;
	int n;

	if (key->function && (!offsets || !row->function_start))
		return key->function;
	if (key->function)
		n = asprintf(made, "%s+0x%" PRIx64, key->function,
			     key->address - row->function_start);
	else if (key->image == row_unknown)
		n = asprintf(made, "0x%" PRIx64, key->address);
	else
		n = asprintf(made, "%s+0x%" PRIx64, text_basename(key->image), key->address);
	if (n < 0)
		*made = NULL;
	return *made;
}

static int compare_falling(uint64_t a, uint64_t b)
{
	return (a < b) - (a > b);
}

int rows_compare(const void *one, const void *other)
{
	const struct row *a = one, *b = other;
	int order = compare_falling(a->counts->self, b->counts->self);

	order = order ?: compare_falling(a->counts->total, b->counts->total);
	if (!order && a->name)
		order = strcmp(a->name, b->name);
	return order ?: row_key_compare(&a->key, &b->key);
}

static int compare_totals(const void *one, const void *other)
{
	const struct row *a = one, *b = other;

	return compare_falling(a->counts->total, b->counts->total) ?: rows_compare(a, b);
}

static bool is_empty(const struct rows *r, size_t number)
{
	const struct row_count *counts = &r->counts[number * r->column_count];

	for (size_t i = 0; i < r->column_count; i++)
		if (counts[i].self || counts[i].total)
			return false;
	return true;
}

/* Rows that only calls without a cost have brought up go. */
static void drop_empty(struct rows *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->count; i++) {
		if (is_empty(r, i))
			continue;
		r->rows[kept] = r->rows[i];
		r->rows[kept++].counts = &r->counts[i * r->column_count];
	}
	r->count = kept;
}

int rows_finish(struct rows *r)
{
	uint64_t cumulative = 0;

	drop_empty(r);
	for (size_t i = 0; i < r->count && (r->view->fields & ROW_FUNCTION); i++) {
		struct row *row = &r->rows[i];

		row->name = make_name(row, r->view->fields & ROW_ADDRESS, &row->made_name);
		if (!row->name)
			return -ENOMEM;
	}
	if (r->count)
		qsort(r->rows, r->count, sizeof(*r->rows),
		      r->by_total ? compare_totals : rows_compare);
	for (size_t i = 0; i < r->count; i++) {
		add_u64(&cumulative, r->rows[i].counts->self);
		r->rows[i].cumulative = cumulative;
	}
	return 0;
}

size_t rows_shown(const struct rows *r, size_t limit, double percent)
{
	double least = (double)r->columns->samples * percent / 100;
	size_t count = limit && limit < r->count ? limit : r->count;

	while (count > 0) {
		const struct row_count *last = r->rows[count - 1].counts;

		if ((double)(r->by_total ? last->total : last->self) >= least)
			break;
		count--;
	}
	return count;
}

size_t rows_values(const struct profile *p, size_t *values)
{
	size_t count = 0;

	values[count++] = profile_count_value(p);
	for (size_t i = 0; i < p->value_type_count; i++)
		if (i != values[0] && strcmp(p->value_types[i].unit, "count") == 0 &&
		    !p->value_types[i].formula[0])
			values[count++] = i;
	return count;
}

int rows_collect(struct rows *r, const struct profile *p, const struct rows_options *o)
{
	size_t *values = calloc(p->value_type_count + 1, sizeof(*values));
	size_t count = values ? rows_values(p, values) : 1;
	int err = rows_begin(r, o, count);

	if (!values)
		err = -ENOMEM;
	for (size_t i = 0; i < count && !err; i++)
		err = rows_add(r, p, o, values[i], i);
	free(values);
	return err ?: rows_finish(r);
}

void rows_free(struct rows *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->rows[i].made_name);
	for (size_t i = 0; r->columns && i < r->column_count; i++)
		free(r->columns[i].title);
	free(r->columns);
	free(r->rows);
	free(r->counts);
	index_free(&r->index);
	*r = (struct rows){ 0 };
}
