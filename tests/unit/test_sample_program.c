// SPDX-License-Identifier: GPL-2.0-only
/* The sample program in the kernel with full maps and buffers. Needs the privileges to record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/events.h"
#include "capture/members.h"
#include "capture/sample_program.h"
#include "util/clock.h"

/* --- A program with many stacks: the paths through a tree, with more frames below --- */

#define BRANCHES 12
#define BELOW	 80

#pragma GCC push_options
#pragma GCC optimize("no-omit-frame-pointer", "no-optimize-sibling-calls")

static volatile unsigned int steps;

__attribute__((noinline)) static void walk(unsigned int path, int depth)
{
	if (depth == 0) {
		steps++;
	} else if (path & 1) {
		walk(path >> 1, depth - 1);
		steps += 2; /* keeps the two calls apart */
	} else {
		walk(path >> 1, depth - 1);
	}
	steps++;
}

__attribute__((noinline)) static void below(int depth)
{
	if (depth)
		below(depth - 1);
	else
		for (unsigned int path = 0; getppid() != 1; path++)
			for (int i = 0; i < 1000; i++)
				walk(path, BRANCHES);
	steps++;
}

#pragma GCC pop_options

static pid_t start_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		alarm(60); /* also when the parent is ended */
		below(BELOW);
		_exit(0);
	}
	return child;
}

/* --- --- */

/* All stacks differ, and have the same root. */
static void check_stacks(const struct counts *counts)
{
	const struct counted *first = &counts->samples[0];
	uint64_t root = counts->pcs[first->first_pc + first->kernel_depth + first->user_depth - 1];

	for (size_t i = 0; i < counts->count; i++) {
		const struct counted *s = &counts->samples[i];
		const uint64_t *pcs = counts->pcs + s->first_pc;

		assert_true(s->count > 0);
		assert_true(s->user_depth > BELOW && s->user_depth <= STACK_DEPTH_MAX);
		assert_true(s->kernel_depth <= STACK_DEPTH_MAX);
		assert_int_equal(pcs[s->kernel_depth + s->user_depth - 1], root);
		assert_int_equal(!!s->kernel_depth, !!(s->id & SAMPLE_ID_KERNEL));
	}
}

/* Until no bucket is free and some ticks have come through the ring buffer. */
static void record_until_full(struct sample_program *sample, uint64_t through_ring)
{
	uint64_t end = now_ns() + 30 * NS_PER_S;

	while (sample_program_counters(sample).ring < through_ring && now_ns() < end) {
		usleep(20000);
		assert_int_equal(sample_program_read_ring(sample), 0);
		assert_int_equal(sample_program_read_table(sample), 0);
	}
	assert_true(sample_program_counters(sample).ring >= through_ring);
}

static void record(pid_t child, struct sample_program *sample, struct event_set *events)
{
	const struct sample_settings settings = {
		.sides = SAMPLE_USER | SAMPLE_KERNEL,
		.stacks = true,
	};
	const struct member member = { .state = MEMBER_COUNTS };
	struct members members = { 0 };
	struct counts counts = { 0 };
	struct sample_counters sum;
	uint64_t kernel;
	struct error e;
	int err = events_prepare(events, CAPTURE_CPU_CLOCK, 4999, &e);

	err = err ?: sample_program_load(sample, &settings, &counts, &e);
	if (err == -EPERM || err == -EACCES) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		skip();
	}
	assert_int_equal(err, 0);
	err = members_begin(&members, sample_program_object(sample), false, &e);
	err = err ?: members_add(&members, child, &member, &e);
	err = err ?: events_open(events, NULL, bpf_program__fd(sample_program_on_tick(sample)), &e);
	assert_int_equal(err, 0);
	record_until_full(sample, 100);
	events_stop(events);
	members_free(&members);
	assert_int_equal(sample_program_read_ring(sample), 0);
	assert_int_equal(sample_program_read_table(sample), 0);
	sum = sample_program_counters(sample);
	assert_int_equal(sum.excluded, 0);
	assert_int_equal(counts_sum(&counts, &kernel) + sum.ring_full,
			 sample_program_ticks(sample));
	check_stacks(&counts);
	counts_free(&counts);
}

static void record_child(struct sample_program *sample)
{
	struct event_set events = { .count = 0 };
	pid_t child = start_child();

	record(child, sample, &events);
	assert_int_equal(sample_program_counters(sample).ring_full, 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	events_close(&events);
	sample_program_free(sample);
}

/* If the table is small, the other stacks go through the ring buffer, and none is lost. */
static void test_full_arena(void **state)
{
	struct sample_program sample = { .arena_words = 50 * STACK_WORDS_MAX };

	(void)state;
	record_child(&sample);
}

/* Stacks with the same hash are counted separately, and soon find no free entry. */
static void test_one_hash(void **state)
{
	struct sample_program sample = { .one_hash = true };

	(void)state;
	record_child(&sample);
}

/* A process with children that live until it has ended. */
static pid_t start_family(unsigned int children)
{
	pid_t parent = fork();

	if (parent)
		return parent;
	raise(SIGSTOP);
	for (unsigned int i = 0; i < children; i++)
		if (fork() == 0) {
			alarm(60); /* also when the parent is ended */
			while (getppid() != 1)
				usleep(1000);
			_exit(0);
		}
	_exit(0);
}

/* Children that do not fit in the map of members are dropped, and counted. */
static void test_full_members(void **state)
{
	const struct sample_settings settings = { .sides = SAMPLE_USER, .inherit = true };
	const struct member member = { .state = MEMBER_COUNTS };
	struct sample_program sample = { .members_max = 4 };
	struct members members = { 0 };
	struct counts counts = { 0 };
	struct error e;
	pid_t parent;
	int err, status;

	(void)state;
	err = sample_program_load(&sample, &settings, &counts, &e);
	if (err == -EPERM || err == -EACCES)
		skip();
	assert_int_equal(err, 0);
	parent = start_family(10);
	waitpid(parent, &status, WUNTRACED);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(members_begin(&members, sample_program_object(&sample), true, &e), 0);
	assert_int_equal(members_add(&members, parent, &member, &e), 0);
	assert_int_equal(members_dropped(&members), 0);
	kill(parent, SIGCONT);
	assert_int_equal(waitpid(parent, &status, 0), parent);
	assert_int_equal(members_dropped(&members), 10 + 1 - 4);
	members_free(&members);
	sample_program_free(&sample);
	counts_free(&counts);
}

/* --- Windows --- */

/* How often the kernel has run the program: it counts that while its statistics are enabled. */
static uint64_t runs_of(const struct sample_program *sample)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(bpf_program__fd(sample_program_on_tick(sample)),
						&info, &size),
			 0);
	return info.run_cnt;
}

