// SPDX-License-Identifier: GPL-2.0-only
/* The samples that --focus and --ignore keep in a profile, and the sums of the removed ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/filter.h"

static uint32_t add_line(struct profile *p, const char *name)
{
	struct profile_function f = { .name = name, .system_name = name, .file = "" };
	uint32_t function;

	assert_int_equal(profile_add_function(p, &f, &function), 0);
	return function;
}

/* A pc in a function, or in the first with that inlined into the second; NULL: without a name. */
static uint32_t add_pc(struct profile *p, uint64_t address, const char *name, const char *outer)
{
	struct profile_line lines[2] = { 0 };
	uint32_t location;

	assert_int_equal(profile_add_location(p, address, 0, &location), 0);
	if (name)
		lines[0].function = add_line(p, name);
	if (outer)
		lines[1].function = add_line(p, outer);
	if (name)
		assert_int_equal(profile_set_lines(p, location, lines, outer ? 2 : 1), 0);
	return location;
}

static void add_sample(struct profile *p, uint32_t leaf, uint32_t caller, int64_t count)
{
	struct profile_labels none = { .comm = "" };
	const uint32_t frames[] = { leaf, caller };
	const int64_t values[] = { count, 10 * count };
	uint32_t labels;

	assert_int_equal(profile_add_labels(p, &none, &labels), 0);
	assert_int_equal(profile_add_sample(p, frames, 2, labels, values), 0);
}

/*
 * main > work(int) 1, main > inner, inlined into work(int) 2, main > other 4, main > without a
 * name 8, and -16 of what is in other, too
 */
static struct profile *make_profile(void)
{
	struct profile *p = profile_new();
	uint32_t image, mapping, top, other;

	assert_non_null(p);
	assert_int_equal(profile_add_value_type(p, "samples", "count"), 0);
	assert_int_equal(profile_add_value_type(p, "cpu", "nanoseconds"), 0);
	assert_int_equal(profile_add_image(p, "/usr/lib/libx.so", NULL, 0, &image), 0);
	assert_int_equal(profile_add_mapping(p, 0, 0x1000, 0, image, &mapping), 0);
	top = add_pc(p, 1, "main", NULL);
	other = add_pc(p, 4, "other", NULL);
	add_sample(p, add_pc(p, 2, "work(int)", NULL), top, 1);
	add_sample(p, add_pc(p, 3, "inner", "work(int)"), top, 2);
	add_sample(p, other, top, 4);
	add_sample(p, add_pc(p, 5, NULL, NULL), top, 8);
	add_sample(p, add_pc(p, 6, "other", NULL), other, -16);
	return p;
}

/* The sum of the remaining samples' counts, of which each is another bit. */
static uint64_t kept(const char *focus, const char *ignore)
{
	const struct profile_filter filter = { .focus = focus, .ignore = ignore };
	struct profile *p = make_profile();
	uint64_t sum = 0, magnitudes = 0;
	struct profile_filtered filtered = { 0 };
	struct error e;

	assert_int_equal(profile_filter(p, &filter, &filtered, &e), 0);
	for (size_t i = 0; i < p->sample_count; i++) {
		assert_int_equal(p->values[2 * i + 1], 10 * p->values[2 * i]);
		if (p->values[2 * i] > 0)
			sum += p->values[2 * i];
		magnitudes += magnitude(p->values[2 * i]);
	}
	assert_int_equal(magnitudes + profile_filtered_sum(&filtered, 0), 31);
	assert_int_equal(10 * magnitudes + profile_filtered_sum(&filtered, 1), 310);
	profile_filtered_free(&filtered);
	profile_free(p);
	return sum;
}

