// SPDX-License-Identifier: GPL-2.0-only
#include "profile/callgraph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/image_name.h"
#include "profile/thread_state.h"
#include "util/array.h"
#include "util/sum.h"

/* State of a node during the walk from callers to callees. */
struct walked {
	uint32_t first, end; /* its calls are walk.calls[first .. end] */
	uint32_t next;	     /* of these, the one that is walked next */
	uint32_t left; /* its place in the order in which the walk leaves nodes; 0: not left yet */
	bool entered, is_called;
	uint64_t called; /* calls from callers that share its cost */
	uint64_t shared; /* of these, the calls that have their share */
};

struct walk {
	struct callgraph *g;
	struct walked *nodes;
	uint32_t *calls; /* edges that are calls, sorted by caller */
	uint32_t *path;	 /* nodes, each called by the one before it */
	uint32_t *order; /* nodes as they were left: what is called before its callers */
	uint32_t path_size, order_size;
	int64_t *totals; /* column_count of each node: self, and the calls that it made */
};

static uint32_t caller_of(const struct callgraph *g, uint32_t edge)
{
	return g->positions.all[g->edges.all[edge].from].node;
}

static uint32_t callee_of(const struct callgraph *g, uint32_t edge)
{
	return g->positions.all[g->edges.all[edge].to].node;
}

static uint64_t count_of(const struct callgraph *g, uint32_t edge)
{
	return g->edges.all[edge].count ?: 1;
}

/* True if a call closes a cycle: its callee was on the path to its caller. After the walk only. */
static bool is_circular(const struct walk *w, uint32_t edge)
{
	return w->nodes[callee_of(w->g, edge)].left >= w->nodes[caller_of(w->g, edge)].left;
}

static void enter_node(struct walk *w, uint32_t node)
{
	if (w->nodes[node].entered)
		return;
	w->nodes[node].entered = true;
	w->path[w->path_size++] = node;
}

static void walk_from(struct walk *w, uint32_t node)
{
	enter_node(w, node);
	while (w->path_size) {
		struct walked *last = &w->nodes[w->path[w->path_size - 1]];

		if (last->next < last->end) {
			enter_node(w, callee_of(w->g, w->calls[last->next++]));
			continue;
		}
		w->order[w->order_size++] = w->path[--w->path_size];
		last->left = w->order_size;
	}
}

/* The share of a cost that the first `part` of `whole` calls have. */
static int64_t cost_share(int64_t cost, uint64_t part, uint64_t whole)
{
	return (__int128)cost * part / whole;
}

/* Gives each call its share of the callee's cost. The shares add up to it exactly. */
static void set_costs(struct walk *w)
{
	struct callgraph *g = w->g;
	size_t columns = g->options.column_count;

	for (uint32_t i = 0; i < g->edges.count; i++)
		if (g->edges.all[i].kind == PROFILE_CALL && !is_circular(w, i))
			add_u64(&w->nodes[callee_of(g, i)].called, count_of(g, i));
	for (size_t i = 0; i < g->node_count * columns; i++)
		w->totals[i] = g->costs[i].self;
	for (uint32_t i = 0; i < w->order_size; i++) {
		uint32_t caller = w->order[i];

		for (uint32_t j = w->nodes[caller].first; j < w->nodes[caller].end; j++) {
			uint32_t edge = w->calls[j], callee = callee_of(g, edge);
			uint64_t whole = w->nodes[callee].called;
			uint64_t before = w->nodes[callee].shared, after = before;

			if (is_circular(w, edge))
				continue;
			add_u64(&after, count_of(g, edge));
			w->nodes[callee].shared = after;
			for (size_t k = 0; k < columns; k++) {
				int64_t total = w->totals[callee * columns + k];
				int64_t cost = cost_share(total, after, whole) -
					       cost_share(total, before, whole);

				g->edge_costs[edge * columns + k] = cost;
				add_i64(&w->totals[caller * columns + k], cost);
			}
		}
	}
}

/*
 * Estimates the costs of edges in a graph where none has any: divides the
 * cost of a node and its callees among the edges to it in proportion to their counts, as gprof
 * does. An edge that closes a cycle gets nothing, so that no node exceeds the sum of all samples.
 * Returns 0 or -ENOMEM.
 */
