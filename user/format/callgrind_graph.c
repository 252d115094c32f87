// SPDX-License-Identifier: GPL-2.0-only
#include "format/callgrind_graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/sum.h"

static const char unknown[] = GRAPH_UNKNOWN;
static const char root_name[] = GRAPH_ROOT;
static const char no_pc_name[] = "[no pc]";

/* A sample that is being added. */
struct stack {
	size_t sample;
	const uint32_t *frames; /* leaf first */
	uint32_t depth;
	const int64_t *values; /* of all types */
	uint64_t calls;	       /* that stand for it: there is at least one to each cost */
};

/*
 * Adds the values of a sample or arc, whose columns they are. Negative ones, as differences of
 * profiles have them, count as 0: no reader takes them.
 */
static void add_costs(const struct graph *g, int64_t *costs, const int64_t *values)
{
	for (size_t i = 0; i < g->column_count; i++)
		if (values[g->columns[i]] > 0)
			add_i64(&costs[i], values[g->columns[i]]);
}

/* Strings of the profile are interned: equal ones are the same pointer. */
static bool name_equal(const void *array, uint32_t id, const void *key)
{
	const struct graph_name *names = array;

	return names[id].text == key;
}

static uint64_t name_hash(const char *text)
{
	return hash_u64((uintptr_t)text, 0);
}

static int find_name(struct graph_names *n, const char *text, uint32_t *id)
{
	if (!text || !*text || strcmp(text, unknown) == 0)
		text = unknown;
	*id = index_find(&n->index, name_hash(text), name_equal, n->names, text);
	if (*id != INDEX_NONE)
		return 0;
	if (array_reserve(&n->names, &n->room, n->count + 1, sizeof(*n->names)) ||
	    index_add(&n->index, name_hash(text), n->count))
		return -ENOMEM;
	*id = n->count++;
	n->names[*id] = (struct graph_name){ .text = text };
	return 0;
}

static bool position_equal(const void *array, uint32_t id, const void *key)
{
	const struct graph_position *a = (const struct graph_position *)array + id, *b = key;

	return a->function == b->function && a->file == b->file && a->line == b->line &&
	       a->address == b->address;
}

static int find_position(struct graph *g, const struct graph_position *key, uint32_t *id)
{
	uint64_t hash = hash_u64((uint64_t)key->function << 32 | key->line, key->file);

	hash = hash_u64(key->address, hash);
	*id = index_find(&g->position_index, hash, position_equal, g->positions, key);
	if (*id != INDEX_NONE)
		return 0;
	if (array_reserve(&g->positions, &g->position_room, g->position_count + 1,
			  sizeof(*g->positions)) ||
	    array_reserve(&g->position_costs, &g->position_cost_room, g->position_count + 1,
			  (g->column_count ?: 1) * sizeof(*g->position_costs)) ||
	    index_add(&g->position_index, hash, g->position_count))
		return -ENOMEM;
	*id = g->position_count++;
	g->positions[*id] = *key;
	return 0;
}

static bool function_equal(const void *array, uint32_t id, const void *key)
{
	const struct graph_function *a = (const struct graph_function *)array + id, *b = key;

	return a->name == b->name && a->file == b->file && a->object == b->object &&
	       a->address == b->address;
}

/* The function with the object, file, name and address of `key`: found, or made with its entry. */
static int find_function(struct graph *g, const struct graph_function *key, uint32_t start_line,
			 uint32_t *id)
{
	uint64_t hash = hash_u64((uintptr_t)key->name, (uint64_t)key->object << 32 | key->file);
	struct graph_position entry = { .file = key->file, .line = start_line };

	hash = hash_u64(key->address, hash);
	*id = index_find(&g->function_index, hash, function_equal, g->functions, key);
	if (*id != INDEX_NONE)
		return 0;
	if (array_reserve(&g->functions, &g->function_room, g->function_count + 1,
			  sizeof(*g->functions)) ||
	    index_add(&g->function_index, hash, g->function_count))
		return -ENOMEM;
	entry.function = *id = g->function_count++;
	g->functions[*id] = *key;
	if (!key->name && g->addresses)
		entry.address = key->address;
	return find_position(g, &entry, &g->functions[*id].entry);
}