static void test_patterns(void **state)
{
	(void)state;
	assert_int_equal(kept(NULL, NULL), 15);
	assert_int_equal(kept("^main$", NULL), 15);
	assert_int_equal(kept("^work\\(", NULL), 3);
	assert_int_equal(kept("inner|other", NULL), 6);
	assert_int_equal(kept("libx", NULL),
			 8); /* only code without a name is matched by its image */
	assert_int_equal(kept(NULL, "inner|other"), 9);
	assert_int_equal(kept("work", "inner"), 1);
	assert_int_equal(kept("nothing", NULL), 0);
	assert_int_equal(kept(NULL, "main"), 0);
}

static void test_sum_stays(void **state)
{
	const struct profile_filter filter = { .focus = "inner" }, again = { .focus = "work" };
	struct profile *p = make_profile();
	struct profile_filtered filtered = { 0 };
	struct error e;

	(void)state;
	p->values[8] = 0;
	assert_int_equal(profile_total(p, NULL), 15);
	assert_int_equal(profile_filter(p, &filter, &filtered, &e), 0);
	assert_int_equal(p->sample_count, 1);
	assert_int_equal(profile_total(p, NULL) + profile_filtered_sum(&filtered, 0), 15);
	assert_int_equal(profile_filter(p, &again, &filtered, &e), 0);
	assert_int_equal(profile_total(p, NULL) + profile_filtered_sum(&filtered, 0), 15);
	profile_filtered_free(&filtered);
	profile_free(p);
}

static void test_arcs_are_removed(void **state)
{
	const struct profile_filter filter = { .focus = "main" };
	struct profile *p = make_profile();
	struct profile_arc arc = { .from = 0, .to = 1, .count = 3 };
	struct profile_filtered filtered = { 0 };
	struct error e;

	(void)state;
	assert_int_equal(profile_add_arc(p, &arc, NULL), 0);
	assert_int_equal(profile_filter(p, &filter, &filtered, &e), 0);
	assert_int_equal(p->arc_count, 0);
	assert_true(filtered.calls);
	profile_filtered_free(&filtered);
	profile_free(p);
}

/* Back-references, and very long names, would take too much time. */
static void test_hostile(void **state)
{
	enum {
		SIZE = 65536
	};
	const struct profile_filter back = { .focus = "(a*)*\\1b" };
	const struct profile_filter slow = { .focus = "(a|aa)*c", .ignore = "end$" };
	struct profile *p = make_profile();
	char *name = malloc(SIZE + 1);
	struct profile_filtered filtered = { 0 };
	struct error e;

	(void)state;
	assert_non_null(name);
	assert_int_equal(profile_filter(p, &back, &filtered, &e), -EINVAL);
	assert_int_equal(e.kind, ERROR_USAGE);
	assert_non_null(strstr(e.what, "has a back-reference"));
	assert_int_equal(p->sample_count, 5);
	assert_int_equal(kept("a\\\\1", NULL), 0); /* a backslash and a 1 */
	assert_int_equal(kept("work\\(", NULL), 3);

	memset(name, 'a', SIZE);
	memcpy(name + SIZE - 4, "cend", 5);
	add_sample(p, add_pc(p, 7, name, NULL), 0, 32);
	assert_int_equal(profile_filter(p, &slow, &filtered, &e), 0);
	assert_int_equal(p->sample_count, 0);
	profile_filtered_free(&filtered);
	profile_free(p);

	p = make_profile();
	name[4095] = 'c';
	add_sample(p, add_pc(p, 7, name, NULL), 0, 32);
	assert_int_equal(profile_filter(p, &slow, &filtered, &e), 0);
	assert_int_equal(p->sample_count, 1);
	profile_filtered_free(&filtered);
	profile_free(p);
	free(name);
}