static int callgraph_estimate(struct callgraph *g)
{
	struct walk w = {
		.g = g,
		.nodes = calloc(g->node_count + 1, sizeof(*w.nodes)),
		.calls = calloc(g->edges.count + 1, sizeof(*w.calls)),
		.path = calloc(g->node_count + 1, sizeof(*w.path)),
		.order = calloc(g->node_count + 1, sizeof(*w.order)),
		.totals = calloc(g->node_count + 1, g->options.column_count * sizeof(*w.totals)),
	};
	int err = w.nodes && w.calls && w.path && w.order && w.totals ? 0 : -ENOMEM;
	uint32_t end = 0;

	if (err)
		goto out;
	/* Sort the calls by their caller, by counting. */
	for (uint32_t i = 0; i < g->edges.count; i++)
		if (g->edges.all[i].kind == PROFILE_CALL)
			w.nodes[caller_of(g, i)].end++;
	for (uint32_t i = 0; i < g->node_count; i++) {
		end += w.nodes[i].end;
		w.nodes[i].first = w.nodes[i].end = end;
	}
	for (uint32_t i = g->edges.count; i-- > 0;)
		if (g->edges.all[i].kind == PROFILE_CALL)
			w.calls[--w.nodes[caller_of(g, i)].first] = i;
	for (uint32_t i = 0; i < g->node_count; i++)
		w.nodes[i].next = w.nodes[i].first;
	/* Starts at nodes without callers: cycles are entered where the program enters them. */
	for (uint32_t i = 0; i < g->edges.count; i++)
		if (g->edges.all[i].kind == PROFILE_CALL && caller_of(g, i) != callee_of(g, i))
			w.nodes[callee_of(g, i)].is_called = true;
	for (uint32_t i = 0; i < g->node_count; i++)
		if (!w.nodes[i].is_called)
			walk_from(&w, i);
	for (uint32_t i = 0; i < g->node_count; i++)
		walk_from(&w, i);
	set_costs(&w);
out:
	free(w.nodes);
	free(w.calls);
	free(w.path);
	free(w.order);
	free(w.totals);
	return err;
}

/* Bytes of keys: node to address, and from, to and kind. */
#define POSITION_KEY offsetof(struct callgraph_position, first_edge)
#define EDGE_KEY     (offsetof(struct callgraph_edge, kind) + sizeof(enum profile_arc_kind))

static uint64_t hash_text(const char *text, uint64_t seed)
{
	return text ? hash_bytes(text, strlen(text), seed) : seed + 1;
}

static int compare_text(const char *a, const char *b)
{
	if (a == b)
		return 0;
	if (!a || !b)
		return a ? 1 : -1;
	return strcmp(a, b);
}

int callgraph_key_compare(const struct callgraph_key *a, const struct callgraph_key *b)
{
	int order = compare_text(a->image, b->image);

	order = order ?: compare_text(a->source, b->source);
	order = order ?: compare_u64(a->line, b->line);
	order = order ?: compare_u64(a->address, b->address);
	order = order ?: compare_u64(a->pid, b->pid);
	order = order ?: compare_u64(a->generation, b->generation);
	order = order ?: compare_u64(a->tid, b->tid);
	order = order ?: compare_u64(a->number, b->number);
	order = order ?: compare_text(a->comm, b->comm);
	order = order ?: compare_text(a->state, b->state);
	return order ?: compare_text(a->function, b->function);
}

EQUAL(node_equal, struct callgraph_node, struct callgraph_key,
      callgraph_key_compare(&a->key, b) == 0)

