// SPDX-License-Identifier: GPL-2.0-only
/* Flame graphs: the data and the picture of each form, colours, notes, and hostile names. */
#include "print_fixture.h"
#include "stack_fixture.h"

#include <stdlib.h>

#include "report/flame_graph/flame_graph.h"
#include "report/flame_graph/flame_graph_parts.h"

static const char *print(const struct profile *p, const struct profile *earlier,
			 const struct flame_graph_options *o)
{
	struct flame_graph_options all = *o;
	FILE *out = print_begin();

	all.title = o->title ?: "title";
	return print_end(out, flame_graph_print(p, earlier, &all, out));
}

/* The value of "KEY" in the data, up to the next key. */
static const char *member(const char *key)
{
	static char text[1024];
	const char *at, *end;
	char quoted[32];

	snprintf(quoted, sizeof(quoted), "\n\"%s\":", key);
	at = strstr(printed, quoted);
	assert_non_null(at);
	at += strlen(quoted);
	end = strstr(at, ",\n\"");
	end = end ?: strstr(at, "}</script>");
	assert_non_null(end);
	snprintf(text, sizeof(text), "%.*s", (int)(end - at), at);
	return text;
}

static bool has(const char *text)
{
	return strstr(printed, text);
}

static void test_data(void **state)
{
	struct profile *p = new_profile();
	const struct flame_graph_options html = { .html = true };

	(void)state;
	add(p, "main a b", 5);
	add(p, "main a", 2);
	add(p, "main c", 3);
	print(p, NULL, &html);
	assert_string_equal(member("all"), "10");
	assert_string_equal(member("unit"), "\"samples\"");
	assert_string_equal(member("notes"), "[]");
	/* DEPTH,FRAME,TOTAL,SELF */
	assert_string_equal(member("nodes"), "[\n0,0,10,0,\n1,1,10,0,\n2,2,7,2,\n3,3,5,5,\n"
					     "2,4,3,3]");
	print(p, NULL, &(struct flame_graph_options){ .html = true, .tree.inverted = true });
	assert_string_equal(member("nodes"), "[\n0,0,10,0,\n1,3,5,0,\n2,2,5,0,\n3,1,5,5,\n"
					     "1,4,3,0,\n2,1,3,3,\n1,2,2,0,\n2,1,2,2]");
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
	assert_string_equal(member("notes"),
			    "[\"2 frames under 10 % of all samples are not shown.\"]");
	assert_false(has("quark") || has("lepton") || has("boson"));
	profile_free(p);
}

static void test_flat(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add(p, "main", 1);
	print(p, NULL, &(struct flame_graph_options){ 0 });
	assert_string_equal(member("notes"),
			    "[\"There are no call stacks here: record them with -g.\"]");
	add(p, "main a", 1);
	p->totals.stacks_user = 8;
	p->totals.stacks_complete = 3;
	print(p, NULL, &(struct flame_graph_options){ .html = true });
	assert_string_equal(member("notes"), "[]"); /* unknown for frame pointers */
	p->stacks = "cfi";
	print(p, NULL, &(struct flame_graph_options){ .html = true });
	assert_string_equal(member("notes"),
			    "[\"37.50 % of the user stacks reach the program's start.\"]");
	p->totals.stacks_complete = 8;
	print(p, NULL, &(struct flame_graph_options){ .html = true });
	assert_string_equal(member("notes"), "[]");
	profile_free(p);
}

/* Sums at the end of their range have widths, and a profile without samples is accepted. */
static void test_extremes(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	print(p, NULL, &(struct flame_graph_options){ 0 });
	assert_string_equal(member("nodes"), "[\n0,0,0,0]");
	add(p, "main a", INT64_MAX);
	add(p, "main b", INT64_MAX);
	add(p, "main c", INT64_MAX);
	print(p, NULL, &(struct flame_graph_options){ 0 });
	assert_string_equal(member("all"), "18446744073709551615");
	assert_true(has("width=\"1179.3\""));
	profile_free(p);
}

