// SPDX-License-Identifier: GPL-2.0-only
/* The call graph: its nodes, and that edges, self and total agree. */
#include "stack_fixture.h"

#include <stdlib.h>

#include "profile/callgraph.h"

static const char unknown[] = "[unknown]";

static void make(struct callgraph *g, struct callgraph_places *places, const struct profile *p,
		 unsigned int fields, enum callgraph_positions positions)
{
	const struct callgraph_options options = {
		.fields = fields, .positions = positions, .column_count = 1, .unknown = unknown
	};
	size_t value = 0;

	assert_int_equal(callgraph_init(g, &options), 0);
	assert_int_equal(callgraph_place(g, p, places), 0);
	assert_int_equal(callgraph_count(g, places, &value, 1, 0), 0);
}

static void clear(struct callgraph *g, struct callgraph_places *places)
{
	callgraph_places_free(places);
	callgraph_free(g);
}

static uint32_t node_named(const struct callgraph *g, const char *name)
{
	for (uint32_t i = 0; i < g->node_count; i++)
		if (g->nodes[i].key.function && strcmp(g->nodes[i].key.function, name) == 0)
			return i;
	fail_msg("there is no node %s", name);
	return CALLGRAPH_NONE;
}

static void assert_cost(const struct callgraph *g, const char *name, uint64_t self, uint64_t total)
{
	uint32_t node = node_named(g, name);

	assert_int_equal(g->costs[node].self, self);
	assert_int_equal(g->costs[node].total, total);
}

/*
 * The sums that readers of Callgrind files compute: of self costs, and of the costs of calls of
 * each node.
 */
static void assert_sums(const struct callgraph *g)
{
	uint64_t *self = calloc(g->node_count, sizeof(*self));
	uint64_t *called = calloc(g->node_count, sizeof(*called));

	assert_true(self && called);
	for (size_t i = 0; i < g->positions.count; i++)
		self[g->positions.all[i].node] += g->position_costs[i];
	for (size_t i = 0; i < g->edges.count; i++)
		called[g->positions.all[g->edges.all[i].to].node] += g->edge_costs[i];
	for (size_t i = 0; i < g->node_count; i++) {
		assert_int_equal(self[i], g->costs[i].self);
		if (strcmp(g->nodes[i].key.function ?: "", CALLGRAPH_ROOT) != 0)
			assert_int_equal(called[i], g->costs[i].total);
	}
	free(self);
	free(called);
}

static void test_stacks(void **state)
{
	const unsigned int fields = CALLGRAPH_FUNCTION | CALLGRAPH_FILE | CALLGRAPH_IMAGE;
	struct profile *p = new_profile();
	struct callgraph_places places;
	struct callgraph g;

	(void)state;
	add(p, "main f g f", 1);
	add(p, "main f", 2);
	add(p, "main inner<outer", 4);
	add(p, "main /lib/x.so@", 8);
	add(p, "main negative", -1);
	add(p, "", 16);
	for (int positions = CALLGRAPH_LINES; positions <= CALLGRAPH_ADDRESSES; positions++) {
		make(&g, &places, p, fields, positions);
		assert_int_equal(g.samples[0], 32);
		assert_int_equal(g.sums[0], 30);
		assert_cost(&g, "main", 0, 14);
		assert_cost(&g, "f", 3, 3);
		assert_cost(&g, "g", 0, 1);
		assert_cost(&g, "outer", 0, 4);
		assert_cost(&g, "inner", 4, 4);
		assert_cost(&g, "negative", -1, -1);
		assert_cost(&g, CALLGRAPH_NO_PC, 16, 16);
		assert_true(g.nodes[node_named(&g, "inner")].inlined);
		assert_false(g.nodes[node_named(&g, "outer")].inlined);
		assert_sums(&g);
		clear(&g, &places);
	}
	make(&g, &places, p, CALLGRAPH_IMAGE, CALLGRAPH_NO_POSITIONS);
	assert_int_equal(g.node_count, 3); /* the two images, and samples in no image */
	assert_int_equal(g.costs[0].total, 14);
	clear(&g, &places);
	profile_free(p);
}