int callgraph_find(struct callgraph *g, const struct callgraph_key *key, uint32_t *node)
{
	uint64_t hash = hash_text(key->function, hash_text(key->image, key->line));
	size_t count = g->node_count + 1;

	hash = hash_text(key->source, hash_u64(key->address, hash + key->generation));
	hash = hash_text(key->state, hash_text(key->comm, hash));
	hash = hash_u64((uint64_t)key->pid << 32 | key->tid, hash + key->number);
	*node = index_find(&g->node_index, hash, node_equal, g->nodes, key);
	if (*node != INDEX_NONE)
		return 0;
	if (array_reserve(&g->nodes, &g->node_room, count, sizeof(*g->nodes)) ||
	    (g->options.column_count &&
	     array_reserve(&g->costs, &g->cost_room, count,
			   g->options.column_count * sizeof(*g->costs))) ||
	    index_add(&g->node_index, hash, g->node_count))
		return -ENOMEM;
	*node = g->node_count++;
	g->nodes[*node] = (struct callgraph_node){
		.key = *key,
		.location = PROFILE_NONE,
		.entry = CALLGRAPH_NONE,
	};
	return 0;
}

static int find_position(struct callgraph *g, const struct callgraph_position *key, uint32_t *id)
{
	return table_add(&g->positions, key, POSITION_KEY, id)
		       ?: array_reserve(
				  &g->position_costs, &g->position_cost_room, g->positions.count,
				  (g->options.column_count ?: 1) * sizeof(*g->position_costs));
}

/* Adds the position where a node begins, if it has none yet. Returns 0 or -ENOMEM. */
static int add_entry(struct callgraph *g, uint32_t node, uint32_t start_line)
{
	const struct callgraph_key *key = &g->nodes[node].key;
	struct callgraph_position entry = { .node = node,
					    .line = start_line,
					    .source = key->source };

	if (g->nodes[node].entry != CALLGRAPH_NONE)
		return 0;
	if (!key->function && g->options.positions == CALLGRAPH_ADDRESSES)
		entry.address = key->address;
	return find_position(g, &entry, &g->nodes[node].entry);
}

/* State of callgraph_place(). */
struct placing {
	struct callgraph *g;
	const struct profile *p;
	struct callgraph_places *places;
	uint32_t count;
	/* A cache: the last node of each function, + 1 (0: none yet), and its image */
	struct {
		uint32_t node;
		const struct profile_image *image;
	} * last;
};

static const char *if_known(const struct callgraph *g, const char *text)
{
	return text && *text && strcmp(text, g->options.unknown) != 0 ? text : g->options.unknown;
}

static const char *source_of(const struct placing *c, const struct profile_line *line)
{
	return if_known(c->g, line->file ?: c->p->functions[line->function].file);
}

/*
 * Finds or makes the node of a line of a location; line: NULL when the location has none. Returns 0
 * or -ENOMEM.
 */
static int find_node(struct placing *c, uint32_t location, const struct profile_line *line,
		     uint32_t *id)
{
	const struct profile_function *function = line ? &c->p->functions[line->function] : NULL;
	const struct profile_image *file = profile_location_image(c->p, location);
	const char *image = if_known(c->g, file ? file->path : NULL);
	uint64_t address = c->p->locations[location].address;
	struct callgraph_key key = { 0 };
	struct callgraph *g = c->g;
	unsigned int fields = g->options.fields;
	size_t before = g->node_count;

	if (fields & CALLGRAPH_IMAGE)
		key.image = g->options.image_name ? g->options.image_name(image) : image;
	if (fields & CALLGRAPH_FUNCTION && line)
		key.function = function->name;
	if (fields & CALLGRAPH_FILE)
		key.source = if_known(g, line ? function->file : NULL);
	if (fields & CALLGRAPH_SOURCE)
		key.source = line ? source_of(c, line) : g->options.unknown;
	if (fields & CALLGRAPH_LINE && line)
		key.line = line->line;
	if (fields & CALLGRAPH_ADDRESS ||
	    (fields & CALLGRAPH_FUNCTION && !line && !(fields & CALLGRAPH_NO_ADDRESS)))
		key.address = c->p->locations[location].image_address;
	if (callgraph_find(g, &key, id))
		return -ENOMEM;
	if (*id == before) {
		g->nodes[*id].location = location;
		/* The kernel has the upper half of the addresses; [vsyscall] there is user code. */
		g->nodes[*id].kernel = image_is_in_kernel(image) ||
				       (address >> 63 && image_kind(image) != IMAGE_VSYSCALL);
		g->nodes[*id].inlined = true;
	}
	return 0;
}

