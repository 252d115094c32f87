// SPDX-License-Identifier: GPL-2.0-only
/* Call trees: counts, order, folding, roots, one function's callers and callees. */
#include "stack_fixture.h"

#include <stdlib.h>

#include "report/call_tree.h"

/* ---- trees as text: NAME TOTAL SELF, children in parentheses, then +FOLDED ---- */

static char text[4096];

static void print_node(const struct call_tree *t, uint32_t node, FILE *out)
{
	const struct call_node *n = &t->nodes[node];
	const struct callgraph_cost *c = &t->counts[node * t->column_count];

	if (n->parent != CALL_TREE_NONE)
		assert_true(n->parent < node && n->depth == t->nodes[n->parent].depth + 1);
	fputs(n->frame == CALL_TREE_NONE ? "-" : t->frames[n->frame].name, out);
	for (size_t i = 0; i < t->column_count; i++)
		fprintf(out, " %d %d", (int)c[i].total, (int)c[i].self);
	if (n->first_child != CALL_TREE_NONE || n->folded)
		fputs(" (", out);
	for (uint32_t i = n->first_child; i != CALL_TREE_NONE; i = t->nodes[i].next_sibling) {
		assert_int_equal(t->nodes[i].parent, node);
		print_node(t, i, out);
		if (t->nodes[i].next_sibling != CALL_TREE_NONE)
			fputs(", ", out);
	}
	if (n->folded)
		fprintf(out, " +%d", (int)n->folded);
	if (n->first_child != CALL_TREE_NONE || n->folded)
		fputs(")", out);
}

static const char *tree_of(const struct profile *const *p, size_t count,
			   const struct call_tree_options *o)
{
	FILE *out = fmemopen(text, sizeof(text), "w");
	struct call_tree t;

	assert_non_null(out);
	assert_int_equal(call_tree_make(&t, p, count, o), 0);
	print_node(&t, 0, out);
	fclose(out);
	call_tree_free(&t);
	return text;
}

static const char *tree(const struct profile *p, const struct call_tree_options *o)
{
	return tree_of(&p, 1, o ?: &(struct call_tree_options){ 0 });
}

/* ---- tests ---- */

static void test_tree(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	assert_string_equal(tree(p, NULL), "- 0 0");
	add(p, "main a b", 1);
	add(p, "main a c", 5);
	add(p, "main a", 2);
	add(p, "main", 4);
	add(p, "start main a b", 8);
	add(p, "main negative", -3);
	add(p, "", 16);
	assert_string_equal(tree(p, NULL),
			    "- 33 16 (main 9 4 (a 8 2 (c 5 5, b 1 1), negative -3 -3), "
			    "start 8 0 (main 8 0 (a 8 0 (b 8 8))))");
	assert_string_equal(tree(p, &(struct call_tree_options){ .inverted = true }),
			    "- 33 16 (b 9 0 (a 9 0 (main 9 1 (start 8 8))), "
			    "c 5 0 (a 5 0 (main 5 5)), main 4 4, negative -3 0 (main -3 -3), "
			    "a 2 0 (main 2 2))");
	profile_free(p);
}

static void test_inlined_and_unnamed(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add(p, "main inner<outer", 1);
	add(p, "main outer inner", 2); /* the same functions, not inlined */
	add(p, "main /lib/x.so@", 4);
	add(p, "main /other/x.so@ /bin/exe@", 8);
	add(p, "main [vdso]@", 16);
	assert_string_equal(tree(p, NULL), "- 31 0 (main 31 0 ([vdso] 16 16, "
					   "[x.so] 12 4 ([exe] 8 8), outer 3 0 (inner 3 3)))");
	profile_free(p);
}

static void test_same_function(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add(p, "/a/lib@f", 1);
	add(p, "/b/lib@f", 2); /* the same base name */
	add(p, "/a/lib2@f", 4);
	assert_string_equal(tree(p, NULL), "- 7 0 (f 4 4, f 3 3)");
	profile_free(p);
}