static void test_no_pattern(void **state)
{
	const struct profile_filter focus = { .focus = "a(b" },
				    ignore = { .focus = "main", .ignore = "[z-a]" };
	struct profile *p = make_profile();
	struct profile_filtered filtered = { 0 };
	struct error e;

	(void)state;
	assert_int_equal(profile_filter(p, &focus, &filtered, &e), -EINVAL);
	assert_int_equal(e.kind, ERROR_USAGE);
	assert_non_null(strstr(e.what, "'a(b' is no regular expression: "));
	assert_non_null(strstr(e.hint, "regex(7)"));
	assert_int_equal(profile_filter(p, &ignore, &filtered, &e), -EINVAL);
	assert_int_equal(p->sample_count, 5);
	assert_int_equal(profile_filtered_sum(&filtered, 0), 0);
	profile_filtered_free(&filtered);
	profile_free(p);
}

/*
 * A recording from 1000 ns on for 100 ns: in `a` ticks at 1000, 1010, ... 1090; in `b` at 1050 and
 * 1051; in `c` two ticks without a time, and one at 1099.
 */
static struct profile *make_times(bool other_values)
{
	struct profile *p = profile_new();
	struct profile_labels none = { .comm = "" };
	const int64_t values[][3] = { { 10, 70, 1 }, { 2, 14, 1 }, { 3, 21, 1 } };
	struct profile_arc arc = { .count = 3 };
	uint32_t labels;

	assert_non_null(p);
	p->time_ns = 1000;
	p->duration_ns = 100;
	assert_int_equal(profile_add_clock(p, 7), 0);
	if (other_values)
		assert_int_equal(profile_add_value_type(p, "faults", "count"), 0);
	assert_int_equal(profile_add_labels(p, &none, &labels), 0);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t sample, frame;

		assert_int_equal(profile_add_location(p, i + 1, PROFILE_NONE, &frame), 0);
		assert_int_equal(profile_sample(p, &frame, 1, labels, &sample), 0);
		profile_add_values(p, sample, values[i]);
	}
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(tick_list_add(&p->ticks, 0, 1000 + 10 * i), 0);
	assert_int_equal(tick_list_add(&p->ticks, 1, 1050), 0);
	assert_int_equal(tick_list_add(&p->ticks, 2, 1099), 0);
	assert_int_equal(tick_list_add(&p->ticks, 1, 1051), 0);
	assert_int_equal(profile_add_arc(p, &arc, NULL), 0);
	return p;
}

/* What is left of it: the samples by their address, with their ticks. */
static void check_times(uint64_t since, uint64_t until, bool outside, const char *expected)
{
	const struct time_interval interval = { since, until };
	struct profile *p = make_times(false);
	char text[128] = "";
	size_t used = 0;

	assert_int_equal(profile_filter_times(p, &interval, outside), 0);
	for (size_t i = 0; i < p->sample_count; i++) {
		size_t times = 0;

		assert_int_equal(p->values[2 * i + 1], 7 * p->values[2 * i]);
		for (size_t j = 0; j < p->ticks.count; j++)
			times += p->ticks.numbers[j] == i;
		assert_int_equal(times, p->values[2 * i]);
		used += snprintf(
			text + used, sizeof(text) - used, "%c%d ",
			'a' + (int)p->locations[p->frames[p->samples[i].first_frame]].address - 1,
			(int)p->values[2 * i]);
	}
	snprintf(text + used, sizeof(text) - used, "%d+%d", (int)p->time_ns, (int)p->duration_ns);
	assert_string_equal(text, expected);
	assert_int_equal(p->arc_count, 0);
	assert_int_equal(p->all_samples, 15);
	assert_int_equal(p->all_cpu_ns, 105);
	assert_int_equal(p->all_duration_ns, 100);
	profile_free(p);
}

static void test_times(void **state)
{
	(void)state;
	check_times(1000, 1100, false, "a10 b2 c1 1000+100");
	check_times(1020, 1051, false, "a4 b1 1020+31");
	check_times(1051, 1060, false, "b1 1051+9");
	check_times(1052, 1060, false, "1052+8");
	check_times(0, 1001, false, "a1 1000+1");
	check_times(1099, UINT64_MAX, false, "c1 1099+1");
	check_times(2000, 3000, false, "1000+0");
	check_times(1000, 1100, true, "1100+0");
	check_times(1020, 1051, true, "a6 b1 c1 1000+69");
	check_times(0, 1050, true, "a5 b2 c1 1050+50");
	check_times(2000, 3000, true, "a10 b2 c1 1000+100");
}