/* find_node() with a cache: compares no texts when the function was last in the same image. */
static int find_function(struct placing *c, uint32_t location, const struct profile_line *line,
			 uint32_t *id)
{
	const struct profile_image *image = profile_location_image(c->p, location);
	unsigned int finer = CALLGRAPH_ADDRESS | CALLGRAPH_SOURCE | CALLGRAPH_LINE;
	int err;

	if (!line || c->g->options.fields & finer)
		return find_node(c, location, line, id);
	*id = c->last[line->function].node - 1;
	if (*id != CALLGRAPH_NONE && c->last[line->function].image == image)
		return 0;
	err = find_node(c, location, line, id);
	c->last[line->function].node = *id + 1;
	c->last[line->function].image = image;
	return err;
}

/*
 * Adds a node that is not code (the root, or samples without a pc) and sets its place. Returns 0 or
 * -ENOMEM.
 */
static int add_synthetic(struct placing *c, const char *name, uint32_t place)
{
	unsigned int fields = c->g->options.fields;
	struct callgraph_key key = {
		.function = fields & CALLGRAPH_FUNCTION ? name : NULL,
		.image = fields & CALLGRAPH_IMAGE ? c->g->options.unknown : NULL,
		.source =
			fields & (CALLGRAPH_SOURCE | CALLGRAPH_FILE) ? c->g->options.unknown : NULL,
	};
	uint32_t id;

	if (callgraph_find(c->g, &key, &id))
		return -ENOMEM;
	c->places->nodes[place] = id;
	if (!c->g->options.positions)
		return 0;
	if (add_entry(c->g, id, 0))
		return -ENOMEM;
	c->places->positions[place] = c->g->nodes[id].entry;
	return 0;
}

bool callgraph_separates_inlined(const struct callgraph *g)
{
	return g->options.fields & (CALLGRAPH_FUNCTION | CALLGRAPH_SOURCE) &&
	       !(g->options.fields & CALLGRAPH_ADDRESS);
}

static uint32_t places_at(const struct placing *c, uint32_t location)
{
	return callgraph_separates_inlined(c->g) ? c->p->locations[location].line_count ?: 1 : 1;
}

/* Makes the nodes and places of a location. */
static int add_location(struct placing *c, uint32_t location)
{
	const struct profile_location *l = &c->p->locations[location];
	uint32_t count = places_at(c, location);
	struct callgraph *g = c->g;

	for (uint32_t i = 0; i < count; i++) {
		const struct profile_line *line =
			l->line_count ? &c->p->lines[l->first_line + i] : NULL;
		struct callgraph_position position = { 0 };
		uint32_t start_line = line ? c->p->functions[line->function].start_line : 0;
		uint32_t id;

		if (find_function(c, location, line, &id))
			return -ENOMEM;
		g->nodes[id].inlined &= i + 1 < l->line_count;
		if (g->options.positions) {
			if (add_entry(g, id, start_line))
				return -ENOMEM;
			c->places->positions[c->count] = g->nodes[id].entry;
		}
		if (g->options.positions && line) {
			position.node = id;
			position.line = line->line;
			position.source = source_of(c, line);
			if (g->options.positions == CALLGRAPH_ADDRESSES)
				position.address = l->image_address;
			if (find_position(g, &position, &c->places->positions[c->count]))
				return -ENOMEM;
		}
		c->places->nodes[c->count++] = id;
	}
	c->places->first[location + 1] = c->count;
	return 0;
}

static uint32_t root_place(const struct callgraph_places *places)
{
	return places->first[places->p->location_count];
}

static uint32_t no_pc_place(const struct callgraph_places *places)
{
	return root_place(places) + 1;
}