static void test_many_stacks(void **state)
{
	struct profile *p = new_profile();
	struct callgraph_places places;
	struct callgraph g;
	char stack[64];

	(void)state;
	srand(1);
	for (int i = 0; i < 2000; i++) {
		size_t size = 0;

		for (int depth = rand() % 9; depth >= 0; depth--)
			size += snprintf(stack + size, sizeof(stack) - size, "%s%c%s",
					 size ? " " : "", 'a' + rand() % 6,
					 rand() % 3   ? ""
					 : rand() % 2 ? "<z"
						      : "<a");
		add(p, stack, rand() % 100);
	}
	make(&g, &places, p, CALLGRAPH_FUNCTION | CALLGRAPH_IMAGE, CALLGRAPH_LINES);
	assert_sums(&g);
	for (size_t i = 0; i < g.node_count; i++)
		assert_true(g.costs[i].weight <= g.samples[0]);
	clear(&g, &places);
	profile_free(p);
}

static void test_excluded(void **state)
{
	const struct callgraph_options options = { .fields = CALLGRAPH_FUNCTION,
						   .column_count = 1,
						   .unknown = unknown };
	struct profile *p = new_profile();
	struct callgraph_places places;
	bool labels[] = { false };
	struct callgraph g;
	size_t value = 0;

	(void)state;
	add(p, "main f", 3);
	add(p, "", 4);
	assert_true(p->label_count <= 1);
	for (int k = 0; k < 2; k++) {
		assert_int_equal(callgraph_init(&g, &options), 0);
		assert_int_equal(callgraph_place(&g, p, &places), 0);
		if (k)
			places.labels = labels;
		places.no_pc_excluded = true;
		places.nodes[places.first[p->frames[0]]] = CALLGRAPH_NONE; /* the leaf's */
		assert_int_equal(callgraph_count(&g, &places, &value, 1, 0), 0);
		assert_int_equal(g.samples[0], 7);
		assert_cost(&g, "f", 0, 0);
		assert_cost(&g, "main", 0, k ? 0 : 3);
		assert_int_equal(g.node_count, 2);
		clear(&g, &places);
	}
	profile_free(p);
}

static void test_inclusive(void **state)
{
	struct callgraph_calls calls = { .called = 70, .calling = 5, .counted = true };

	(void)state;
	assert_int_equal(callgraph_inclusive(10, &calls, 100), 70);
	assert_int_equal(callgraph_inclusive(10, &calls, 60), 60);
	calls.counted = false;
	assert_int_equal(callgraph_inclusive(10, &calls, 100), 15);
	calls = (struct callgraph_calls){ .calling = INT64_MAX, .counted = true };
	assert_int_equal(callgraph_inclusive(10, &calls, UINT64_MAX), INT64_MAX);
	calls = (struct callgraph_calls){ .called = -70, .counted = true };
	assert_int_equal(callgraph_inclusive(10, &calls, 100), -70);
	assert_int_equal(callgraph_inclusive(10, &calls, 60), -60);
}

/* Recorded calls go from the innermost function to the outermost. */
static void test_recorded_calls(void **state)
{
	struct profile *p = new_profile();
	struct profile_arc arc = { .count = 2 };
	struct callgraph_places places;
	struct callgraph g;
	int64_t cost = 30;

	(void)state;
	add(p, "main", 10);
	add(p, "leaf", 30);
	arc.from = location_of(p, "inner<main");
	arc.to = location_of(p, "leaf<work");
	assert_int_equal(profile_add_labels(p, &(struct profile_labels){ .comm = "" }, &arc.labels),
			 0);
	for (int k = 0; k < 2; k++) {
		if (k == 1)
			assert_int_equal(profile_add_arc(p, &arc, &cost), 0);
		else
			assert_int_equal(profile_add_arc(p, &arc, NULL), 0);
		make(&g, &places, p, CALLGRAPH_FUNCTION, CALLGRAPH_LINES);
		assert_int_equal(g.edges.count, 1);
		assert_int_equal(g.positions.all[g.edges.all[0].from].node,
				 node_named(&g, "inner"));
		assert_int_equal(g.positions.all[g.edges.all[0].to].node, node_named(&g, "work"));
		assert_int_equal(g.edges.all[0].count, k ? 4 : 2);
		assert_int_equal(g.edge_costs[0], k ? 30 : 0);
		assert_cost(&g, "inner", 0, k ? 30 : 0);
		assert_cost(&g, "work", 0, k ? 30 : 0);
		assert_cost(&g, "leaf", 30, 30);
		clear(&g, &places);
	}
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks),	       cmocka_unit_test(test_many_stacks),
		cmocka_unit_test(test_excluded),       cmocka_unit_test(test_inclusive),
		cmocka_unit_test(test_recorded_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
