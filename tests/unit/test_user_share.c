// SPDX-License-Identifier: GPL-2.0-only
/* What users other than root have in a file of the archive: archive/user_share.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "archive/user_share.h"
#include "profile/tags.h"
#include "format_fixture.h"
#include "util/clock.h"

/* Adds a process of a user, which ran for so long, with so many samples in a function of its own.
 */
static void add_process(struct profile *p, const char *user, const char *name, uint64_t on_cpu_ns,
			int64_t samples)
{
	struct profile_tag tags[] = { { "thread", name, 0, "" },
				      { "unit", "web.service", 0, "" },
				      { "user", user, 0, "" } };
	struct profile_labels labels = { .comm = name, .tags = tags, .tag_count = 3 };
	struct profile_wall wall = { .threads = 1, .wall_ns = on_cpu_ns, .on_cpu_ns = on_cpu_ns };
	struct profile_function function = { name, name, "", 0 };
	struct profile_line line = { 0 };
	uint32_t frame;

	assert_int_equal(profile_add_labels(p, &labels, &wall.labels), 0);
	assert_int_equal(profile_add_wall(p, &wall), 0);
	if (!samples)
		return;
	assert_int_equal(profile_add_function(p, &function, &line.function), 0);
	assert_int_equal(profile_add_line_location(p, 0, PROFILE_NONE, &line, 1, &frame), 0);
	add_sample(p, &frame, 1, wall.labels, samples);
}

static struct profile *three_users(unsigned int crowd)
{
	struct profile *p = empty_profile(10000000);
	char name[32];

	for (unsigned int i = 0; i < crowd; i++) {
		snprintf(name, sizeof(name), "crowd %u", i);
		add_process(p, "mallory", name, 1000 + i, i % 2);
	}
	for (unsigned int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "alice %u", i);
		add_process(p, "alice", name, 10, 1);
		snprintf(name, sizeof(name), "root %u", i);
		add_process(p, "root", name, 10, 1);
	}
	return p;
}

struct sums {
	uint64_t walls, rows, on_cpu_ns;
	int64_t samples;
	size_t stacks, others; /* of which so many are of USER_SHARE_OTHERS */
};

static struct sums sums_of(const struct profile *p, const char *user)
{
	struct sums s = { 0 };

	for (size_t i = 0; i < p->wall_count; i++) {
		const struct profile_labels *l = &p->labels[p->walls[i].labels];

		if (strcmp(profile_tag_text(l, TAG_USER), user) != 0)
			continue;
		s.rows++;
		s.walls += p->walls[i].threads;
		s.on_cpu_ns += p->walls[i].on_cpu_ns;
	}
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_labels *l = &p->labels[p->samples[i].labels];

		if (strcmp(profile_tag_text(l, TAG_USER), user) != 0)
			continue;
		s.stacks++;
		s.samples += p->values[i * p->value_type_count];
		assert_string_equal(profile_tag_text(l, TAG_UNIT), "web.service");
		if (strcmp(l->comm, USER_SHARE_OTHERS) == 0)
			s.others++;
	}
	return s;
}

/* A limit leaves what each user has in all, and all of whoever has little. */
static void check_limit(const struct user_share *share, struct sums *mallory)
{
	struct profile *p = three_users(5000);
	struct error e;

	assert_int_equal(user_share_limit(&p, share, &e), 0);
	*mallory = sums_of(p, "mallory");
	assert_int_equal(mallory->walls, 5000);
	assert_int_equal(mallory->on_cpu_ns, 5000 * 1000 + 5000ULL * 4999 / 2);
	assert_int_equal(mallory->samples, 2500);
	for (int i = 0; i < 2; i++) {
		struct sums s = sums_of(p, i ? "root" : "alice");

		assert_int_equal(s.rows, 50);
		assert_int_equal(s.stacks, 50);
		assert_int_equal(s.others, 0);
	}
	profile_free(p);
}

static void test_limits(void **state)
{
	struct sums s;

	(void)state;
	check_limit(&(struct user_share){ UINT64_MAX, SIZE_MAX }, &s);
	assert_int_equal(s.rows, 5000);
	assert_int_equal(s.stacks, 2500);
	check_limit(&(struct user_share){ UINT64_MAX, 150 }, &s);
	assert_int_equal(s.rows, 100 + 1);
	assert_int_equal(s.stacks, 2500);
	check_limit(&(struct user_share){ 20000, SIZE_MAX }, &s);
	assert_in_range(s.rows, 1, 500);
	assert_in_range(s.stacks, 50, 500);
	assert_int_equal(s.others, 1);
}

/* Files of all grains that the archive keeps at once have room in it. */
static void test_shares(void **state)
{
	const struct archive_limits limits = { .bytes = (uint64_t)2 << 30, .days = 30 },
				    none = { 0 };
	uint64_t hours = user_share_of(&limits, WINDOW_HOUR_S, 0).bytes * 24 * 30;
	uint64_t tens = user_share_of(&limits, WINDOW_10MIN_S, 0).bytes * 144;
	uint64_t minutes = user_share_of(&limits, WINDOW_FINE_S, 60 * NS_PER_S).bytes * 120;
	uint64_t seconds = user_share_of(&limits, WINDOW_FINE_S, 6 * NS_PER_S).bytes * 1200;

	(void)state;
	assert_in_range(hours + tens + minutes, limits.bytes / 2, limits.bytes);
	assert_in_range(seconds, minutes * 9 / 10, minutes);
	assert_int_equal(user_share_of(&none, WINDOW_HOUR_S, 0).bytes * 24 * 30, hours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