int callgraph_place(struct callgraph *g, const struct profile *p, struct callgraph_places *places)
{
	struct placing c = { .g = g, .p = p, .places = places };
	size_t count = 2;
	int err = 0;

	c.last = calloc(p->function_count + 1, sizeof(*c.last));
	for (uint32_t i = 0; i < p->location_count; i++)
		count += places_at(&c, i);
	*places = (struct callgraph_places){
		.p = p,
		.first = calloc(p->location_count + 1, sizeof(*places->first)),
		.nodes = calloc(count, sizeof(*places->nodes)),
		.positions =
			g->options.positions ? calloc(count, sizeof(*places->positions)) : NULL,
	};
	if (!c.last || !places->first || !places->nodes ||
	    (g->options.positions && !places->positions))
		err = -ENOMEM;
	else if (g->options.positions && profile_stacks(p))
		err = add_synthetic(&c, CALLGRAPH_ROOT, count - 2);
	for (uint32_t i = 0; i < p->location_count && !err; i++)
		err = add_location(&c, i);
	free(c.last);
	return err;
}

void callgraph_places_free(struct callgraph_places *places)
{
	free(places->first);
	free(places->nodes);
	free(places->positions);
}

/* The samples of a node with one set of labels and one state: a node of their own. */
struct part {
	uint32_t whole, labels;
	uint32_t state; /* the number of the function that stands for it, + 1 */
	uint32_t node;
};

/* State of callgraph_count(). */
struct counter {
	struct callgraph *g;
	const struct callgraph_places *places;
	const struct profile *p;
	const size_t *asked;  /* numbers of the values */
	const size_t *values; /* the same, in `costs` */
	size_t count, column;
	bool stacks;
	bool has_base;	     /* profile_has_base() */
	size_t calls_value;  /* number of the type "samples", or value_type_count */
	size_t *last_sample; /* of each node: number + 1 of the last sample that had it */
	size_t last_room;
	TABLE(struct part) parts; /* with places->keys */
	uint32_t labels;	  /* of this sample or arc; label_count: none */
	uint32_t state;		  /* of this sample: as in struct part; 0: on a CPU, or not asked */
	size_t sample;		  /* number + 1 of this sample */
	const int64_t *costs;	  /* of this sample or arc, all value types */
	uint64_t calls;		  /* how many calls this sample stands for: at least one */
};

/*
 * Finds or makes the node of a place for the labels of this sample or arc; *node is CALLGRAPH_NONE
 * if the place is excluded. Returns 0 or -ENOMEM.
 */
static int node_of(struct counter *c, uint32_t place, uint32_t *node)
{
	struct part part = {
		.whole = c->places->nodes[place],
		.labels = c->places->keys ? c->labels : 0,
		.state = c->state,
	};
	const struct callgraph_key *labels;
	struct callgraph *g = c->g;
	struct callgraph_key key;
	size_t before;
	uint32_t id;

	*node = part.whole;
	if (*node == CALLGRAPH_NONE || !(c->places->keys || c->g->options.fields & CALLGRAPH_STATE))
		return 0;
	id = table_find(&c->parts, &part, offsetof(struct part, node));
	if (id != INDEX_NONE) {
		*node = c->parts.all[id].node;
		return 0;
	}
	key = g->nodes[part.whole].key;
	if (c->places->keys) {
		labels = &c->places->keys[c->labels];
		key.pid = labels->pid;
		key.tid = labels->tid;
		key.generation = labels->generation;
		key.comm = labels->comm;
		key.number = labels->number;
	}
	key.state = part.state ? c->p->functions[part.state - 1].name : NULL;
	before = g->node_count;
	if (callgraph_find(g, &key, &part.node) ||
	    array_reserve(&c->last_sample, &c->last_room, g->node_count, sizeof(*c->last_sample)) ||
	    table_add(&c->parts, &part, offsetof(struct part, node), &id))
		return -ENOMEM;
	*node = part.node;
	if (part.node < before)
		return 0;
	g->nodes[part.node] = g->nodes[part.whole];
	g->nodes[part.node].key = key;
	g->nodes[part.node].labels = c->labels;
	return 0;
}

/* Adds the costs of this sample or arc to the sums of the columns that are counted. */
static void add_sums(const struct counter *c, int64_t *sums)
{
	for (size_t i = 0; i < c->count; i++)
		add_i64(&sums[c->column + i], c->costs[c->values[i]]);
}

static struct callgraph_cost *costs_of(const struct counter *c, uint32_t node)
{
	return &c->g->costs[node * c->g->options.column_count + c->column];
}

