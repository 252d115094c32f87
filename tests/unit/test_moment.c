// SPDX-License-Identifier: GPL-2.0-only
/* What differs in a moment of a recording, by more than chance allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/diff/moment.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static struct profile *part_of(uint64_t duration_ms)
{
	struct profile *p = profile_new();

	assert_non_null(p);
	p->duration_ns = duration_ms * 1000000;
	assert_int_equal(profile_add_clock(p, 1000000), 0);
	return p;
}

static uint32_t frame_of(struct profile *p, const char *name)
{
	struct profile_function f = { name, name, "", 0 };
	struct profile_line line = { 0 };
	uint32_t location;

	assert_int_equal(profile_add_function(p, &f, &line.function), 0);
	assert_int_equal(profile_add_line_location(p, 0, PROFILE_NONE, &line, 1, &location), 0);
	return location;
}

/* Ticks of 1 ms in a function that is called by main, in the only thread of a process. */
static void add_ticks(struct profile *p, uint32_t pid, const char *function, uint64_t ticks)
{
	const uint32_t frames[] = { frame_of(p, function), frame_of(p, "main") };
	struct profile_labels labels = { .pid = pid, .tid = pid, .comm = "server" };
	int64_t values[2];
	uint32_t id;

	profile_set_ticks(p, ticks, values);
	assert_int_equal(profile_add_labels(p, &labels, &id), 0);
	assert_int_equal(profile_add_sample(p, frames, 2, id, values), 0);
}

static const struct moment_difference *find(const struct moment *m, const char *view,
					    const char *name, bool total)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct moment_difference *d = &m->differences[i];

		if (strcmp(d->view->name, view) == 0 && d->total == total &&
		    strcmp(d->row->name ?: d->row->comm, name) == 0)
			return d;
	}
	return NULL;
}

/* 100 ms before have 10 ticks in `steady`; then 12 in it, and 60 of another process in `burst`. */
static void spike_is_found(void **state)
{
	struct profile *before = part_of(100), *then = part_of(100);
	struct rows_options o = { 0 };
	const struct moment_difference *d;
	struct moment m;

	(void)state;
	add_ticks(before, 1, "steady", 10);
	add_ticks(then, 1, "steady", 12);
	add_ticks(then, 2, "burst", 60);
	assert_int_equal(moment_make(&m, before, then, &o), 0);
	d = find(&m, "process", "server", false);
	assert_non_null(d);
	assert_int_equal(d->row->key->pid, 2);
	assert_true(d->percent[OLD] == 0 && fabs(d->percent[NEW] - 60) < 1e-9);
	d = find(&m, "thread", "server", false);
	assert_non_null(d);
	assert_int_equal(d->row->key->tid, 2);
	assert_non_null(find(&m, "function", "burst", false));
	d = find(&m, "function", "main", true);
	assert_non_null(d);
	assert_true(fabs(d->percent[OLD] - 10) < 1e-9 && fabs(d->percent[NEW] - 72) < 1e-9);
	/* main's 72 against 10 is the largest; the process comes before its function. */
	assert_true(m.count == 4);
	assert_string_equal(m.differences[1].view->name, "process");
	assert_string_equal(m.differences[3].view->name, "function");
	/* Of each process, thread and function, self, and main's total */
	assert_int_equal(m.tested, 7);
	/* 7 / 3 * 2 * 2^-60: of 7, three have that */
	assert_true(m.differences[1].chance.p < 1e-15 &&
		    m.differences[1].chance.p >= ldexp(1, -58));
	moment_free(&m);

	o.view = row_view_by_name("function");
	assert_int_equal(moment_make(&m, before, then, &o), 0);
	assert_int_equal(m.count, 2);
	assert_int_equal(m.tested, 3);
	moment_free(&m);
	profile_free(before);
	profile_free(then);
}

/* A recording with waits, of a part of 1 s. */
static struct profile *part_with_waits(void)
{
	struct profile *p = part_of(1000);

	assert_int_equal(profile_add_sum(p, PROFILE_SUM_WALL), 0);
	return p;
}

/* So many waits of this length in a function of the only thread. */
static void add_waits(struct profile *p, const char *state, const char *function, int count,
		      uint64_t ms)
{
	const uint32_t frames[] = { frame_of(p, state), frame_of(p, function) };
	const int64_t values[] = { 0, 0, (int64_t)(count * ms * 1000000) };
	struct profile_labels labels = { .pid = 1, .tid = 1, .comm = "server" };
	uint32_t id, sample;

	assert_int_equal(profile_add_labels(p, &labels, &id), 0);
	assert_int_equal(profile_sample(p, frames, 2, id, &sample), 0);
	profile_add_values(p, sample, values);
	for (int i = 0; i < count; i++)
		assert_int_equal(wait_list_add(&p->waits, sample, 1000 + 30000000 * i, ms * 1000000,
					       WAIT_NO_CPU),
				 0);
}

static void check_wait(const struct moment *m, const char *function, const char *frame,
		       double before, double then, bool judged)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct moment_difference *d = &m->differences[i];

		if (!d->is_wait || strcmp(d->row->name ?: "", function) != 0 ||
		    strcmp(d->row->key->state, frame) != 0)
			continue;
		assert_true(fabs(d->percent[OLD] - before) < 1e-9);
		assert_true(fabs(d->percent[NEW] - then) < 1e-9);
		assert_int_equal(d->chance.least <= CHANCE_LEVEL, judged);
		assert_true(!judged || d->chance.p <= CHANCE_LEVEL);
		return;
	}
	print_error("no row of %s in %s\n", frame, function);
	fail();
}