static void test_recursion(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add(p, "main f g f g f", 1);
	add(p, "main f", 2);
	assert_string_equal(tree(p, NULL),
			    "- 3 0 (main 3 0 (f 3 2 (g 1 0 (f 1 0 (g 1 0 (f 1 1))))))");
	assert_string_equal(tree(p, &(struct call_tree_options){ .function = "f" }),
			    "f 3 2 (g 1 0 (f 1 0 (g 1 0 (f 1 1))))");
	assert_string_equal(tree(p, &(struct call_tree_options){ .function = "g" }),
			    "g 1 0 (f 1 0 (g 1 0 (f 1 1)))");
	assert_string_equal(
		tree(p, &(struct call_tree_options){ .function = "f", .inverted = true }),
		"f 3 0 (main 2 2, g 1 0 (f 1 0 (g 1 0 (f 1 0 (main 1 1)))))");
	profile_free(p);
}

static void test_function(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add(p, "main N::f(int) g", 1);
	add(p, "main N::f(char) g", 2);
	add(p, "main /lib/x@N::f h", 4);
	add(p, "main N::foo", 8);
	assert_string_equal(tree(p, &(struct call_tree_options){ .function = "N::f" }),
			    "N::f(int) 7 0 (h 4 4, g 3 3)");
	assert_string_equal(tree(p, &(struct call_tree_options){ .function = "N::f(char)" }),
			    "N::f(char) 2 0 (g 2 2)");
	assert_string_equal(
		tree(p, &(struct call_tree_options){ .function = "N::f", .image = "x" }),
		"N::f 4 0 (h 4 4)");
	assert_string_equal(tree(p, &(struct call_tree_options){ .function = "N" }), "- 0 0");
	assert_string_equal(tree(p, &(struct call_tree_options){ .function = "N::foo" }),
			    "N::foo 8 8");
	profile_free(p);
}

static void test_code_without_a_name_as_root(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add(p, "main /lib/x@ g", 1);
	assert_string_equal(tree(p, &(struct call_tree_options){ .function = "[x]" }),
			    "[x] 1 0 (g 1 1)");
	profile_free(p);
}

static void test_folding(void **state)
{
	struct profile *p = new_profile();
	struct call_tree t;

	(void)state;
	add(p, "main a x", 96);
	add(p, "main a b c d", 1);
	add(p, "main a y", 1);
	add(p, "main z", 2);
	assert_string_equal(tree(p, &(struct call_tree_options){ .min_share = 0.02 }),
			    "- 100 0 (main 100 0 (a 98 0 (x 96 96 +2), z 2 2))");
	assert_int_equal(call_tree_make(&t, (const struct profile *const[]){ p }, 1,
					&(struct call_tree_options){ .min_share = 0.5 }),
			 0);
	assert_int_equal(t.folded, 3);
	assert_int_equal(t.samples[0], 100);
	call_tree_free(&t);
	profile_free(p);
}

static void test_share_of_filtered(void **state)
{
	magnitude_sum removed = 80;
	const struct profile_filtered filtered = { .values = &removed };
	struct profile *p = new_profile();

	(void)state;
	add(p, "main a", 9);
	add(p, "main b", 11);
	assert_string_equal(
		tree(p, &(struct call_tree_options){ .min_share = 0.1, .filtered = &filtered }),
		"- 20 0 (main 20 0 (b 11 11 +1))");
	profile_free(p);
}

static void test_two_profiles(void **state)
{
	struct profile *a = new_profile(), *b = new_profile();
	const struct profile *both[] = { a, b };

	(void)state;
	add(a, "main f", 90);
	add(a, "main g", 10);
	add(b, "main g", 500);
	add(b, "main /lib/x@", 499);
	add(b, "main h", 1);
	assert_string_equal(tree_of(both, 2, &(struct call_tree_options){ .min_share = 0.1 }),
			    "- 100 0 1000 0 (main 100 0 1000 0 "
			    "(f 90 90 0 0, g 10 10 500 500, [x] 0 0 499 499 +1))");
	profile_free(a);
	profile_free(b);
	both[0] = a = new_profile();
	both[1] = b = new_profile();
	add(a, "f", 1);
	a->images[0].path = "[jit 612]";
	add(b, "f", 2);
	b->images[0].path = "[jit 845]";
	assert_string_equal(tree_of(both, 2, &(struct call_tree_options){ 0 }),
			    "- 1 0 2 0 (f 1 1 2 2)");
	profile_free(a);
	profile_free(b);
}

