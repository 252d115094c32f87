// SPDX-License-Identifier: GPL-2.0-only
#include "report/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/thread_state.h"
#include "report/text.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/index.h"
#include "util/order.h"
#include "util/sum.h"

/* A row's tag as it is shown. utc: as in JSON: times are in UTC. */
static const char *tag_text(const struct tag_kind *tag, const struct row *row, bool utc,
			    char buffer[TABLE_CELL_SIZE])
{
	if (tag->shown == TAG_TIME_S && row->key->number) {
		/* When the row's windows began. */
		struct time_text time = time_text(row->key->number - 1, utc,
						  utc ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%d %H:%M %Z");

		snprintf(buffer, TABLE_CELL_SIZE, "%.30s", time.text);
		return *buffer ? buffer : row_unknown;
	}
	if (tag->shown == TAG_TIME_S)
		return row_unknown;
	if (row->shown_container && !utc) /* JSON has both, whole */
		return row->shown_container;
	if (row->comm[0])
		return row->comm;
	if (row->key->number) {
		snprintf(buffer, TABLE_CELL_SIZE, "%" PRIu64, row->key->number - 1);
		return buffer;
	}
	return tag->missing ?: row_unknown;
}

void row_state_columns(struct columns *c, const struct row *row)
{
	const char *state = row && row->key->state ? row->key->state : "", *reason = NULL;
	char reason_text[THREAD_STATE_SIZE] = "";
	const enum thread_state number = thread_state_of(state, &reason, &(size_t){ 0 });

	if (reason) /* up to the bracket */
		snprintf(reason_text, sizeof(reason_text), "%.*s", (int)strlen(reason) - 1, reason);
	COLUMN(c, NULL, "state", 0, thread_state_names[number]);
	COLUMN(c, NULL, "reason", 0, reason_text);
	COLUMN(c, "state", NULL, COLUMN_NAMES | COLUMN_TEXT | COLUMN_WHOLE,
	       thread_state_text(state, c->buffer));
}

void row_columns(struct columns *c, const struct row_view *view, const struct row *row)
{
	const unsigned int text = COLUMN_NAMES | COLUMN_TEXT;
	const uint64_t fields = view->fields;
	const struct tag_kind *tag = row_view_tag(view);

	if (fields & ROW_STATE)
		row_state_columns(c, row);
	if (fields & ROW_ADDRESS)
		COLUMN(c, "address", "address", COLUMN_NAMES,
		       text_hex(c->buffer, row->key->address));
	COLUMN(c, fields & ROW_SOURCE ? "source" : NULL, "source", text | COLUMN_PATH,
	       row->key->source);
	COLUMN(c, fields & ROW_LINE ? "line" : NULL, "line", COLUMN_NAMES | COLUMN_KNOWN,
	       row->key->line);
	COLUMN(c, fields & ROW_FUNCTION ? "function" : NULL,
	       view == row_views ? "name" : "function", text, row->name);
	/* The whole path where there is room for it. */
	COLUMN(c, fields & ROW_IMAGE ? "image" : NULL, "image", text | COLUMN_PATH,
	       c->json || fields == ROW_IMAGE ? row->key->image : text_basename(row->key->image));
	COLUMN(c, fields & ROW_PROCESS ? "pid" : NULL, "pid", COLUMN_OWNER | COLUMN_KNOWN,
	       row->key->pid);
	COLUMN(c, NULL, "generation", COLUMN_KNOWN, row->key->generation);
	COLUMN(c, fields & ROW_THREAD ? "tid" : NULL, "tid", COLUMN_OWNER | COLUMN_KNOWN,
	       row->key->tid);
	if (fields & ROW_COMM)
		COLUMN(c, "comm", "comm", COLUMN_OWNER | COLUMN_TEXT,
		       c->json || row->comm[0] ? row->comm : row_unknown);
	if (tag && (!c->json || row->comm[0] || row->key->number || tag->shown == TAG_TIME_S))
		COLUMN(c, view->name, view->name,
		       COLUMN_OWNER | (tag->shown != TAG_NUMBER ? COLUMN_TEXT : 0),
		       tag_text(tag, row, c->json, c->buffer));
	COLUMN(c, NULL, tag_kinds[TAG_CONTAINER_NAME].key, 0, row->container_name);
}

const char *row_first_text(const struct row_view *view, const struct row *row,
			   char buffer[TABLE_CELL_SIZE])
{
	struct columns c = { .buffer = buffer };

	row_columns(&c, view, row);
	return c.text ?: "";
}

void row_print_more(const struct row_view *view, size_t count, const char *after, FILE *out)
{
	if (count)
		fprintf(out, "... %zu more %s%s\n", count, row_view_noun(view, count), after);
}

void row_print_rest(const struct row_view *view, size_t count, double samples, double all,
		    bool fits, FILE *out)
{
	char percent[TEXT_PERCENT_SIZE], after[TEXT_PERCENT_SIZE + 32];

	text_percent(percent, samples, all);
	snprintf(after, sizeof(after), ", %s %%%s", percent, fits ? "; -E 0 prints all" : "");
	row_print_more(view, count, after, out);
}

/* Arguments and state of add_values(). */
struct collector {
	const struct profile *p;
	const struct rows_options *o;
	struct rows *r;
	const size_t *values; /* `count` numbers of values */
	size_t count, column; /* the column of the first value */
	size_t doubt;	      /* see struct rows */
	bool wants_walls;
	const char **names; /* row_process_names(), where nodes are divided by labels */
};

static bool is_wanted_image(const struct collector *c, uint32_t location)
{
	return row_image_is(row_image_path(c->p, location), c->o->image);
}

/* The key of a view by a tag. Processes without a title of their own go by their name. */
static struct callgraph_key key_of_tag(const struct row_view *view, const struct profile_labels *l)
{
	const struct profile_tag *tag = NULL;
	const char *text;

	/* Of several tags the first that the labels have. */
	for (size_t i = 0; i < TAG_COUNT && !tag; i++)
		if (view->fields & ROW_OF_TAG(i))
			tag = profile_find_tag(l, tag_kinds[i].key);
	if (view->fields & ROW_LABEL)
		tag = profile_find_tag(l, view->name);
	text = tag ? tag->text : NULL;

	if (!tag && view->fields & ROW_OF_TAG(TAG_TITLE))
		text = profile_tag_text(l, TAG_PROCESS) ?: l->comm;
	return (struct callgraph_key){
		.comm = text ?: "",
		.number = tag && !tag->text ? (uint64_t)tag->number + 1 : 0,
	};
}

/*
 * id: label_count for samples without labels. names: row_process_names() if only names identify
 * processes and threads; else NULL.
 */
static struct callgraph_key key_of_labels(const struct profile *p, const struct row_view *view,
					  const char *const *names, uint32_t id)
{
	static const struct profile_labels none = { .comm = "" };
	const struct profile_labels *l = id < p->label_count ? &p->labels[id] : &none;
	bool by_number = view->fields & ROW_PROCESS;
	bool threads = view->fields & ROW_THREAD || !by_number;

	if (view->fields & ROW_TAGS)
		return key_of_tag(view, l);
	if (names)
		return (struct callgraph_key){
			.comm = threads || l == &none ? l->comm : names[id],
		};
	/* Threads of one process can have names of their own, which are not part of its key. */
	return (struct callgraph_key){
		.comm = threads || !l->pid ? l->comm : NULL,
		.pid = by_number ? l->pid : 0,
		.tid = by_number && threads ? l->tid : 0,
		.generation = by_number ? l->generation : 0,
	};
}

void rows_match_labels(const struct profile *p, const struct row_view *view,
		       const struct callgraph_key *key, bool *labels)
{
	const struct callgraph_key wanted = {
		.comm = key->comm,
		.pid = key->pid,
		.tid = key->tid,
		.generation = key->generation,
		.number = key->number,
	};

	for (size_t i = 0; i <= p->label_count; i++) {
		const struct callgraph_key own = key_of_labels(p, view, NULL, i);

		labels[i] = callgraph_key_compare(&own, &wanted) == 0;
	}
}

/* The name of the thread or process of a node with these labels; names[] has that of a process. */
static const char *comm_of(const struct collector *c, uint32_t id)
{
	const struct profile_labels *l = &c->p->labels[id];

	if (id >= c->p->label_count)
		return "";
	if (c->o->view->fields & ROW_TAGS)
		return key_of_tag(c->o->view, l).comm;
	if (c->o->view->fields & ROW_PROCESS &&
	    (l->tid == l->pid || !(c->o->view->fields & ROW_THREAD)))
		return c->names[id];
	return l->comm;
}

/* Adds the wall times of threads to those of their nodes, which may be new. Returns 0 or -ENOMEM.
 */
static int add_walls(struct collector *c, const struct callgraph_places *places)
{
	const struct profile *p = c->p;
	struct callgraph *graph = &c->r->graph;
	uint32_t *nodes = calloc(p->wall_count, sizeof(*nodes));
	int err = nodes ? 0 : -ENOMEM;

	for (size_t i = 0; i < p->wall_count && !err; i++) {
		uint32_t labels = p->walls[i].labels;
		size_t before = graph->node_count;

		nodes[i] = CALLGRAPH_NONE;
		if (places->labels && !places->labels[labels])
			continue;
		err = callgraph_find(graph, &places->keys[labels], &nodes[i]);
		if (graph->node_count > before)
			graph->nodes[before].labels = labels;
	}
	c->r->walls = err ? NULL : calloc(graph->node_count + 1, sizeof(*c->r->walls));
	for (size_t i = 0; i < p->wall_count && c->r->walls; i++)
		if (nodes[i] != CALLGRAPH_NONE)
			profile_sum_wall(&c->r->walls[nodes[i]], &p->walls[i]);
	free(nodes);
	return c->r->walls ? 0 : -ENOMEM;
}

/* Excludes code and threads that are not wanted from the counts. Returns 0 or -ENOMEM. */
static int exclude_unwanted(struct collector *c, struct callgraph_places *places)
{
	const struct rows_options *o = c->o;
	const struct profile *p = c->p;

	for (uint32_t i = 0; i < p->location_count && o->image; i++)
		for (uint32_t place = places->first[i]; place < places->first[i + 1]; place++)
			if (!is_wanted_image(c, i))
				places->nodes[place] = CALLGRAPH_NONE;
	places->no_pc_excluded = !is_wanted_image(c, PROFILE_NONE);
	places->weights = o->weights;
	if (!o->labels)
		return 0;
	places->labels = calloc(p->label_count + 1, sizeof(*places->labels));
	if (!places->labels)
		return -ENOMEM;
	memcpy(places->labels, o->labels, (p->label_count + 1) * sizeof(*places->labels));
	return 0;
}

static bool is_in_doubt(const struct profile *p, size_t labels)
{
	return labels < p->label_count && profile_tag_text(&p->labels[labels], TAG_IN_DOUBT);
}

/* Counts what is in doubt of the first value, in a column of its own. Returns 0 or -ENOMEM. */
static int add_doubt(struct collector *c, struct callgraph_places *places)
{
	size_t label_count = c->p->label_count + 1;
	struct row_column *column = &c->r->columns[c->doubt];
	bool *all = places->labels, *labels = calloc(label_count, sizeof(*labels));
	int err = labels ? 0 : -ENOMEM;

	column->title = strdup("in doubt");
	for (size_t i = 0; i < label_count && !err; i++)
		labels[i] = (!all || all[i]) && is_in_doubt(c->p, i);
	places->labels = labels;
	err = err ?: callgraph_count(&c->r->graph, places, c->values, 1, c->doubt);
	column->samples = c->r->graph.samples[c->doubt];
	places->labels = all;
	free(labels);
	return column->title ? err : -ENOMEM;
}

/* Returns the name of the labels' container; NULL: none. It may have got its name later. */
static const char *container_name_of(const struct profile *p, uint32_t labels)
{
	const char *name = profile_tag_text(&p->labels[labels], TAG_CONTAINER_NAME);
	const char *id = profile_tag_text(&p->labels[labels], TAG_CONTAINER);

	for (size_t i = 0; i < p->label_count && id && !name; i++) {
		const char *other = profile_tag_text(&p->labels[i], TAG_CONTAINER);

		if (other && strcmp(other, id) == 0)
			name = profile_tag_text(&p->labels[i], TAG_CONTAINER_NAME);
	}
	return name;
}

/* Adds the rows and counts of c->values to c->r. Returns 0 or -ENOMEM. */
static int add_values(struct collector *c)
{
	struct rows *r = c->r;
	struct row_column *columns = r->columns + c->column;
	enum profile_stacks stacks = profile_stacks_unfiltered(c->p, c->o->filtered);
	size_t label_count = c->p->label_count + 1;
	struct callgraph_places places = { 0 };
	int err = 0;

	for (size_t i = 0; i < c->count && !err; i++) {
		if (r->graph.options.counts_calls)
			columns[i].title = strdup("calls");
		else
			columns[i].title = rows_title(c->p, c->values[i]);
		err = columns[i].title ? 0 : -ENOMEM;
	}
	if (err)
		goto out;
	err = callgraph_place(&r->graph, c->p, &places);
	err = err ?: exclude_unwanted(c, &places);
	if (!err && r->view->fields & (ROW_COMM | ROW_TAGS)) {
		/* Divide the nodes by labels. */
		c->names = calloc(label_count, sizeof(*c->names));
		places.keys = calloc(label_count, sizeof(*places.keys));
		if (!c->names || !places.keys || row_process_names(c->p, c->names))
			err = -ENOMEM;
		for (size_t i = 0; !err && i < label_count; i++)
			places.keys[i] = key_of_labels(c->p, c->o->view,
						       c->o->base_names ? c->names : NULL, i);
	}
	err = err ?: callgraph_count(&r->graph, &places, c->values, c->count, c->column);
	if (!err && c->doubt)
		err = add_doubt(c, &places);
	/* They are of threads, not of code. */
	if (!err && c->wants_walls && c->p->wall_count && places.keys && !c->o->image &&
	    !(r->view->fields & ROW_WITHOUT_WALL))
		err = add_walls(c, &places);
	err = err ?: array_reserve(&r->rows, &r->room, r->graph.node_count + 1, sizeof(*r->rows));
	/* A row for each node that has none yet. */
	for (; !err && r->count < r->graph.node_count; r->count++) {
		const struct callgraph_node *node = &r->graph.nodes[r->count];
		uint32_t location = node->location;
		bool inlined = location != PROFILE_NONE && c->p->locations[location].line_count > 1;
		struct row *row = &r->rows[r->count];

		*row = (struct row){ .comm = c->names ? comm_of(c, node->labels) : "" };
		if (c->names && c->o->view->fields & ROW_OF_TAG(TAG_CONTAINER) &&
		    node->labels < c->p->label_count)
			row->container_name = container_name_of(c->p, node->labels);
		if (row->container_name) {
			const char *slash = strrchr(row->comm, '/');
			int owner = slash ? (int)(slash + 1 - row->comm) : 0;

			if (asprintf(&row->shown_container, "%.*s%s (%.12s)", owner, row->comm,
				     row->container_name, row->comm + owner) < 0)
				row->shown_container = NULL; /* its ID alone is shown */
		}
		if (c->o->extents && location != PROFILE_NONE && !inlined)
			row->function_start = c->o->extents[location].start;
	}
	if (r->graph.options.fields) {
		if (!(r->view->fields & ROW_STATE))
			r->stacks |= stacks == PROFILE_CALL_STACKS ||
				     (stacks && callgraph_separates_inlined(&r->graph));
		for (size_t i = 0; i < c->count && !stacks; i++)
			r->stacks |= callgraph_calls_have_cost(c->p, c->values[i]);
	}
out:
	for (size_t i = 0; i < c->count; i++) {
		columns[i].samples = profile_filtered_sum(c->o->filtered, c->values[i]);
		columns[i].samples += r->graph.samples[c->column + i];
	}
	free(c->names);
	free(places.labels);
	free(places.keys);
	callgraph_places_free(&places);
	return err;
}

char *rows_title(const struct profile *p, size_t value)
{
	const struct profile_value_type *type = &p->value_types[value];
	bool counts = !p->value_type_count || !*type->unit || strcmp(type->unit, "count") == 0;
	char *title;

	if (counts && (!p->value_type_count || !*type->type))
		return strdup("samples");
	if (asprintf(&title, "%s%s%s", type->type, counts ? "" : "/", counts ? "" : type->unit) < 0)
		return NULL;
	return title;
}

int rows_begin(struct rows *r, const struct rows_options *o, size_t column_count)
{
	const struct row_view *view = o->view ?: row_views;
	const struct callgraph_options options = {
		.fields = view->fields & ROW_CODE,
		.column_count = column_count,
		.unknown = row_unknown,
		.image_name = o->base_names ? row_image_of_any_run : NULL,
	};

	*r = (struct rows){
		.view = o->base_names ? row_view_of_any_run(view) : view,
		.column_count = column_count,
		.by_total = o->by_total,
		.by_wall = o->by_wall,
	};
	r->columns = calloc(column_count, sizeof(*r->columns));
	return r->columns ? callgraph_init(&r->graph, &options) : -ENOMEM;
}

int rows_add(struct rows *r, const struct profile *p, const struct rows_options *o, size_t value,
	     size_t column)
{
	struct collector c = {
		.p = p,
		.o = o,
		.r = r,
		.values = &value,
		.count = 1,
		.column = column,
		.wants_walls = o->walls,
	};

	return add_values(&c);
}

/* Returns row->name, or NULL when memory runs out. A new string is stored in *made. */
static const char *make_row_name(const struct row *row, bool offsets, char **made)
{
	const struct callgraph_key *key = row->key;
	int n;

	if (key->function && key->state && strcmp(key->function, key->state) == 0)
		return "[no stack]";
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

int rows_compare(const void *one, const void *other)
{
	const struct row *a = one, *b = other;
	int order = compare_u64(magnitude(b->counts->self), magnitude(a->counts->self));

	order = order ?: compare_u64(magnitude(b->counts->total), magnitude(a->counts->total));
	if (!order && a->wall && b->wall)
		order = compare_u64(b->wall->wall_ns, a->wall->wall_ns);
	if (!order && a->name)
		order = strcmp(a->name, b->name);
	return order ?: callgraph_key_compare(a->key, b->key);
}

ORDER(compare_totals, struct row,
      compare_u64(magnitude(b->counts->total), magnitude(a->counts->total)) ?: rows_compare(a, b))

ORDER(compare_times, struct row, LEAST(key->number))

static int compare_walls(const void *one, const void *other, void *member)
{
	const struct row *a = one, *b = other;
	const size_t offset = *(const size_t *)member;

	return compare_u64(*(const uint64_t *)((const char *)b->wall + offset),
			   *(const uint64_t *)((const char *)a->wall + offset))
		       ?: rows_compare(a, b);
}

int rows_finish(struct rows *r)
{
	int (*compare)(const void *one, const void *other) = rows_compare;
	int64_t cumulative = 0;
	size_t kept = 0;

	if (r->view->fields & ROW_OF_TAG(TAG_TIME))
		compare = compare_times;
	else if (r->by_total)
		compare = compare_totals;
	/* Drop the rows of functions that only occur in calls without a cost. */
	for (size_t i = 0; i < r->count; i++) {
		const struct callgraph_cost *counts = &r->graph.costs[i * r->column_count];
		bool empty = true;

		for (size_t j = 0; j < r->column_count; j++)
			empty &= !counts[j].self && !counts[j].weight;
		if (empty && !(r->walls && r->walls[i].threads)) {
			free(r->rows[i].shown_container);
			continue;
		}
		r->rows[kept] = r->rows[i];
		r->rows[kept].wall = r->walls ? &r->walls[i] : NULL;
		r->rows[kept].key = &r->graph.nodes[i].key;
		r->rows[kept++].counts = counts;
	}
	r->count = kept;
	for (size_t i = 0; i < r->count && (r->view->fields & ROW_FUNCTION); i++) {
		struct row *row = &r->rows[i];

		row->name = make_row_name(row, r->view->fields & ROW_ADDRESS, &row->made_name);
		if (!row->name)
			return -ENOMEM;
	}
	if (r->by_wall && r->walls)
		qsort_r(r->rows, r->count, sizeof(*r->rows), compare_walls, &r->by_wall);
	else if (r->count)
		qsort(r->rows, r->count, sizeof(*r->rows), compare);
	for (size_t i = 0; i < r->count; i++) {
		add_i64(&cumulative, r->rows[i].counts->self);
		r->rows[i].cumulative = cumulative;
	}
	return 0;
}

void rows_drop_zero(struct rows *r)
{
	for (; r->count; r->count--) {
		struct row *last = &r->rows[r->count - 1];

		if (last->counts->self || last->counts->total || last->wall)
			return;
		free(last->made_name);
		free(last->shown_container);
	}
}

size_t rows_shown(const struct rows *r, size_t limit, double percent)
{
	double least = (double)r->columns->samples * percent / 100;
	size_t count = limit && limit < r->count ? limit : r->count;

	while (count > 0) {
		const struct callgraph_cost *last = r->rows[count - 1].counts;

		if ((double)magnitude(r->by_total ? last->total : last->self) >= least)
			break;
		count--;
	}
	return count;
}

size_t rows_values(const struct profile *p, const char *type, size_t *values)
{
	size_t count = 0;

	values[count++] = profile_value(p, type);
	for (size_t i = 0; i < p->value_type_count; i++)
		if (i != values[0] && strcmp(p->value_types[i].unit, "count") == 0 &&
		    !p->value_types[i].formula[0])
			values[count++] = i;
	return count;
}

bool rows_count_calls(const struct profile *p, const struct rows_options *o)
{
	if (o->value || (o->filtered && o->filtered->values))
		return false;
	for (size_t i = 0; i < p->sample_count * p->value_type_count; i++)
		if (p->values[i])
			return false;
	for (size_t i = 0; i < p->arc_count; i++)
		if (p->arcs[i].kind == PROFILE_CALL && p->arcs[i].count)
			return true;
	return false;
}

int rows_collect(struct rows *r, const struct profile *p, const struct rows_options *o)
{
	size_t *values = calloc(p->value_type_count + 1, sizeof(*values));
	bool calls = rows_count_calls(p, o);
	size_t count = values && !calls ? rows_values(p, o->value, values) : 1, delay = 0, cpu = 0;
	struct collector c = { .p = p, .o = o, .r = r, .values = values, .wants_walls = true };
	int err;

	if (o->cpu && values && !calls &&
	    profile_find_sum(p, PROFILE_SUM_CPU) < p->value_type_count) {
		cpu = count;
		values[count++] = profile_find_sum(p, PROFILE_SUM_CPU);
	}
	if (o->delay && values && !calls &&
	    profile_find_sum(p, PROFILE_SUM_DELAY) < p->value_type_count &&
	    values[0] != profile_find_sum(p, PROFILE_SUM_DELAY)) {
		delay = count;
		values[count++] = profile_find_sum(p, PROFILE_SUM_DELAY);
	}
	c.count = count;
	for (size_t i = 0; i < p->label_count && !calls && !c.doubt; i++)
		if (is_in_doubt(p, i))
			c.doubt = count;
	err = rows_begin(r, o, count + (c.doubt > 0));
	r->delay = delay;
	r->cpu = cpu;
	r->doubt = c.doubt;
	r->graph.options.counts_calls = calls;
	if (!err)
		err = values ? add_values(&c) : -ENOMEM;
	free(values);
	return err ?: rows_finish(r);
}

void rows_free(struct rows *r)
{
	for (size_t i = 0; i < r->count; i++) {
		free(r->rows[i].made_name);
		free(r->rows[i].shown_container);
	}
	for (size_t i = 0; r->columns && i < r->column_count; i++)
		free(r->columns[i].title);
	free(r->columns);
	free(r->walls);
	free(r->rows);
	callgraph_free(&r->graph);
	*r = (struct rows){ 0 };
}