/* Adds counts and costs to the edge with the ends and kind of `edge`, which is made when new. */
static int add_edge(struct counter *c, const struct callgraph_edge *edge)
{
	const struct callgraph_edge new = { edge->from, edge->to, edge->kind, 0, 0 };
	struct callgraph *g = c->g;
	size_t before = g->edges.count;
	uint32_t id;

	if (table_add(&g->edges, &new, EDGE_KEY, &id) ||
	    array_reserve(&g->edge_costs, &g->edge_cost_room, g->edges.count,
			  (g->options.column_count ?: 1) * sizeof(*g->edge_costs)))
		return -ENOMEM;
	g->positions.all[edge->from].edge_count += id == before;
	add_u64(&g->edges.all[id].count, edge->count);
	add_u64(&g->edges.all[id].executed, edge->executed);
	add_sums(c, &g->edge_costs[id * g->options.column_count]);
	return 0;
}

/*
 * Adds the costs of this sample to the total of a place's node and to the call from the place
 * `caller`. Does nothing if a frame nearer to the root had the same node (recursion). Returns 0 or
 * -ENOMEM.
 */
static int enter_place(struct counter *c, uint32_t caller, uint32_t place)
{
	struct callgraph_edge call = { .count = c->calls };
	uint32_t node;

	if (node_of(c, place, &node))
		return -ENOMEM;
	if (node == CALLGRAPH_NONE || c->last_sample[node] == c->sample)
		return 0;
	c->last_sample[node] = c->sample;
	for (size_t i = 0; i < c->count; i++) {
		add_i64(&costs_of(c, node)[i].total, c->costs[c->values[i]]);
		add_u64(&costs_of(c, node)[i].weight, magnitude(c->costs[c->values[i]]));
	}
	if (!c->places->positions || !c->stacks)
		return 0;
	call.from = c->places->positions[caller];
	call.to = c->g->nodes[node].entry;
	return add_edge(c, &call);
}

/* Adds sample i to self, total and calls. Returns 0 or -ENOMEM. */
static int count_sample(struct counter *c, size_t i)
{
	const struct profile_sample *s = &c->p->samples[i];
	const uint32_t *frames = c->p->frames + s->first_frame, *first = c->places->first;
	uint32_t caller = root_place(c->places);
	uint32_t at = 0, leaf, node;	/* frame, place and node of the leaf */
	static const size_t the_weight; /* number of the only value */
	bool has_cost = false;
	int err = 0;

	c->sample = i + 1;
	c->values = c->asked;
	c->costs = c->p->values + i * c->p->value_type_count;
	for (size_t j = 0; j < c->count; j++)
		has_cost |= c->costs[c->values[j]] != 0;
	if (!has_cost)
		return 0;
	add_sums(c, c->g->sums);
	for (size_t j = 0; j < c->count; j++)
		if (!c->has_base || profile_is_base(c->p, s))
			c->g->samples[c->column + j] += magnitude(c->costs[c->values[j]]);
	c->labels = MIN(s->labels, c->p->label_count);
	if (c->places->labels && !c->places->labels[c->labels])
		return 0;
	if (c->g->options.fields & CALLGRAPH_STATE)
		c->state = profile_state_function(c->p, s);
	if (c->g->options.fields & (CALLGRAPH_STATE | CALLGRAPH_SOURCE) && !c->g->options.positions)
		at = profile_wait_frame(c->p, s);
	leaf = s->depth ? first[frames[at]] : no_pc_place(c->places);
	if (c->places->weights && !c->places->weights[i])
		return 0;
	c->calls =
		c->calls_value < c->p->value_type_count ? magnitude(c->costs[c->calls_value]) : 0;
	c->calls = c->calls ?: 1;
	if (c->places->weights) {
		c->costs = &c->places->weights[i];
		c->values = &the_weight;
	}
	if (node_of(c, leaf, &node))
		return -ENOMEM;
	if (node != CALLGRAPH_NONE) {
		for (size_t j = 0; j < c->count; j++)
			add_i64(&costs_of(c, node)[j].self, c->costs[c->values[j]]);
		if (c->places->positions)
			add_sums(c, &c->g->position_costs[c->places->positions[leaf] *
							  c->g->options.column_count]);
	}
	if (!c->stacks || !s->depth)
		return enter_place(c, caller, leaf);
	/* The places of the stack, from the root to the leaf. */
	for (uint32_t j = s->depth; j-- > at && !err;)
		for (uint32_t place = first[frames[j] + 1]; place-- > first[frames[j]] && !err;) {
			err = enter_place(c, caller, place);
			caller = place;
		}
	return err;
}