/* What has no times is dropped; a tick after the end makes the recording longer. */
static void test_times_of_values(void **state)
{
	const struct time_interval interval = { 1090, 2000 };
	struct profile *p = make_times(true);
	struct time_interval recorded;

	(void)state;
	p->default_value = 3;
	assert_int_equal(tick_list_add(&p->ticks, 2, 1500), 0);
	recorded = profile_recorded(p);
	assert_int_equal(recorded.since_ns, 1000);
	assert_int_equal(recorded.until_ns, 1501);
	assert_int_equal(profile_filter_times(p, &interval, false), 0);
	assert_int_equal(p->value_type_count, 2);
	assert_int_equal(p->default_value, 0);
	assert_int_equal(p->sample_count, 2);
	assert_int_equal(p->values[0], 1);
	assert_int_equal(p->values[2], 2);
	assert_int_equal(p->values[3], 14);
	profile_free(p);
}

/* Delay is kept in proportion to the ticks, wherever it was among the values. */
static void test_times_of_delay(void **state)
{
	const struct time_interval interval = { 1000, 1050 };

	(void)state;
	for (int others = 0; others < 2; others++) {
		struct profile *p = make_times(others);
		size_t width = p->value_type_count;

		assert_int_equal(profile_add_value_type(p, "delay", "nanoseconds"), 0);
		assert_int_equal(profile_widen_values(p, width), 0);
		p->values[width] = 41; /* of the 10 ticks of `a` */
		p->default_value = width + 1;
		assert_int_equal(profile_filter_times(p, &interval, false), 0);
		assert_int_equal(p->value_type_count, 3);
		assert_string_equal(p->value_types[2].type, "delay");
		assert_int_equal(p->default_value, 3);
		assert_int_equal(p->sample_count, 1);
		assert_int_equal(p->values[0], 5);
		assert_int_equal(p->values[1], 35);
		assert_int_equal(p->values[2], 20);
		profile_free(p);
	}
}

static void test_times_twice(void **state)
{
	const struct time_interval first = { 1000, 1060 }, second = { 1040, 1100 };
	struct profile *p = make_times(false);

	(void)state;
	assert_int_equal(profile_filter_times(p, &first, false), 0);
	assert_int_equal(profile_filter_times(p, &second, false), 0);
	assert_int_equal(p->all_samples, 15);
	assert_int_equal(p->all_duration_ns, 100);
	assert_int_equal(p->duration_ns, 20);
	assert_int_equal(profile_total(p, NULL), 4);
	profile_free(p);
}

/*
 * The recording of make_times() with the value wall: two waits of a thread, which was blocked from
 * 1010 to 1040 and from 1080 to 1120, and had to wait for a CPU then from 1040 to 1050. 5 ns of it
 * have no time.
 */
static struct profile *make_waits(void)
{
	static const char *const states[] = { "[blocked: lock]", "[runnable: no free CPU]" };
	const int64_t values[][3] = { { 0, 0, 75 }, { 0, 0, 10 } };
	struct profile_labels thread = { .pid = 7, .tid = 8, .comm = "web" };
	struct profile_wall wall = { .threads = 1, .on_cpu_ns = 1, .wall_ns = 1 };
	struct profile *p = make_times(false);
	uint32_t labels, frame, sample[2];