static void test_processes_and_threads(void **state)
{
	struct profile *p = new_profile();
	struct profile_labels helper = { .pid = 10, .tid = 11, .comm = "helper" };
	struct profile_labels first = { .pid = 10, .tid = 10, .comm = "node" };
	struct profile_labels nameless = { .pid = 12, .tid = 13, .comm = "" };
	struct profile_labels cut = { .comm = "short" };

	(void)state;
	add_labelled(p, &helper, "start f", 4);
	add_labelled(p, &first, "main f", 1);
	add_labelled(p, &nameless, "main", 2);
	add_labelled(p, &cut, "main", 1);
	add_labelled(p, &first, "", 3);
	assert_string_equal(tree(p, &(struct call_tree_options){ .roots = CALL_TREE_PROCESSES }),
			    "- 11 0 (node 10 8 3 (start 4 0 (f 4 4), main 1 0 (f 1 1)), "
			    "[unknown] 12 2 0 (main 2 2), short 1 0 (main 1 1))");
	assert_string_equal(tree(p, &(struct call_tree_options){ .roots = CALL_TREE_THREADS,
								 .inverted = true }),
			    "- 11 0 (node 10 8 0 (helper 11 4 0 (f 4 0 (start 4 4)), "
			    "node 10 4 3 (f 1 0 (main 1 1))), "
			    "[unknown] 12 2 0 ([unknown] 13 2 0 (main 2 2)), short 1 0 (short 1 0 "
			    "(main 1 1)))");
	assert_string_equal(tree(p, &(struct call_tree_options){ .roots = CALL_TREE_THREADS,
								 .function = "start" }),
			    "start 4 0 (f 4 4)");
	profile_free(p);
}

static const struct call_frame *frame_named(const struct call_tree *t, const char *name)
{
	for (size_t i = 0; i < t->frame_count; i++)
		if (strcmp(t->frames[i].name, name) == 0)
			return &t->frames[i];
	fail_msg("no frame %s", name);
	return NULL;
}

static void test_frames(void **state)
{
	struct profile *p = new_profile();
	struct call_tree t;

	(void)state;
	add(p, "main in<out always<out", 1);
	add(p, "main in /k/nf.ko@hook [kernel.kallsyms]@ [vsyscall]@", 1);
	assert_int_equal(call_tree_make(&t, (const struct profile *const[]){ p }, 1,
					&(struct call_tree_options){ 0 }),
			 0);
	assert_true(frame_named(&t, "always")->inlined);
	assert_false(frame_named(&t, "in")->inlined);
	assert_false(frame_named(&t, "out")->inlined);
	assert_false(frame_named(&t, "main")->kernel);
	assert_true(frame_named(&t, "hook")->kernel);
	assert_true(frame_named(&t, "[kernel.kallsyms]")->kernel);
	assert_false(frame_named(&t, "[kernel.kallsyms]")->named);
	assert_false(frame_named(&t, "[vsyscall]")->kernel);
	assert_string_equal(frame_named(&t, "hook")->image, "/k/nf.ko");
	call_tree_free(&t);
	profile_free(p);
}

static void test_sums_saturate(void **state)
{
	struct profile *p = new_profile();
	struct call_tree t;

	(void)state;
	add(p, "a", INT64_MAX);
	add(p, "a b", INT64_MAX);
	add(p, "a c", INT64_MAX);
	assert_int_equal(call_tree_make(&t, (const struct profile *const[]){ p }, 1,
					&(struct call_tree_options){ 0 }),
			 0);
	assert_true(t.counts[0].total == INT64_MAX && t.counts[1].total == INT64_MAX);
	assert_true(t.counts[0].weight == UINT64_MAX);
	assert_true(t.samples[0] == (magnitude_sum)INT64_MAX * 3);
	call_tree_free(&t);
	profile_free(p);
}