bool callgraph_calls_have_cost(const struct profile *p, size_t value)
{
	bool found = false;

	for (size_t i = 0; i < p->arc_count && !found; i++)
		found = p->arcs[i].kind == PROFILE_CALL &&
			p->arc_values[i * p->value_type_count + value];
	return found;
}

int64_t callgraph_inclusive(int64_t self, const struct callgraph_calls *calls, magnitude_sum all)
{
	int64_t total = calls->called;

	if (!calls->counted || !total) {
		total = self;
		add_i64(&total, calls->calling);
	}
	if (magnitude(total) <= all)
		return total;
	return total < 0 ? -(int64_t)all : (int64_t)all;
}

/* Sets the totals of value i from the costs of recorded calls. Returns 0 or -ENOMEM. */
static int total_by_calls(struct counter *c, size_t i)
{
	const struct profile *p = c->p;
	struct callgraph_calls *calls = NULL; /* of each node */
	size_t room = 0;
	int err = 0;

	if (!callgraph_calls_have_cost(p, c->values[i]))
		return 0;
	for (size_t j = 0; j < p->arc_count && !err; j++) {
		const struct profile_arc *arc = &p->arcs[j];
		int64_t cost = p->arc_values[j * p->value_type_count + c->values[i]];
		uint32_t caller, callee;

		if (arc->kind != PROFILE_CALL)
			continue;
		c->labels = MIN(arc->labels, p->label_count);
		err = node_of(c, callgraph_caller(c->places, arc), &caller);
		err = err ?: node_of(c, callgraph_callee(c->places, arc), &callee);
		err = err ?: array_reserve(&calls, &room, c->g->node_count, sizeof(*calls));
		if (err || caller == callee)
			continue;
		if (caller != CALLGRAPH_NONE)
			add_i64(&calls[caller].calling, cost);
		if (callee != CALLGRAPH_NONE) {
			add_i64(&calls[callee].called, cost);
			calls[callee].counted |= arc->count > 0;
		}
	}
	for (uint32_t node = 0; node < c->g->node_count && !err; node++) {
		struct callgraph_cost *cost = &costs_of(c, node)[i];

		cost->total =
			callgraph_inclusive(cost->self, &calls[node], c->g->samples[c->column + i]);
		cost->weight = magnitude(cost->total);
	}
	free(calls);
	return err;
}

/* Counts how often each node was called, also by itself. */
static int count_callees(struct counter *c)
{
	const struct profile *p = c->p;

	for (size_t i = 0; i < p->arc_count; i++) {
		const struct profile_arc *arc = &p->arcs[i];
		int64_t count = arc->count < INT64_MAX ? (int64_t)arc->count : INT64_MAX;
		struct callgraph_cost *cost;
		uint32_t callee;

		if (arc->kind != PROFILE_CALL)
			continue;
		add_i64(&c->g->sums[c->column], count);
		c->g->samples[c->column] += count;
		c->labels = MIN(arc->labels, p->label_count);
		if (c->places->labels && !c->places->labels[c->labels])
			continue;
		if (node_of(c, callgraph_callee(c->places, arc), &callee))
			return -ENOMEM;
		if (callee == CALLGRAPH_NONE)
			continue;
		cost = costs_of(c, callee);
		add_i64(&cost->self, count);
		cost->total = cost->self;
		cost->weight = magnitude(cost->total);
	}
	return 0;
}

/*
 * Adds the recorded calls and jumps of a profile without stacks, estimates the costs of calls if
 * none has any, and sorts the edges by the position that they come from. Returns 0 or -ENOMEM.
 */