/* A lock that 20 calls had to wait for, one wait of 400 ms, and waits as before, or for work. */
static void waits_are_compared(void **state)
{
	struct profile *before = part_with_waits(), *then = part_with_waits();
	struct rows_options o = { 0 };
	struct moment m;

	(void)state;
	add_waits(before, "[blocked: disk]", "load", 20, 5);
	add_waits(then, "[blocked: disk]", "load", 20, 5);
	add_waits(before, "[blocked: lock]", "update", 10, 1);
	add_waits(then, "[blocked: lock]", "update", 20, 15);
	add_waits(then, "[blocked: socket]", "ask", 1, 400);
	add_waits(then, "[blocked: pipe]", "tell", 1, 50); /* a twentieth, which may be chance */
	add_waits(before, "[idle: poll]", "serve", 20, 40);
	add_waits(then, "[idle: poll]", "serve", 20, 10);
	assert_int_equal(moment_make(&m, before, then, &o), 0);
	assert_int_equal(m.count, 2);
	assert_int_equal(m.tested, 2);
	assert_int_equal(m.unjudged, 1);
	check_wait(&m, "ask", "[blocked: socket]", 0, 40, false);
	check_wait(&m, "update", "[blocked: lock]", 1, 30, true);
	moment_free(&m);

	o.view = row_view_by_name("reason");
	assert_int_equal(moment_make(&m, before, then, &o), 0);
	assert_int_equal(m.count, 3);
	check_wait(&m, "", "[idle: poll]", 80, 20, true);
	moment_free(&m);
	o.view = row_view_by_name("process");
	assert_int_equal(moment_make(&m, before, then, &o), 0);
	assert_int_equal(m.count, 0);
	moment_free(&m);
	profile_free(before);
	profile_free(then);
}

/* The lengths count: 1000 ticks in 10 s are as many as 10 in 100 ms. */
static void lengths_count(void **state)
{
	struct profile *rest = part_of(10000), *then = part_of(100);
	struct rows_options o = { 0 };
	struct moment m;

	(void)state;
	add_ticks(rest, 1, "steady", 1000);
	add_ticks(then, 1, "steady", 10);
	assert_int_equal(moment_make(&m, rest, then, &o), 0);
	assert_int_equal(m.count, 0);
	assert_int_equal(m.tested, 4);
	moment_free(&m);
	profile_free(then);

	/* None at all is less than chance allows: twice (100 / 101)^1000. */
	then = part_of(100);
	o.view = row_view_by_name("process");
	assert_int_equal(moment_make(&m, rest, then, &o), 0);
	assert_int_equal(m.count, 1);
	assert_true(fabs(m.differences[0].chance.p / (2 * pow(100. / 101, 1000)) - 1) < 1e-9);
	assert_true(m.differences[0].percent[NEW] == 0);
	moment_free(&m);
	profile_free(rest);
	profile_free(then);
}

/* Too few ticks for any difference are not looked at, and do not weaken the others. */
static void few_ticks(void **state)
{
	struct profile *before = part_of(100), *then = part_of(100);
	struct rows_options o = { .view = row_view_by_name("function") };
	char name[32];
	struct moment m;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "rare_%d", i);
		add_ticks(i % 2 ? before : then, 1, name, 1 + i % 5);
	}
	add_ticks(then, 1, "burst", 7);
	assert_int_equal(moment_make(&m, before, then, &o), 0);
	assert_int_equal(m.tested, 2);
	assert_int_equal(m.count, 1);
	assert_string_equal(m.differences[0].row->name, "burst");
	/* the smaller of two */
	assert_true(fabs(m.differences[0].chance.p - 2 * 2 * ldexp(1, -7)) < 1e-12);
	moment_free(&m);
	profile_free(before);
	profile_free(then);
}

/* Ticks that come by chance, on average so many */
static uint64_t poisson(double mean)
{
	double limit = exp(-mean), product = drand48();
	uint64_t n = 0;

	for (; product > limit; n++)
		product *= drand48();
	return n;
}

/*
 * Of 400 quiet moments with 30 functions of 10 threads, at most 1 of 20 has a difference: 20 on
 * average at most, and above 40 with a probability of less than 10^-4.
 */
static void quiet_moments(void **state)
{
	struct rows_options o = { 0 };
	unsigned int wrong = 0;

	(void)state;
	srand48(1);
	for (int i = 0; i < 400; i++) {
		struct profile *rest = part_of(3000), *then = part_of(200);
		struct moment m;
		char name[32];

		for (unsigned int f = 0; f < 30; f++) {
			double rate = 0.02 * (f + 1); /* ticks in a ms */

			snprintf(name, sizeof(name), "f%u", f);
			add_ticks(rest, 1 + f % 10, name,
				  poisson(rate * 300) + poisson(rate * 300));
			add_ticks(then, 1 + f % 10, name, poisson(rate * 40));
		}
		rest->duration_ns = 600 * 1000000ULL;
		then->duration_ns = 40 * 1000000ULL;
		assert_int_equal(moment_make(&m, rest, then, &o), 0);
		assert_true(m.tested > 40);
		wrong += m.count > 0;
		moment_free(&m);
		profile_free(rest);
		profile_free(then);
	}
	assert_true(wrong <= 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spike_is_found), cmocka_unit_test(waits_are_compared),
		cmocka_unit_test(lengths_count),  cmocka_unit_test(few_ticks),
		cmocka_unit_test(quiet_moments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