/* A stack of a million frames, of one function and of a hundred. */
static void test_deep(void **state)
{
	enum {
		DEPTH = 1000000
	};
	struct profile *p = new_profile();
	uint32_t *frames = calloc(DEPTH, sizeof(*frames)), labels;
	struct profile_labels none = { .comm = "" };
	struct call_tree t;
	char name[16];

	(void)state;
	assert_non_null(frames);
	assert_int_equal(profile_add_labels(p, &none, &labels), 0);
	for (int i = 0; i < DEPTH; i++) {
		snprintf(name, sizeof(name), "f%d", i % 100);
		frames[i] = i < 100 ? location_of(p, name) : frames[i % 100];
	}
	assert_int_equal(profile_add_sample(p, frames, DEPTH, labels, &(int64_t){ 7 }), 0);
	assert_int_equal(call_tree_make(&t, (const struct profile *const[]){ p }, 1,
					&(struct call_tree_options){ .min_share = 0.01 }),
			 0);
	assert_int_equal(t.count, DEPTH + 1);
	assert_int_equal(t.nodes[DEPTH].depth, DEPTH);
	assert_int_equal(t.counts[DEPTH].self, 7);
	call_tree_free(&t);
	profile_free(p);
	free(frames);
}

/* Many stacks, compared with sums that are computed in another way. */
static void test_random(void **state)
{
	enum {
		STACKS = 3000,
		DEPTH = 6,
		FUNCTIONS = 3
	};
	static int total[4096]; /* by path: digits of base 4 from 1 on; 0 ends it */
	struct profile *p = new_profile();
	const struct profile *only = p;
	uint32_t seed = 1;
	struct call_tree t;

	(void)state;
	for (int i = 0; i < STACKS; i++) {
		char stack[2 * DEPTH + 1] = "";
		unsigned int path = 0, depth = (seed >> 16) % (DEPTH + 1);

		total[0] += i;
		for (unsigned int d = 0; d < depth; d++) {
			seed = seed * 1103515245 + 12345;
			path += ((seed >> 16) % FUNCTIONS + 1) << 2 * d;
			stack[2 * d] = 'a' + (seed >> 16) % FUNCTIONS;
			stack[2 * d + 1] = ' ';
			total[path] += i;
		}
		add(p, stack, i);
		seed = seed * 1103515245 + 12345;
	}
	assert_int_equal(call_tree_make(&t, &only, 1, &(struct call_tree_options){ 0 }), 0);
	for (uint32_t i = 0; i < t.count; i++) {
		unsigned int path = 0;
		uint64_t self = t.counts[i].total;

		for (uint32_t n = i; t.nodes[n].parent != CALL_TREE_NONE; n = t.nodes[n].parent)
			path = path << 2 | (t.frames[t.nodes[n].frame].name[0] - 'a' + 1);
		assert_int_equal(t.counts[i].total, total[path]);
		total[path] = 0;
		for (uint32_t n = t.nodes[i].first_child; n != CALL_TREE_NONE;
		     n = t.nodes[n].next_sibling)
			self -= t.counts[n].total;
		assert_int_equal(t.counts[i].self, self);
	}
	for (size_t i = 0; i < sizeof(total) / sizeof(*total); i++)
		assert_int_equal(total[i], 0);
	call_tree_free(&t);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_inlined_and_unnamed),
		cmocka_unit_test(test_same_function),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_function),
		cmocka_unit_test(test_code_without_a_name_as_root),
		cmocka_unit_test(test_folding),
		cmocka_unit_test(test_share_of_filtered),
		cmocka_unit_test(test_two_profiles),
		cmocka_unit_test(test_processes_and_threads),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_sums_saturate),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
