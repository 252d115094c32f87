// SPDX-License-Identifier: GPL-2.0-only
/* Wall times of threads: in profiles, sums of these, selections and pprof files. */
#include "pprof_fixture.h"

#include <inttypes.h>

#include "profile/filter.h"
#include "profile/merge.h"

/* Adds to the wall time of threads of this name. */
static void add_wall(struct profile *p, const char *comm, uint64_t ran, uint64_t runnable,
		     uint64_t blocked, uint64_t idle, uint64_t unknown)
{
	const struct profile_wall wall = {
		.labels = add_labels(p, 7, 8, comm, false),
		.threads = 1,
		.wall_ns = ran + runnable + blocked + idle + unknown,
		.on_cpu_ns = ran,
		.runnable_ns = runnable,
		.blocked_ns = blocked,
		.idle_ns = idle,
		.unknown_ns = unknown,
	};

	assert_int_equal(profile_add_wall(p, &wall), 0);
}

/* Its wall times: "NAME THREADS WALL = ON-CPU + RUNNABLE + BLOCKED + IDLE + UNKNOWN; ". */
static void assert_walls(const struct profile *p, const char *expected)
{
	char text[512] = "";
	size_t used = 0;

	for (size_t i = 0; i < p->wall_count; i++) {
		const struct profile_wall *w = &p->walls[i];

		used += snprintf(text + used, sizeof(text) - used,
				 "%s %" PRIu64 " %" PRIu64 " = %" PRIu64 " + %" PRIu64 " + %" PRIu64
				 " + %" PRIu64 " + %" PRIu64 "; ",
				 p->labels[w->labels].comm, w->threads, w->wall_ns, w->on_cpu_ns,
				 w->runnable_ns, w->blocked_ns, w->idle_ns, w->unknown_ns);
	}
	assert_string_equal(text, expected);
}

static struct profile *make_profile(void)
{
	struct profile *p = empty_profile(1000);

	add_wall(p, "postgres", 1, 20, 300, 2000, 0);
	add_wall(p, "nginx", 5, 0, 0, 0, UINT32_MAX);
	add_wall(p, "postgres", 4, 50, 600, 3000, 7);
	return p;
}

#define MADE                                                                               \
	"postgres 2 5982 = 5 + 70 + 900 + 5000 + 7; nginx 1 4294967300 = 5 + 0 + 0 + 0 + " \
	"4294967295; "

static void adds_up(void **state)
{
	struct profile *p = make_profile(), *other = make_profile(), *sum = profile_new();
	struct profile_wall all = profile_wall_sum(p);
	struct error e;

	(void)state;
	assert_walls(p, MADE);
	assert_int_equal(all.threads, 3);
	assert_true(all.wall_ns == all.on_cpu_ns + all.runnable_ns + all.blocked_ns + all.idle_ns +
					   all.unknown_ns);
	add_wall(other, "sshd", 1, 0, 0, 0, 0);
	p->totals.known = other->totals.known = true;
	p->totals.wall_lost = 3;
	other->totals.wall_lost = 4;
	assert_int_equal(profile_merge(sum, p, NULL, &e), 0);
	assert_int_equal(profile_merge(sum, other, NULL, &e), 0);
	assert_walls(
		sum,
		"postgres 4 11964 = 10 + 140 + 1800 + 10000 + 14; "
		"nginx 2 8589934600 = 10 + 0 + 0 + 0 + 8589934590; sshd 1 1 = 1 + 0 + 0 + 0 + 0; ");
	assert_int_equal(sum->totals.wall_lost, 7);
	profile_free(p);
	profile_free(other);
	profile_free(sum);
}

static void is_selected(void **state)
{
	const struct profile_label_filter filter = { .comm = "post*" };
	const struct time_interval interval = { 0, 1 };
	struct profile *p = make_profile();

	(void)state;
	assert_int_equal(profile_filter_labels(p, &filter, NULL), 0);
	assert_walls(p, "postgres 2 5982 = 5 + 70 + 900 + 5000 + 7; ");
	/* It is not known when. */
	assert_int_equal(profile_filter_times(p, &interval, false), 0);
	assert_walls(p, "");
	profile_free(p);
}

static void is_in_files(void **state)
{
	struct profile *p = make_profile(), *back;
	struct bytes b = write_bytes(pprof, p);

	(void)state;
	back = read_file_good(&b);
	assert_walls(back, MADE);
	for (size_t i = 0; i < back->wall_count; i++) {
		assert_int_equal(back->labels[back->walls[i].labels].pid, 7);
		assert_int_equal(back->labels[back->walls[i].labels].tid, 8);
	}
	assert_int_equal(back->extra_count, 0);
	profile_free(p);
	profile_free(back);
	bytes_free(&b);
}

/* A file with a wall time of these bytes. */
static struct bytes file_with_wall(const uint8_t *wall, size_t size)
{
	struct bytes b = small_file();

	add_strings(&b);
	add_varint(&b, PPROF_WALL << 3 | 2);
	add_varint(&b, size);
	bytes_add(&b, wall, size);
	return b;
}

#define CHECK_BAD_WALL(reason, ...)                                     \
	do {                                                            \
		const uint8_t wall[] = { __VA_ARGS__ };                 \
		struct bytes file = file_with_wall(wall, sizeof(wall)); \
                                                                        \
		read_bad(pprof, &file, reason);                         \
		bytes_free(&file);                                      \
	} while (0)

static void bad_files_are_rejected(void **state)
{
	struct bytes b = small_file();

	(void)state;
	CHECK_BAD_WALL("the wall time is corrupt", 0x08);
	CHECK_BAD_WALL("the wall time is corrupt", 0x0a, 1, 1);
	CHECK_BAD_WALL("the wall time is of no thread", 0x10, 5);
	CHECK_BAD_WALL("the wall time is longer than all years", 0x08, 1, 0x10, 0xff, 0xff, 0xff,
		       0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1);
	CHECK_BAD_WALL("the wall time is longer than all years", 0x08, 1, 0x10, 0xff, 0xff, 0xff,
		       0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0x28, 1);
	CHECK_BAD_WALL("the label is corrupt", 0x08, 1, 0x1a, 2, 0x12, 0);
	CHECK_BAD_WALL("string number 99", 0x08, 1, 0x1a, 4, 8, 99, 0x18, 1);
	add_strings(&b);
	add_number(&b, PPROF_WALL, 5);
	read_bad(pprof, &b, "the field has the wrong wire type");
	bytes_free(&b);
}

static void truncated_files_are_survived(void **state)
{
	struct profile *p = make_profile();
	struct bytes b = write_bytes(pprof, p), raw = inflated(&b);

	(void)state;
	survive_truncation(pprof, &raw);
	survive_bit_flips(pprof, &raw);
	profile_free(p);
	bytes_free(&b);
	bytes_free(&raw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adds_up),
		cmocka_unit_test(is_selected),
		cmocka_unit_test(is_in_files),
		cmocka_unit_test(bad_files_are_rejected),
		cmocka_unit_test(truncated_files_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