	assert_int_equal(profile_add_value_type(p, "wall", "nanoseconds"), 0);
	assert_int_equal(profile_widen_values(p, 2), 0);
	for (size_t i = 0; i < p->sample_count; i++)
		p->values[3 * i + 2] = p->values[3 * i + 1];
	assert_int_equal(profile_add_labels(p, &thread, &labels), 0);
	for (int i = 0; i < 2; i++) {
		struct profile_function f = { states[i], states[i], "", 0 };
		struct profile_line line = { 0 };

		assert_int_equal(profile_add_function(p, &f, &line.function), 0);
		assert_int_equal(profile_add_line_location(p, 0, PROFILE_NONE, &line, 1, &frame),
				 0);
		assert_int_equal(profile_sample(p, &frame, 1, labels, &sample[i]), 0);
		profile_add_values(p, sample[i], values[i]);
	}
	wall.labels = labels;
	assert_int_equal(profile_add_wall(p, &wall), 0);
	assert_int_equal(wait_list_add(&p->waits, sample[0], 1010, 30, WAIT_NO_CPU), 0);
	assert_int_equal(wait_list_add(&p->waits, sample[1], 1040, 10, WAIT_NO_CPU), 0);
	assert_int_equal(wait_list_add(&p->waits, sample[0], 1080, 40, WAIT_NO_CPU), 0);
	return p;
}

/* The account of the thread, and its waits, in a part: "runnable + blocked: since+length ...". */
static void check_waits(uint64_t since, uint64_t until, bool outside, const char *expected)
{
	const struct time_interval interval = { since, until };
	struct profile *p = make_waits();
	char text[128] = "";
	size_t used = 0;

	assert_int_equal(profile_filter_times(p, &interval, outside), 0);
	assert_int_equal(p->value_type_count, 3);
	assert_string_equal(p->value_types[2].type, "wall");
	if (p->wall_count)
		used = snprintf(text, sizeof(text), "%d + %d:", (int)p->walls[0].runnable_ns,
				(int)p->walls[0].blocked_ns);
	for (size_t i = 0; i < p->waits.count; i++)
		used += snprintf(text + used, sizeof(text) - used, " %d+%d",
				 (int)p->waits.waits[i].since_ns, (int)p->waits.waits[i].length_ns);
	assert_string_equal(text, expected);
	for (size_t i = 0; i < p->sample_count; i++) {
		int64_t waited = 0;

		for (size_t k = 0; k < p->waits.count; k++)
			if (p->waits.waits[k].sample == i)
				waited += p->waits.waits[k].length_ns;
		assert_int_equal(p->values[3 * i + 2], p->values[3 * i + 1] + waited);
	}
	profile_free(p);
}

static void test_times_of_waits(void **state)
{
	struct time_interval recorded;
	struct profile *p = make_waits();

	(void)state;
	recorded = profile_recorded(p);
	assert_int_equal(recorded.until_ns, 1120);
	profile_free(p);
	check_waits(1000, 1120, false, "10 + 70: 1010+30 1040+10 1080+40");
	check_waits(1020, 1045, false, "5 + 20: 1020+20 1040+5");
	check_waits(1100, 2000, false, "0 + 20: 1100+20");
	check_waits(1050, 1080, false, "");
	check_waits(1020, 1030, true, "10 + 60: 1010+10 1030+10 1040+10 1080+40");
	check_waits(1000, 1040, true, "10 + 40: 1040+10 1080+40");
	check_waits(1000, 1120, true, "");
	/* Where waits have no times, wall is unknown of a part. */
	p = make_waits();
	p->waits.count = 0;
	recorded = (struct time_interval){ 1000, 1050 };
	assert_int_equal(profile_filter_times(p, &recorded, false), 0);
	assert_int_equal(p->value_type_count, 2);
	assert_int_equal(p->wall_count, 0);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times_of_waits), cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_sum_stays),      cmocka_unit_test(test_arcs_are_removed),
		cmocka_unit_test(test_no_pattern),     cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_times),	       cmocka_unit_test(test_times_of_values),
		cmocka_unit_test(test_times_of_delay), cmocka_unit_test(test_times_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