static int finish_edges(struct counter *c)
{
	const uint32_t *positions = c->places->positions;
	const struct profile *p = c->p;
	struct callgraph *g = c->g;
	bool has_cost = false;
	uint32_t next = 0;
	int err = 0;

	for (size_t i = 0; i < p->arc_count && !c->stacks && !err; i++) {
		const struct profile_arc *arc = &p->arcs[i];
		struct callgraph_edge edge = {
			.from = positions[callgraph_caller(c->places, arc)],
			.kind = arc->kind,
			.count = arc->count,
			.executed = arc->executed,
		};

		if (arc->kind == PROFILE_CALL)
			edge.to = positions[callgraph_callee(c->places, arc)];
		else
			edge.to = positions[c->places->first[arc->to]];
		c->costs = p->arc_values + i * p->value_type_count;
		err = add_edge(c, &edge);
	}
	for (size_t i = 0; i < g->edges.count * g->options.column_count && !has_cost; i++)
		has_cost = g->edge_costs[i];
	if (!err && g->edges.count && !has_cost)
		err = callgraph_estimate(g);
	/* No more edges are added, and the indexes are large. */
	index_free(&g->positions.index);
	index_free(&g->edges.index);
	if (err)
		return err;
	/* A counting sort. */
	g->edge_order = calloc(g->edges.count + 1, sizeof(*g->edge_order));
	if (!g->edge_order)
		return -ENOMEM;
	for (size_t i = 0; i < g->positions.count; i++) {
		g->positions.all[i].first_edge = next;
		next += g->positions.all[i].edge_count;
		g->positions.all[i].edge_count = 0;
	}
	for (size_t i = 0; i < g->edges.count; i++) {
		struct callgraph_position *from = &g->positions.all[g->edges.all[i].from];

		g->edge_order[from->first_edge + from->edge_count++] = i;
	}
	return 0;
}

int callgraph_count(struct callgraph *g, const struct callgraph_places *places,
		    const size_t *values, size_t count, size_t column)
{
	struct placing placing = {
		.g = g,
		.p = places->p,
		.places = (struct callgraph_places *)places,
	};
	struct counter c = {
		.g = g,
		.places = places,
		.p = places->p,
		.asked = values,
		.values = values,
		.count = count,
		.column = column,
		.stacks = g->options.fields && !(g->options.fields & CALLGRAPH_STATE)
				  ? profile_stacks(places->p)
				  : PROFILE_NO_STACKS,
		.calls_value = profile_find_value(places->p, "samples"),
		.has_base = profile_has_base(places->p),
	};
	int err = 0;

	/* Added here, because graphs without counts have no node for samples without a pc. */
	places->nodes[no_pc_place(places)] = CALLGRAPH_NONE;
	if (!places->no_pc_excluded)
		err = add_synthetic(&placing, CALLGRAPH_NO_PC, no_pc_place(places));
	if (!err)
		err = array_reserve(&c.last_sample, &c.last_room, g->node_count + 1,
				    sizeof(*c.last_sample));
	if (g->options.counts_calls) {
		err = err ?: count_callees(&c);
		goto out;
	}
	for (size_t i = 0; i < c.p->sample_count && !err; i++)
		err = count_sample(&c, i);
	c.values = values;
	for (size_t i = 0; i < count && !err && !c.stacks && g->options.fields; i++)
		err = total_by_calls(&c, i);
	if (g->options.positions)
		err = err ?: finish_edges(&c);
out:
	free(c.last_sample);
	table_free(&c.parts);
	return err;
}

int callgraph_init(struct callgraph *g, const struct callgraph_options *options)
{
	*g = (struct callgraph){
		.options = *options,
		.sums = calloc(options->column_count + 1, sizeof(*g->sums)),
		.samples = calloc(options->column_count + 1, sizeof(*g->samples)),
	};
	return g->sums && g->samples ? 0 : -ENOMEM;
}

void callgraph_free(struct callgraph *g)
{
	free(g->nodes);
	free(g->costs);
	free(g->sums);
	free(g->samples);
	table_free(&g->positions);
	free(g->position_costs);
	table_free(&g->edges);
	free(g->edge_costs);
	free(g->edge_order);
	index_free(&g->node_index);
}