/* [NAME, IMAGE, HUE, CLASS]: the image determines the hue, the kernel has a fixed one. */
static void test_colors(void **state)
{
	struct profile *p = new_profile();
	struct flame_graph g = { 0 };
	struct call_frame f = { .name = "f", .image = "/lib/one.so", .named = true };
	struct call_frame other = { .name = "f", .image = "/lib/two.so", .named = true };
	unsigned int hue = flame_graph_hue(&g, &f);

	(void)state;
	/* The same hue in every graph and process, by the base name. */
	assert_int_equal(hue, flame_graph_hue(&g, &f));
	f.image = "/elsewhere/one.so";
	assert_int_equal(hue, flame_graph_hue(&g, &f));
	/* If all hues are taken, an image that has one keeps it. */
	for (int i = 0; i < FLAME_GRAPH_HUES - 1; i++)
		g.images[i] = "taken";
	g.images[FLAME_GRAPH_HUES - 1] = "one.so";
	assert_int_equal(flame_graph_hue(&g, &f) / 10, 34);
	assert_true(flame_graph_hue(&g, &other) < 360);
	f.kernel = true;
	assert_in_range(flame_graph_hue(&g, &f), 20, 39);

	add(p, "main f<outer /lib/x@", 1);
	print(p, NULL, &(struct flame_graph_options){ .html = true });
	assert_true(has(",\"inlined\"]"));
	assert_true(has("[\"[x]\",\"/lib/x\","));
	assert_true(has(",\"unnamed\"]"));
	assert_true(has("[\"all\",\"\","));
	assert_true(has(",\"who\"]"));
	profile_free(p);
}

/* DEPTH,FRAME,TOTAL,SELF,HEAT,OLD TOTAL; a frame without width is no node. */
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
	assert_string_equal(member("oldAll"), "20");
	assert_string_equal(member("scale"), "25");
	assert_string_equal(member("nodes"), "[\n0,0,100,0,0,20,\n1,1,100,20,0,20,\n"
					     "2,2,50,50,1,5,\n2,3,30,30,0.45,5]");
	assert_string_equal(member("gone"), "[[4,6],[5,4]]");
	assert_string_equal(member("notes"), "[\"2 frames of the old profile are gone; the largest "
					     "had 30.00 %: gone\"]");
	print(earlier, p, &(struct flame_graph_options){ 0 });
	assert_true(has("; old 50.00 %</title>"));
	assert_string_equal(member("gone"), "[]");
	assert_true(has(",-0.91,50,"));
	profile_free(earlier);
	profile_free(p);
}

static const char *escaped(int (*print_text)(const char *raw, FILE *out), const char *raw)
{
	static char text[256];
	FILE *out = fmemopen(text, sizeof(text), "w");

	assert_non_null(out);
	assert_int_equal(print_text(raw, out), 0);
	fclose(out);
	return text;
}

static void test_text(void **state)
{
	(void)state;
	assert_string_equal(escaped(flame_graph_print_xml, "<a b=\"c\" d='e'>&]]>"),
			    "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;]]&gt;");
	assert_string_equal(escaped(flame_graph_print_json, "</script>\"\\ ]]> &amp; <!--"),
			    "\"\\u003c/script\\u003e\\\"\\\\ ]]\\u003e \\u0026amp; \\u003c!--\"");
	assert_string_equal(escaped(flame_graph_print_xml, "\x1b[0m\xff \xc3\xa4"),
			    "\\x1b[0m\\xff \xc3\xa4");
	assert_string_equal(escaped(flame_graph_print_json, "\n\xff"), "\"\\\\x0a\\\\xff\"");
	/* Characters that XML does not allow, not even as numeric references. */
	assert_string_equal(escaped(flame_graph_print_xml, "\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd"),
			    "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	assert_string_equal(escaped(flame_graph_print_json, "\xef\xbf\xbe"), "\"\\ufffd\"");
}

static void test_decimal(void **state)
{
	char text[TEXT_PERCENT_SIZE];

	(void)state;
	assert_string_equal(flame_graph_decimal(0, text), "0");
	assert_string_equal(flame_graph_decimal(100, text), "100");
	assert_string_equal(flame_graph_decimal(12.5, text), "12.5");
	assert_string_equal(flame_graph_decimal(0.05, text), "0.05");
	assert_string_equal(flame_graph_decimal(1.999, text), "2");
}

/* Each form has its parts, and the title is escaped in both. */
static void test_forms(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add(p, "main a", 1);
	print(p, NULL, &(struct flame_graph_options){ .title = "</title><script>" });
	assert_true(has("<title>&lt;/title&gt;&lt;script&gt;</title>"));
	assert_string_equal(member("icicle"), "false");
	assert_int_equal(strncmp(printed, "<?xml ", 6), 0);
	print(p, NULL, &(struct flame_graph_options){ .html = true, .icicle = true, .title = "<" });
	assert_true(has("<title>&lt;</title>"));
	assert_string_equal(member("icicle"), "true");
	assert_int_equal(strncmp(printed, "<!DOCTYPE html>", 15), 0);
	assert_false(has("<rect"));
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data),   cmocka_unit_test(test_folded),
		cmocka_unit_test(test_flat),   cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_colors), cmocka_unit_test(test_compared),
		cmocka_unit_test(test_text),   cmocka_unit_test(test_decimal),
		cmocka_unit_test(test_forms),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(printed);
	return failed;
}