/* The only position of a function that is in no file. */
static int find_synthetic(struct graph *g, const char *name, uint32_t *position)
{
	struct graph_function key = { .name = name };
	uint32_t function;

	if (find_name(&g->objects, NULL, &key.object) || find_name(&g->files, NULL, &key.file) ||
	    find_function(g, &key, 0, &function))
		return -ENOMEM;
	*position = g->functions[function].entry;
	return 0;
}

static int find_object(struct graph *g, uint32_t location, uint32_t *object)
{
	const struct profile_image *image = profile_location_image(g->p, location);

	return find_name(&g->objects, image ? image->path : NULL, object);
}

static int add_line_position(struct graph *g, uint32_t location, uint32_t line_id)
{
	const struct profile_line *line = &g->p->lines[line_id];
	const struct profile_function *from = &g->p->functions[line->function];
	struct graph_function key = { .name = from->name };
	struct graph_position position = { .line = line->line };

	if (find_object(g, location, &key.object) || find_name(&g->files, from->file, &key.file) ||
	    find_name(&g->files, line->file ?: from->file, &position.file) ||
	    find_function(g, &key, from->start_line, &position.function))
		return -ENOMEM;
	if (g->addresses)
		position.address = g->p->locations[location].image_address;
	return find_position(g, &position, &g->line_positions[line_id]);
}

static int add_unnamed_position(struct graph *g, uint32_t location)
{
	struct graph_function key = { .address = g->p->locations[location].image_address };
	uint32_t function;

	if (find_object(g, location, &key.object) || find_name(&g->files, NULL, &key.file) ||
	    find_function(g, &key, 0, &function))
		return -ENOMEM;
	g->location_positions[location] = g->functions[function].entry;
	return 0;
}

static int add_positions(struct graph *g)
{
	int err = 0;

	for (uint32_t i = 0; i < g->p->location_count && !err; i++) {
		const struct profile_location *l = &g->p->locations[i];

		if (!l->line_count)
			err = add_unnamed_position(g, i);
		for (uint32_t j = 0; j < l->line_count && !err; j++)
			err = add_line_position(g, i, l->first_line + j);
	}
	return err;
}

/* The position of a location's line, innermost first; of the location when it has none. */
static uint32_t position_of(const struct graph *g, uint32_t location, uint32_t line)
{
	const struct profile_location *l = &g->p->locations[location];

	return l->line_count ? g->line_positions[l->first_line + line]
			     : g->location_positions[location];
}

static bool arc_equal(const void *array, uint32_t id, const void *key)
{
	const struct graph_arc *a = (const struct graph_arc *)array + id, *b = key;

	return a->from == b->from && a->to == b->to && a->kind == b->kind;
}

static int new_arc(struct graph *g, const struct graph_arc *key, uint64_t hash, uint32_t *id)
{
	if (array_reserve(&g->arcs, &g->arc_room, g->arc_count + 1, sizeof(*g->arcs)) ||
	    array_reserve(&g->arc_costs, &g->arc_cost_room, g->arc_count + 1,
			  (g->column_count ?: 1) * sizeof(*g->arc_costs)) ||
	    index_add(&g->arc_index, hash, g->arc_count))
		return -ENOMEM;
	*id = g->arc_count++;
	g->arcs[*id] = (struct graph_arc){ key->from, key->to, key->kind, 0, 0 };
	g->positions[key->from].arc_count++;
	return 0;
}

