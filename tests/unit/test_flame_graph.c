// SPDX-License-Identifier: GPL-2.0-only
/* Flame graphs: frames of each form, colours, notes, and hostile names. */
#include "print_fixture.h"
#include "stack_fixture.h"

#include <stdlib.h>

#include "report/flame_graph/flame_graph.h"

static const char *print(const struct profile *p, const struct profile *earlier,
			 const struct flame_graph_options *o)
{
	struct flame_graph_options all = *o;
	FILE *out = print_begin();

	all.title = o->title ?: "title";
	return print_end(out, flame_graph_print(p, earlier, &all, out));
}

static bool has(const char *text)
{
	return strstr(printed, text);
}

/* The frames: "NAME X WIDTH Y" of each, the numbers without what is behind their points. */
static const char *frames(void)
{
	static char text[2048];
	size_t used = 0;

	text[0] = '\0';
	for (const char *at = printed; (at = strstr(at, "<g><title>")); at++) {
		const char *rect = strstr(at, "<rect"), *name = at + strlen("<g><title>");
		unsigned int x, width, y;

		assert_non_null(rect);
		assert_int_equal(
			sscanf(rect, "<rect x=\"%u.%*u\" width=\"%u.%*u\" y=\"%u\" height=\"17\"",
			       &x, &width, &y),
			3);
		used += snprintf(text + used, sizeof(text) - used, "%.*s %u %u %u\n",
				 (int)strcspn(name, "\n"), name, x, width, y);
	}
	return text;
}

/* The colour of the first frame of this name. */
static const char *color_of(const char *name)
{
	static char color[32];
	char title[64];
	const char *at;

	snprintf(title, sizeof(title), "<g><title>%s\n", name);
	at = strstr(printed, title);
	assert_non_null(at);
	assert_int_equal(sscanf(strstr(at, "fill="), "fill=\"%31[^\"]", color), 1);
	return color;
}

static unsigned int hue_of(const char *name)
{
	unsigned int hue;

	assert_int_equal(sscanf(color_of(name), "hsl(%u,", &hue), 1);
	return hue;
}

static void test_frames(void **state)
{
	struct profile *p = new_profile();
	const struct flame_graph_options html = { .html = true, .icicle = true };

	(void)state;
	add(p, "main a b", 5);
	add(p, "main a", 2);
	add(p, "main c", 3);
	print(p, NULL, &(struct flame_graph_options){ 0 });
	assert_string_equal(
		frames(),
		"all 10 1179 92\nmain 10 1179 74\na 10 825 56\nb 10 589 38\nc 836 353 56\n");
	assert_true(has("<title>all\n10 samples, 100.00 %; self 0 samples, 0.00 %</title>"));
	assert_true(has("\n7 samples, 70.00 %; self 2 samples, 20.00 %</title>"));
	print(p, NULL, &html);
	assert_string_equal(
		frames(),
		"all 10 1179 38\nmain 10 1179 56\na 10 825 74\nb 10 589 92\nc 836 353 74\n");
	print(p, NULL, &(struct flame_graph_options){ .icicle = true, .tree.inverted = true });
	assert_string_equal(
		frames(), "all 10 1179 38\nb 10 589 56\na 10 589 74\nmain 10 589 92\nc 600 353 56\n"
			  "main 600 353 74\na 954 235 56\nmain 954 235 74\n");
	profile_free(p);
}

/* Folded frames are omitted, and their number is written. */
static void test_folded(void **state)
{
	struct profile *p = new_profile();
	const struct flame_graph_options o = { .html = true, .tree.min_share = 0.1 };

	(void)state;
	add(p, "main a", 90);
	add(p, "main quark lepton", 6);
	add(p, "main boson", 4);
	print(p, NULL, &o);
	assert_true(has(">2 frames under 10 % of all samples are not shown.<"));
	assert_false(has("quark") || has("lepton") || has("boson"));
	add(p, "main a", 99900);
	print(p, NULL, &(struct flame_graph_options){ 0 });
	assert_true(has(">2 frames under 0.01 % of all samples are not shown.<"));
	profile_free(p);
}

static void test_flat(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add(p, "main", 1);
	print(p, NULL, &(struct flame_graph_options){ 0 });
	assert_true(has(">There are no call stacks here: record them with -g.<"));
	add(p, "main a", 1);
	p->totals.stacks_user = 8;
	p->totals.stacks_complete = 3;
	print(p, NULL, &(struct flame_graph_options){ 0 });
	assert_false(has("stacks")); /* unknown for frame pointers */
	p->stacks = "cfi";
	print(p, NULL, &(struct flame_graph_options){ 0 });
	assert_true(has(">37.50 % of the user stacks reach the program&#39;s start.<"));
	p->totals.stacks_complete = 8;
	print(p, NULL, &(struct flame_graph_options){ 0 });
	assert_false(has("user stacks"));
	profile_free(p);
}