static bool is_zero(const void *memory, size_t size)
{
	const char *bytes = memory;

	return !*bytes && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* A bank that was taken and is not in use yet: no tick counts there. */
static bool is_clear(const struct sample_program *sample, size_t bank)
{
	size_t at = bank * sample->buckets;

	for (size_t i = bank; i < sample->cpu_count * SAMPLE_BANKS; i += SAMPLE_BANKS)
		if (!is_zero(&sample->counters[i], sizeof(*sample->counters)))
			return false;
	return sample->settings.stacks
		       ? is_zero(&sample->stacks[at], sample->buckets * sizeof(*sample->stacks))
		       : is_zero(&sample->table[at], sample->buckets * sizeof(*sample->table));
}

/* Returns the ticks of a window, all of which are in its counts, or lost. */
static uint64_t take_window(struct sample_program *sample, struct counts *ring, int64_t *in_ring)
{
	struct counts counts = { 0 };
	struct sample_window window;
	uint64_t from_ring, from_table, kernel;

	assert_int_equal(sample_program_switch(sample), 0);
	assert_int_equal(sample_program_read_ring(sample), 0);
	assert_int_equal(sample_program_take(sample, &counts, &window), 0);
	from_table = counts_sum(&counts, &kernel);
	from_ring = counts_sum(ring, &kernel);
	*in_ring += window.counters.ring - from_ring;
	assert_int_equal(window.ticks,
			 from_table + window.counters.ring + window.counters.ring_full);
	for (size_t i = 0; i < counts.count; i++)
		assert_int_equal(counts.samples[i].cpu < sample->cpu_count,
				 sample->settings.stacks);
	counts_free(&counts);
	counts_free(ring);
	return window.ticks;
}

#define WINDOWS 300

/*
 * Each run of the program is in one window, as the kernel counts the runs itself; and no tick
 * counts in a bank that was taken.
 */
static void count_windows(struct sample_program *sample, bool stacks)
{
	const struct sample_settings settings = {
		.sides = SAMPLE_USER | SAMPLE_KERNEL,
		.stacks = stacks,
		.everyone = true,
		.windows = true,
	};
	struct event_set events = { .count = 0 };
	struct counts ring = { 0 };
	uint64_t ticks = 0;
	int64_t in_ring = 0;
	int statistics, err;
	struct error e;
	pid_t child = start_child();

	assert_int_equal(events_prepare(&events, CAPTURE_CPU_CLOCK, 9999, &e), 0);
	err = sample_program_load(sample, &settings, &ring, &e);
	if (err == -EPERM || err == -EACCES) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		skip();
	}
	assert_int_equal(err, 0);
	statistics = bpf_enable_stats(BPF_STATS_RUN_TIME);
	assert_true(statistics >= 0);
	err = events_open(&events, NULL, bpf_program__fd(sample_program_on_tick(sample)), &e);
	assert_int_equal(err, 0);
	for (size_t i = 0; i < WINDOWS; i++) {
		usleep(i % 10 * 1000);
		assert_true(i == 0 || is_clear(sample, i % SAMPLE_BANKS == 0));
		ticks += take_window(sample, &ring, &in_ring);
	}
	events_stop(&events);
	ticks += take_window(sample, &ring, &in_ring);
	assert_int_equal(in_ring, 0);
	assert_true(ticks > 1000);
	assert_int_equal(ticks, runs_of(sample));
	close(statistics);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	events_close(&events);
	sample_program_free(sample);
}

static void test_windows(void **state)
{
	struct sample_program sample = { .cpu_count = 0 };

	(void)state;
	count_windows(&sample, false);
}

static void test_windows_of_stacks(void **state)
{
	struct sample_program sample = { .cpu_count = 0 };

	(void)state;
	count_windows(&sample, true);
}

/* A bank's part of the arena is used up: the rest goes through the ring buffer. */
static void test_windows_with_full_arena(void **state)
{
	struct sample_program sample = { .arena_words = 5 * STACK_WORDS_MAX };

	(void)state;
	count_windows(&sample, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_members),
		cmocka_unit_test(test_full_arena),
		cmocka_unit_test(test_one_hash),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_windows_of_stacks),
		cmocka_unit_test(test_windows_with_full_arena),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