/* Adds counts and costs to the arc with the ends and kind of `arc`, which is made when new. */
static int add_arc(struct graph *g, const struct graph_arc *arc, const int64_t *values)
{
	uint64_t hash = hash_u64((uint64_t)arc->from << 32 | arc->to, arc->kind);
	uint32_t id = index_find(&g->arc_index, hash, arc_equal, g->arcs, arc);

	if (id == INDEX_NONE && new_arc(g, arc, hash, &id))
		return -ENOMEM;
	add_u64(&g->arcs[id].count, arc->count);
	add_u64(&g->arcs[id].executed, arc->executed);
	add_costs(g, g->arc_costs + id * g->column_count, values);
	return 0;
}

/* Counts the call of a function from a position, but for its callers further in. */
static int add_call(struct graph *g, const struct stack *s, uint32_t from, uint32_t to)
{
	uint32_t function = g->positions[to].function;
	struct graph_arc call = { .from = from, .count = s->calls };

	if (g->last_sample[function] == s->sample + 1)
		return 0;
	g->last_sample[function] = s->sample + 1;
	call.to = g->functions[function].entry;
	return add_arc(g, &call, s->values);
}

/* Adds the calls of a stack, from the root to the leaf. */
static int add_calls(struct graph *g, const struct stack *s)
{
	uint32_t caller = g->root;
	int err = 0;

	for (uint32_t i = s->depth; i-- > 0 && !err;) {
		uint32_t line = g->p->locations[s->frames[i]].line_count ?: 1;

		while (line-- > 0 && !err) {
			uint32_t position = position_of(g, s->frames[i], line);

			err = add_call(g, s, caller, position);
			caller = position;
		}
	}
	return s->depth ? err : add_call(g, s, g->root, g->no_pc);
}

static bool has_cost(const struct graph *g, const int64_t *values)
{
	for (size_t i = 0; i < g->column_count; i++)
		if (values[g->columns[i]] > 0)
			return true;
	return false;
}

static int add_sample(struct graph *g, size_t sample)
{
	const struct profile *p = g->p;
	struct stack s = { .sample = sample,
			   .frames = p->frames + p->samples[sample].first_frame,
			   .depth = p->samples[sample].depth,
			   .values = p->values + sample * p->value_type_count,
			   .calls = 1 };
	uint32_t leaf;

	if (!has_cost(g, s.values))
		return 0;
	if (g->samples_value < p->value_type_count && s.values[g->samples_value] > 0)
		s.calls = s.values[g->samples_value];
	leaf = s.depth ? position_of(g, s.frames[0], 0) : g->no_pc;
	add_costs(g, g->totals, s.values);
	add_costs(g, g->position_costs + leaf * g->column_count, s.values);
	return g->stacks ? add_calls(g, &s) : 0;
}

static int add_samples(struct graph *g)
{
	int err = find_synthetic(g, no_pc_name, &g->no_pc);

	g->last_sample = calloc(g->function_count, sizeof(*g->last_sample));
	if (!g->last_sample)
		return -ENOMEM;
	for (size_t i = 0; i < g->p->sample_count && !err; i++)
		err = add_sample(g, i);
	return err;
}

/* A call comes from the innermost function at its pc, and goes to the one whose code begins. */
static int add_profile_arcs(struct graph *g)
{
	const struct profile *p = g->p;
	int err = 0;

	for (size_t i = 0; i < p->arc_count && !err; i++) {
		const struct profile_arc *a = &p->arcs[i];
		uint32_t lines = p->locations[a->to].line_count;
		uint32_t line = a->kind == PROFILE_CALL && lines ? lines - 1 : 0;
		struct graph_arc arc = { .from = position_of(g, a->from, 0),
					 .to = position_of(g, a->to, line),
					 .kind = a->kind,
					 .count = a->count,
					 .executed = a->executed };

		err = add_arc(g, &arc, p->arc_values + i * p->value_type_count);
	}
	return err;
}