/* Sums at the end of their range have widths, and a profile without samples is accepted. */
static void test_extremes(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	print(p, NULL, &(struct flame_graph_options){ 0 });
	assert_string_equal(frames(), "all 10 1179 56\n");
	add(p, "main a", INT64_MAX);
	add(p, "main b", INT64_MAX);
	add(p, "main c", INT64_MAX);
	print(p, NULL, &(struct flame_graph_options){ 0 });
	assert_non_null(strstr(frames(), "\nmain 10 1179 "));
	profile_free(p);
}

/* The image determines the hue, by its base name; the kernel has a fixed one. */
static void test_colors(void **state)
{
	struct profile *p = new_profile();
	char images[32];
	unsigned int hue;

	(void)state;
	add(p, "main f<outer /lib/x@", 1);
	print(p, NULL, &(struct flame_graph_options){ 0 });
	hue = hue_of("f");
	assert_non_null(strstr(color_of("f"), ",68%,88%)"));   /* inlined */
	assert_non_null(strstr(color_of("[x]"), ",22%,78%)")); /* without a name */
	assert_non_null(strstr(color_of("all"), ",0%,78%)"));
	assert_non_null(strstr(color_of("main"), ",68%,78%)"));
	/* Many images: those that had a hue first keep it. */
	for (int i = 0; i < 20; i++) {
		snprintf(images, sizeof(images), "main /lib/%d@", i);
		add(p, images, 1);
	}
	print(p, NULL, &(struct flame_graph_options){ 0 });
	assert_int_equal(hue, hue_of("f"));
	for (int i = 0; i < 20; i++) {
		snprintf(images, sizeof(images), "[%d]", i);
		assert_true(hue_of(images) < 360);
	}
	profile_free(p);
}

/* A frame without width is none; what is gone is said. */
static void test_compared(void **state)
{
	struct profile *p = new_profile(), *earlier = new_profile();

	(void)state;
	add(p, "main up", 50);
	add(p, "main down", 30);
	add(p, "main", 20);
	add(earlier, "main up", 5);
	add(earlier, "main down", 5);
	add(earlier, "main gone deeper", 6);
	add(earlier, "main left", 4);
	print(p, earlier, &(struct flame_graph_options){ .html = true });
	assert_true(has(">2 frames of the old profile are gone; the largest had 30.00 %: gone<"));
	assert_true(has("; the full colour is 25.00 percentage points.<"));
	assert_true(has(
		"\n50 samples, 50.00 %; old 5 samples, 25.00 %; self 50 samples, 50.00 %</title>"));
	assert_string_equal(color_of("main"), "hsl(215,0%,95%)");
	assert_string_equal(color_of("up"), "hsl(12,88%,59%)");
	assert_string_equal(color_of("down"), "hsl(12,88%,78%)");
	assert_false(has("<g><title>gone") || has("<g><title>left"));
	print(earlier, p, &(struct flame_graph_options){ 0 });
	assert_true(has("; old 50 samples, 50.00 %; "));
	assert_string_equal(color_of("up"), "hsl(215,88%,62%)");
	assert_false(has("gone;"));
	profile_free(earlier);
	profile_free(p);
}

/* The title is escaped in each form, and what XML does not allow is replaced. */
static void test_forms(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add(p, "main a", 1);
	print(p, NULL,
	      &(struct flame_graph_options){
		      .title = "</title>&'\"\x1b[0m\xff \xc3\xa4 \xef\xbf\xbe\xef\xbf\xbf" });
	assert_true(has("<title>&#60;/title&#62;&#38;&#39;&#34;\\x1b[0m\\xff \xc3\xa4 "
			"\xef\xbf\xbd\xef\xbf\xbd</title>"));
	assert_int_equal(strncmp(printed, "<?xml ", 6), 0);
	print(p, NULL, &(struct flame_graph_options){ .html = true, .title = "<" });
	assert_true(has("<title>&#60;</title>"));
	assert_int_equal(strncmp(printed, "<!DOCTYPE html>", 15), 0);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames), cmocka_unit_test(test_folded),
		cmocka_unit_test(test_flat),   cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_colors), cmocka_unit_test(test_compared),
		cmocka_unit_test(test_forms),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(printed);
	return failed;
}