static void add_columns(struct graph *g, bool counted)
{
	for (size_t i = 0; i < g->p->value_type_count; i++)
		if (!*g->p->value_types[i].formula == counted)
			g->columns[g->column_count++] = i;
}

/* What follows from others by a formula is a column only if there is nothing else. */
static int choose_columns(struct graph *g)
{
	g->columns = calloc(g->p->value_type_count + 1, sizeof(*g->columns));
	if (!g->columns)
		return -ENOMEM;
	add_columns(g, true);
	if (!g->column_count)
		add_columns(g, false);
	g->totals = calloc(g->column_count + 1, sizeof(*g->totals));
	return g->totals ? 0 : -ENOMEM;
}

static size_t find_samples_value(const struct profile *p)
{
	size_t value = 0;

	while (value < p->value_type_count && strcmp(p->value_types[value].type, "samples") != 0)
		value++;
	return value;
}

static bool arcs_have_cost(const struct graph *g)
{
	for (size_t i = 0; i < g->arc_count * g->column_count; i++)
		if (g->arc_costs[i])
			return true;
	return false;
}

/* Sorts by counting: a position's are as many as it has counted, behind the former ones'. */
static int order_arcs(struct graph *g)
{
	uint32_t next = 0;

	g->arc_order = calloc(g->arc_count + 1, sizeof(*g->arc_order));
	if (!g->arc_order)
		return -ENOMEM;
	for (size_t i = 0; i < g->position_count; i++) {
		g->positions[i].first_arc = next;
		next += g->positions[i].arc_count;
		g->positions[i].arc_count = 0;
	}
	for (size_t i = 0; i < g->arc_count; i++) {
		struct graph_position *from = &g->positions[g->arcs[i].from];

		g->arc_order[from->first_arc + from->arc_count++] = i;
	}
	return 0;
}

int graph_build(struct graph *g, const struct profile *p, bool addresses)
{
	*g = (struct graph){ .p = p,
			     .addresses = addresses,
			     .samples_value = find_samples_value(p) };
	g->line_positions = calloc(p->line_count + 1, sizeof(*g->line_positions));
	g->location_positions = calloc(p->location_count + 1, sizeof(*g->location_positions));
	if (!g->line_positions || !g->location_positions)
		return -ENOMEM;
	g->stacks = profile_stacks(p) != PROFILE_NO_STACKS;
	if (choose_columns(g) || (g->stacks && find_synthetic(g, root_name, &g->root)) ||
	    add_positions(g) || add_samples(g))
		return -ENOMEM;
	if (!g->stacks && add_profile_arcs(g))
		return -ENOMEM;
	if (g->arc_count && !arcs_have_cost(g) && graph_estimate_costs(g))
		return -ENOMEM;
	return order_arcs(g);
}

bool graph_has_object(const struct graph *g, const char *path)
{
	const struct graph_names *n = &g->objects;

	return index_find(&n->index, name_hash(path), name_equal, n->names, path) != INDEX_NONE;
}

bool graph_position_has_cost(const struct graph *g, uint32_t position)
{
	const int64_t *costs = g->position_costs + position * g->column_count;

	for (size_t i = 0; i < g->column_count; i++)
		if (costs[i])
			return true;
	return false;
}

bool graph_position_used(const struct graph *g, uint32_t position)
{
	return g->positions[position].arc_count || graph_position_has_cost(g, position);
}

static void free_names(struct graph_names *n)
{
	free(n->names);
	index_free(&n->index);
}

void graph_free(struct graph *g)
{
	free(g->columns);
	free(g->totals);
	free_names(&g->objects);
	free_names(&g->files);
	free(g->functions);
	free(g->positions);
	free(g->position_costs);
	free(g->arcs);
	free(g->arc_costs);
	free(g->arc_order);
	free(g->last_sample);
	free(g->line_positions);
	free(g->location_positions);
	index_free(&g->function_index);
	index_free(&g->position_index);
	index_free(&g->arc_index);
}
