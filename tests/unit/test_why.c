// SPDX-License-Identifier: GPL-2.0-only
/* Chains of waits, made of recorded events: each node is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/format.h"
#include "profile/thread_state.h"
#include "record/wait_names.h"
#include "report/chain.h"
#include "report/why.h"
#include "util/clock.h"

/* When recordings begin, and how long they are. */
#define BEGIN_NS    1000000000000000000ULL
#define DURATION_MS 1000

/* Names that begin with _ are of functions of the C library. */
static uint32_t location_of(struct profile *p, const char *name)
{
	struct profile_function f = { name, name, "", 0 };
	uint32_t location, image, mapping = PROFILE_NONE;
	struct profile_line line = { 0 };

	if (*name == '_') {
		assert_int_equal(profile_add_image(p, "/lib/libc.so.6", NULL, 0, &image), 0);
		assert_int_equal(profile_add_mapping(p, 0, 4096, 0, image, &mapping), 0);
	}
	assert_int_equal(profile_add_function(p, &f, &line.function), 0);
	assert_int_equal(profile_add_line_location(p, 0, mapping, &line, 1, &location), 0);
	return location;
}

static uint64_t time_of(double ms)
{
	return BEGIN_NS + (uint64_t)(ms * 1e6 + 0.5);
}

/*
 * Adds an event, in one line. Threads have names of one letter, whose code is the TID.
 *
 *	A 10+20 blocked lock@f<g B	from 10 ms on A was blocked for 20 ms, in f, that g called,
 *					until B woke it
 *	A 10+20 blocked poll timer	an interrupt woke it; -: nobody is known
 *	A 10+20 undecided poll B	this wait has no stack
 *	A 30+5 runnable 1		it then got CPU 1; -: unknown
 *	A 12 tick burn<main		at 12 ms it was in burn, which main had called
 *	A 10+20 call f			it called f then
 *	... whom B			the same of a lock, which B has
 *	... for q1			the same, with the label query
 *	A wall 100 40			it lived for 100 ms, of which it was on a CPU for 40
 *	A 750+0 blocked lock -		it was blocked for 750 ms, it is unknown when
 */
static void add_event(struct profile *p, const char *event)
{
	char thread[16], what[32], state[32] = "", reason[64] = "-", waker[32] = "-";
	char leaf[128], name[64], *rest;
	struct profile_tag tags[4];
	const char *query = strstr(event, " for "), *whom = strstr(event, " whom ");
	char peer[32];
	struct profile_labels labels = { .pid = 1, .tag_count = 0, .tags = tags };
	double since, length = 0;
	uint32_t frames[8], depth = 1, sample, number;
	int64_t values[4] = { 0 };
	char *place;

	assert_true(sscanf(event, "%15s %31s %31s %63s %31s", thread, what, state, reason, waker) >=
		    4);
	labels.tid = (unsigned char)*thread;
	labels.comm = thread;
	if (query)
		tags[labels.tag_count++] =
			(struct profile_tag){ "query", query + strlen(" for "), 0, "" };
	if (whom) {
		snprintf(peer, sizeof(peer), "%c (%d)", whom[6], whom[6]);
		tags[labels.tag_count++] = (struct profile_tag){ "peer", peer, 0, "" };
	}
	if (strncmp(waker, "for", 3) == 0)
		strcpy(waker, "-");
	if (strcmp(what, "wall") == 0) {
		struct profile_wall wall = { .threads = 1 };

		wall.wall_ns = strtoull(state, NULL, 10) * NS_PER_MS;
		wall.on_cpu_ns = strtoull(reason, NULL, 10) * NS_PER_MS;
		wall.blocked_ns = wall.wall_ns - wall.on_cpu_ns;
		assert_int_equal(profile_add_labels(p, &labels, &wall.labels), 0);
		assert_int_equal(profile_add_wall(p, &wall), 0);
		return;
	}
	assert_true(sscanf(what, "%lf+%lf", &since, &length) >= 1);
	if (strcmp(state, "tick") == 0) {
		depth = 0;
		for (place = strtok_r(reason, "<", &rest); place;
		     place = strtok_r(NULL, "<", &rest))
			frames[depth++] = location_of(p, place);
		assert_int_equal(profile_add_labels(p, &labels, &number), 0);
		assert_int_equal(profile_sample(p, frames, depth, number, &sample), 0);
		assert_int_equal(tick_list_add(&p->ticks, sample, time_of(since)), 0);
		return;
	}
	if (strcmp(state, "call") == 0) {
		frames[0] = location_of(p, reason);
		values[3] = (int64_t)(length * 1e6);
		assert_int_equal(profile_add_labels(p, &labels, &number), 0);
		assert_int_equal(profile_add_sample(p, frames, 1, number, values), 0);
		assert_int_equal(profile_sample(p, frames, 1, number, &sample), 0);
		assert_int_equal(
			wait_list_add(&p->calls, sample, time_of(since), values[3], WAIT_NO_CPU),
			0);
		return;
	}
	place = strchr(reason, '@');
	if (place)
		*place++ = '\0';
	for (place = place ? strtok_r(place, "<", &rest) : NULL; place;
	     place = strtok_r(NULL, "<", &rest))
		frames[depth++] = location_of(p, place);
	if (strcmp(state, "runnable") == 0)
		thread_state_frame(THREAD_RUNNABLE, NULL, leaf);
	else
		snprintf(leaf, sizeof(leaf), "[%s: %s]", state, reason);
	frames[0] = location_of(p, leaf);
	if (strlen(waker) > 1) {
		snprintf(name, sizeof(name), "interrupt: %s", waker);
		tags[labels.tag_count++] = (struct profile_tag){ "waker", name, 0, "" };
	} else if (*waker != '-') {
		snprintf(name, sizeof(name), "%d", *waker);
		tags[labels.tag_count++] = (struct profile_tag){ "waker", waker, 0, "" };
		tags[labels.tag_count++] = (struct profile_tag){ "waker_tid", name, 0, "" };
	}
	assert_int_equal(profile_add_labels(p, &labels, &number), 0);
	assert_int_equal(profile_sample(p, frames, depth, number, &sample), 0);
	values[2] = (int64_t)((length ?: since) * 1e6);
	profile_add_values(p, sample, values);
	if (!length)
		return;
	assert_int_equal(wait_list_add(&p->waits, sample, time_of(since), (uint64_t)(length * 1e6),
				       strcmp(state, "runnable") == 0 && *reason != '-'
					       ? (uint32_t)atoi(reason)
					       : WAIT_NO_CPU),
			 0);
}

/* A recording of events, up to NULL. */
static struct profile *record(const char *const *events)
{
	struct profile *p = profile_new();

	p->time_ns = BEGIN_NS;
	p->duration_ns = DURATION_MS * NS_PER_MS;
	p->waits.complete = true;
	assert_int_equal(profile_add_clock(p, NS_PER_MS), 0);
	assert_int_equal(profile_add_sum(p, PROFILE_SUM_WALL), 0);
	assert_int_equal(profile_add_sum(p, PROFILE_SUM_SPAN), 0);
	while (*events)
		add_event(p, *events++);
	return p;
}

/* Each parent is the sum of its children. */
static void check_sums(const struct segments *s, uint32_t thread,
		       const struct time_interval *interval)
{
	struct chain c;

	assert_int_equal(chain_begin(&c, s, false), 0);
	assert_int_equal(chain_add(&c, thread, interval), 0);
	assert_int_equal(chain_end(&c, 0), 0);
	assert_int_equal(c.nodes[0].ns[0], interval->until_ns - interval->since_ns);
	for (size_t i = 0; i < c.count; i++) {
		uint64_t sum = 0;

		for (uint32_t k = c.nodes[i].first_child; k != CHAIN_NONE; k = c.nodes[k].next)
			sum += c.nodes[k].ns[0];
		if (c.nodes[i].first_child != CHAIN_NONE)
			assert_int_equal(sum, c.nodes[i].ns[0]);
	}
	chain_free(&c);
}

/*
 * Compares the tree of what A did in an interval of ms: for each line of it, two blanks for each
 * level above, the text and the milliseconds.
 */
static void check_chain(double since, double until, const char *expected, const char *const *events)
{
	const struct time_interval interval = { time_of(since), time_of(until) };
	const struct why_options options = { .percent = 0 };
	struct profile *p = record(events);
	struct why_threads threads = { 0 };
	struct segments s;
	char *text = NULL, *all = NULL, *line, *rest;
	size_t size, all_size;
	FILE *out = open_memstream(&text, &size), *compact = open_memstream(&all, &all_size);

	assert_int_equal(segments_make(p, "query", &s), 0);
	assert_int_equal(why_select(&s, "A", false, &threads), 0);
	assert_int_equal(threads.count, 1);
	check_sums(&s, threads.list[0], &interval);
	assert_int_equal(why_print_interval(&s, &threads, &interval, &options, out), 0);
	fclose(out);
	strtok_r(text, "\n", &rest); /* titles, and the whole */
	strtok_r(NULL, "\n", &rest);
	while ((line = strtok_r(NULL, "\n", &rest)))
		fprintf(compact, "%s %g\n", line + 23, atof(line));
	fclose(compact);
	assert_string_equal(all, expected);
	free(text);
	free(all);
	free(threads.list);
	segments_free(&s);
	profile_free(p);
}

#define CHECK(since, until, expected, ...) \
	check_chain(since, until, expected, (const char *const[]){ __VA_ARGS__, NULL })

static void test_lock(void **state)
{
	(void)state;
	CHECK(0, 100,
	      "A (65) blocked: lock, woken by B (66) 60\n"
	      "  B (66) on CPU 40\n"
	      "    hold 30\n"
	      "    look 10\n"
	      "  B (66) blocked: disk, woken by interrupt: disk 20\n"
	      "A (65) on CPU 38\n"
	      "  work 38\n"
	      "A (65) runnable (no free CPU) 2\n"
	      "  unknown: which CPU it got 2\n",
	      "A 10+60 blocked lock B", "A 70+2 runnable -", "A 80 tick work",
	      "B 0+5 blocked pipe -", "B 30+20 blocked disk disk", "B 12 tick hold",
	      "B 15 tick look", "B 55 tick hold", "B 60 tick hold");
}

static void test_three_deep(void **state)
{
	(void)state;
	CHECK(100, 200,
	      "A (65) blocked: socket, woken by F (70) 98\n"
	      "  F (70) blocked: socket, woken by B (66) 80\n"
	      "    B (66) blocked: lock, woken by H (72) 60\n"
	      "      H (72) runnable (no free CPU) 40\n"
	      "        meanwhile on that CPU: X (88) 40\n"
	      "          spin 40\n"
	      "      H (72) on CPU 20\n"
	      "    B (66) on CPU 19\n"
	      "    B (66) runnable (no free CPU) 1\n"
	      "      meanwhile on that CPU: nothing that was recorded 1\n"
	      "  F (70) on CPU 18\n"
	      "A (65) on CPU 1\n"
	      "A (65) runnable (no free CPU) 1\n"
	      "  meanwhile on that CPU: nothing that was recorded 1\n",
	      /* F and B wait for work until the request comes. */
	      "A 101+98 blocked socket F", "A 199+1 runnable 0", "F 0+100.5 idle socket A",
	      "F 110+80 blocked socket B", "B 0+109 idle socket F", "B 120+60 blocked lock H",
	      "B 180+1 runnable 0", "B 191+500 idle socket F", "H 130+40 runnable 1",
	      "X 0+90 idle sleep timer", "X 90+1 runnable 1", "X 170+10 runnable 1",
	      "X 150 tick spin");
}

/* A process that begins and ends in the middle, and one that waits for it. */
static void test_child(void **state)
{
	(void)state;
	CHECK(0, 100,
	      "A (65) blocked: child, woken by C (67) 90\n"
	      "  C (67) on CPU 50\n"
	      "  C (67) idle: sleep, woken by interrupt: timer 30\n"
	      "  unknown: it had not begun, or was exiting 8\n"
	      "  C (67) runnable (no free CPU) 2\n"
	      "    unknown: which CPU it got 2\n"
	      "A (65) on CPU 10\n",
	      "A 10+90 blocked child C", "C 15+2 runnable -", "C 30+30 idle sleep timer",
	      "C wall 82 50", "A wall 1000 910");
}

/* It is unknown when X left its CPU, as a wait of it was lost; but not later than Y got it. */
static void test_next_on_cpu(void **state)
{
	(void)state;
	CHECK(30, 50,
	      "A (65) runnable (no free CPU) 20\n"
	      "  meanwhile on that CPU: Y (89) 20\n",
	      "A 30+20 runnable 1", "A 60+1 blocked pipe -", "X 0+5 runnable 1",
	      "Y 10+10 runnable 1", "Y 60+100 blocked pipe -");
}

/* P made C when A asked for it: what A waited for before is what P did. */
static void test_creator(void **state)
{
	(void)state;
	CHECK(0, 100,
	      "A (65) blocked: poll, woken by C (67) 95\n"
	      "  C (67) on CPU 58\n"
	      "  P (80) on CPU 34\n"
	      "  C (67) runnable (no free CPU) 2\n"
	      "    unknown: which CPU it got 2\n"
	      "  C (67) blocked: start, woken by P (80) 1\n"
	      "    P (80) on CPU 1\n"
	      "A (65) on CPU 5\n",
	      "A 5+95 blocked poll C", "P 0+4 idle accept A", "P 50+1 blocked pipe -",
	      "C 39+1 blocked start P", "C 40+2 runnable -", "C wall 500 497");
	/* Files may say that two threads made each other. */
	CHECK(0, 100,
	      "A (65) blocked: poll, woken by C (67) 95\n"
	      "  C (67) on CPU 60\n"
	      "  unknown: threads wait for each other in a circle 34\n"
	      "  C (67) blocked: start, woken by P (80) 1\n"
	      "    P (80) blocked: start, woken by C (67) 1\n"
	      "      C (67) blocked: start, woken by P (80) 1\n"
	      "        unknown: threads wait for each other in a circle 1\n"
	      "A (65) on CPU 5\n",
	      "A 5+95 blocked poll C", "P 39+1 blocked start C", "P wall 500 499",
	      "C 39+1 blocked start P", "C wall 500 499");
}

/* A lock that B still has when the recording ends; and a wait of which nobody knows for whom it is.
 */
static void test_not_ended(void **state)
{
	(void)state;
	CHECK(900, 1000,
	      "A (65) blocked: lock, held by B (66) 100\n"
	      "  B (66) on CPU 60\n"
	      "  B (66) blocked: pipe 40\n"
	      "    unknown: the wait had not ended 40\n",
	      "A 800+200 blocked lock - whom B", "B 960+40 blocked pipe -", "B 1+1 blocked pipe C");
}

/* The time limit of a poll is not the cause if it goes on; of a sleep it is. */
static void test_timers(void **state)
{
	(void)state;
	CHECK(0, 100,
	      "A (65) blocked: poll, woken by B (66), in f 78\n"
	      "  B (66) on CPU 78\n"
	      "A (65) blocked: sleep, woken by interrupt: timer 20\n"
	      "A (65) on CPU 2\n",
	      "A 0+49 blocked poll@f timer", "A 50+29 blocked poll@f B",
	      "A 80+20 blocked sleep timer", "B 200+1 blocked pipe -");
	CHECK(0, 100,
	      "A (65) blocked: poll, woken by interrupt: timer, in f 49\n"
	      "A (65) blocked: poll, woken by B (66), in g 30\n"
	      "  B (66) on CPU 30\n"
	      "A (65) on CPU 21\n",
	      "A 0+49 blocked poll@f timer", "A 50+30 blocked poll@g B", "B 200+1 blocked pipe -");
}

/* Woken, looked, and waited again: the wait is all of them. */
static void test_false_wakeups(void **state)
{
	(void)state;
	CHECK(0, 100,
	      "A (65) blocked: lock, woken by B (66) 99\n"
	      "  B (66) on CPU 99\n"
	      "A (65) on CPU 1\n",
	      "A 0+50 blocked lock B", "A 51+49 blocked lock B", "B 200+1 blocked pipe -");
}

static void test_interrupts(void **state)
{
	(void)state;
	CHECK(0, 100,
	      "A (65) blocked: socket, woken by interrupt: network 50\n"
	      "A (65) blocked: socket, woken by Z (90) 20\n"
	      "  unknown: what that thread did, which was not recorded 20\n"
	      "A (65) on CPU 20\n"
	      "A (65) blocked: pipe 10\n"
	      "  unknown: who ended the wait 10\n",
	      "A 0+50 blocked socket network", "A 50+20 blocked socket Z",
	      "A 70+10 blocked pipe -");
}

/* B was idle when the wait began: C sent it to work. */
static void test_idle_meanwhile(void **state)
{
	(void)state;
	CHECK(0, 100,
	      "A (65) blocked: condition, woken by B (66) 100\n"
	      "  B (66) idle: condition, woken by C (67) 60\n"
	      "    C (67) on CPU 60\n"
	      "  B (66) on CPU 40\n",
	      "A 0+100 blocked condition B", "B 20+40 idle condition C", "C 200+1 blocked pipe -");
	/* An interrupt did: what B did before was something else. */
	CHECK(0, 100,
	      "A (65) blocked: condition, woken by B (66) 100\n"
	      "  B (66) idle: socket, woken by interrupt: network 40\n"
	      "  B (66) on CPU 40\n"
	      "  B (66) busy with something else before 20\n"
	      "    B (66) on CPU 20\n",
	      "A 0+100 blocked condition B", "B 20+40 idle socket network");
}

/* B served D, which waited in the same way, before it turned to A. */
static void test_queue(void **state)
{
	(void)state;
	CHECK(0, 100,
	      "A (65) blocked: socket, woken by B (66) 100\n"
	      "  B (66) busy with something else before 70\n"
	      "    B (66) on CPU 60\n"
	      "      slow 60\n"
	      "    B (66) blocked: disk, woken by interrupt: disk 10\n"
	      "  B (66) on CPU 30\n"
	      "    quick 30\n",
	      "A 0+100 blocked socket B", "D 0+70 blocked socket B", "B 20+10 blocked disk disk",
	      "B 50 tick slow", "B 90 tick quick", "B 200+1 blocked pipe -");
}

/* H holds a lock for 90 ms; B and C get it before A, for 2 ms each. */
static void test_convoy(void **state)
{
	(void)state;
	CHECK(0, 100,
	      "A (65) blocked: lock, woken by H (72), in f 86\n"
	      "  H (72) on CPU 86\n"
	      "A (65) on CPU 10\n"
	      "A (65) blocked: lock, woken by C (67), in f 2\n"
	      "  C (67) on CPU 2\n"
	      "A (65) blocked: lock, woken by B (66), in f 2\n"
	      "  B (66) on CPU 2\n",
	      "A 4+90 blocked lock@f C", "B 1+89 blocked lock@f H", "C 2+90 blocked lock@f B",
	      "H 200+1 blocked pipe -");
}

/* Who calls the C library counts, if it is there. */
static void test_functions(void **state)
{
	(void)state;
	CHECK(0, 100,
	      "A (65) on CPU 80\n"
	      "  save 40\n"
	      "  _start_thread 20\n"
	      "  sum 20\n"
	      "A (65) blocked: disk, woken by interrupt: disk, in save 20\n",
	      "A 0+20 blocked disk@_write<save disk", "A 30 tick _write<save<main",
	      "A 40 tick _copy<_write<save<main", "A 50 tick _start_thread<_clone",
	      "A 60 tick sum<main");
}

/* What only waits for others is no place; what waits at two places are two parts. */
static void test_places(void **state)
{
	(void)state;
	CHECK(0, 100,
	      "A (65) blocked: disk, woken by interrupt: disk, in read_page < scan < count 50\n"
	      "A (65) blocked: disk, woken by interrupt: disk, in read_page < scan < sum 30\n"
	      "A (65) blocked: lock, woken by interrupt: disk, in take < count < main 20\n",
	      "A 0+20 blocked disk@read_page<scan<count<main disk",
	      "A 20+30 blocked disk@read_page<scan<count<other disk",
	      "A 50+30 blocked disk@read_page<scan<sum<main disk",
	      "A 80+20 blocked lock@pthread_cond_wait<WaitLatch<ProcSleep<take<count<main disk");
}

static void test_circle(void **state)
{
	(void)state;
	CHECK(0, 100,
	      "A (65) blocked: lock, woken by B (66) 99\n"
	      "  B (66) blocked: pipe, woken by A (65) 99\n"
	      "    A (65) blocked: lock, woken by B (66) 99\n"
	      "      unknown: threads wait for each other in a circle 99\n"
	      "A (65) on CPU 1\n",
	      "A 0+99 blocked lock B", "B 0+100 blocked pipe A");
	/* A woke B before it slept; B's CPU, which its host had taken away, noticed it at 15 ms. */
	CHECK(0, 100,
	      "A (65) blocked: socket, woken by B (66) 90\n"
	      "  B (66) on CPU 80\n"
	      "  B (66) runnable (no free CPU) 10\n"
	      "    meanwhile on that CPU: nothing that was recorded 10\n"
	      "A (65) on CPU 10\n",
	      "A 10+90 blocked socket B", "B 5+10 blocked pipe A", "B 15+5 runnable 0");
	/* And if B had no work before. */
	CHECK(10, 100,
	      "A (65) blocked: socket, woken by B (66) 90\n"
	      "  B (66) on CPU 80\n"
	      "  B (66) runnable (no free CPU) 10\n"
	      "    meanwhile on that CPU: nothing that was recorded 10\n",
	      "A 10+90 blocked socket B", "B 5+10 idle socket A", "B 15+5 runnable 0");
	/* Through C; and B got a CPU at once. */
	CHECK(0, 100,
	      "A (65) blocked: socket, woken by C (67) 90\n"
	      "  C (67) blocked: lock, woken by B (66) 70\n"
	      "    B (66) on CPU 66\n"
	      "    B (66) runnable (no free CPU) 4\n"
	      "      unknown: which CPU it got 4\n"
	      "  C (67) on CPU 20\n"
	      "A (65) on CPU 10\n",
	      "A 10+90 blocked socket C", "C 10+70 blocked lock B", "B 5+9 blocked pipe A");
	/* It was A that slept then: what it did before, it did awake. */
	CHECK(0, 100,
	      "A (65) blocked: socket, woken by B (66) 60\n"
	      "  B (66) on CPU 60\n"
	      "A (65) on CPU 40\n",
	      "A 40+60 blocked socket B", "B 5+30 blocked pipe A");
}

/* Waits that overlap, or go back, are cut; a recording without all waits is not sure of the rest.
 */
static void test_hostile(void **state)
{
	(void)state;
	CHECK(0, 100,
	      "A (65) blocked: lock 40\n"
	      "  unknown: who ended the wait 40\n"
	      "A (65) blocked: pipe 30\n"
	      "  unknown: who ended the wait 30\n"
	      "A (65) on CPU 30\n",
	      "A 20+50 blocked pipe -", "A 0+40 blocked lock -", "A 10+20 blocked disk -");
	CHECK(0, 1000, "unknown: times of waits were lost 750\nA (65) on CPU 250\n",
	      "A 750+0 blocked lock -", "A 1000+1 blocked pipe -");
	/* Where none were lost, interrupts and the host had the rest. */
	CHECK(0, 1000, "A (65) on CPU 1000\n", "A wall 1000 250", "A 1000+1 blocked pipe -");
}

/* A thread's first turn begins with it, the last one ends with it. */
static void test_lives(void **state)
{
	static const char *const events[] = {
		"A 20+5 runnable 0",
		"A 125+100 idle socket -",
		"A 300+10 blocked disk -",
		"A wall 380 265",
		"B 0+900 blocked pipe -",
		"B wall 995 95",
		"C 100+1 runnable 0",
		"C wall 50 49",
		"D 400+100 blocked pipe -",
		"D wall 130 30",
		NULL,
	};
	static const double turns_ms[] = { 175, 130, 105, 50 };
	const struct why_options options = { .json = true };
	struct profile *p = record(events);
	struct why_threads threads = { 0 };
	struct segments s;
	size_t size, count;
	char *text = NULL, *at;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(segments_make(p, "query", &s), 0);
	assert_int_equal(why_select(&s, "1", true, &threads), 0);
	assert_int_equal(why_print_turns(&s, &threads, &options, &count, out), 0);
	fclose(out);
	assert_int_equal(count, 4);
	at = strstr(text, "slowest\"");
	for (size_t i = 0; i < count; i++) {
		at = strstr(at, "\"ns\":");
		assert_non_null(at);
		at += 5;
		assert_float_equal(strtod(at, NULL) / 1e6, turns_ms[i], 1e-6);
	}
	free(text);
	free(threads.list);
	segments_free(&s);
	profile_free(p);
}

/* What why prints of the turns of process 1. */
static void check_turns(const char *const *events, const struct why_options *options, size_t turns,
			const char *expected)
{
	struct profile *p = record(events);
	struct why_threads threads = { 0 };
	struct segments s;
	size_t size, count;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	setenv("TZ", "UTC", 1);
	assert_int_equal(segments_make(p, "query", &s), 0);
	assert_int_equal(why_select(&s, "1", true, &threads), 0);
	assert_int_equal(why_print_turns(&s, &threads, options, &count, out), 0);
	fclose(out);
	assert_int_equal(count, turns);
	assert_string_equal(text, expected);
	free(text);
	free(threads.list);
	segments_free(&s);
	profile_free(p);
}

/* Turns are between idle waits. The slowest has a wait for a disk that the others have not. */
static void test_turns(void **state)
{
	static const char *const events[] = {
		"A 0+10 idle socket network",
		"A 20+10 idle socket network",
		"A 31+9 idle socket network",
		"A 41+9 idle socket network",
		"A 60+50 blocked disk disk",
		"A 120+10 idle socket network",
		"A 200+10 blocked pipe -",
		"A 150 tick work",
		NULL,
	};
	const struct why_options options = { .percent = 1, .limit = 2, .without = "disk" };

	(void)state;
	check_turns(events, &options, 4,
		    "4 turns: median 1.000 ms, 90 % 70.000 ms, 99 % 70.000 ms, 99.9 "
		    "% 70.000 ms, longest 70.000 ms\n"
		    "\n"
		    "         ms  from                         thread\n"
		    "     70.000  2001-09-09 01:46:40.050 UTC  A (65)\n"
		    "     10.000  2001-09-09 01:46:40.010 UTC  A (65)\n"
		    "\n"
		    "    slowest     1 %    all turns        \n"
		    "         ms       %           ms       %\n"
		    "     70.000  100.00       20.500  100.00  a turn, on average\n"
		    "     50.000   71.43       12.500   60.98    A blocked: disk, "
		    "woken by interrupt: disk\n"
		    "     20.000   28.57        8.000   39.02    A on CPU\n"
		    "     20.000   28.57        8.000   39.02  without disk, at best\n");
}

/* How much of 105 ms of A is what --without names. */
static void check_without(const char *what, double expected_ms)
{
	static const char *const events[] = {
		/* A ran for 60 ms, of which two of three ticks were within f, and so is the wait.
		 */
		"A 5 tick leaf<f",
		"A 10+40 blocked lock@g<f B",
		"A 60 tick x",
		"A 70 tick leaf<f",
		"A 90+5 runnable 0",
		/* B ran for 30 ms of that, half of the ticks within work, and synced there. */
		"B 15 tick h<work",
		"B 30+10 blocked disk@sync<work disk",
		"B 45 tick other",
		"B 200+1 blocked pipe -",
		"A 200+1 blocked pipe -",
		NULL,
	};
	const struct time_interval interval = { BEGIN_NS, BEGIN_NS + 105 * NS_PER_MS };
	const struct why_options options = { .json = true, .without = what };
	struct profile *p = record(events);
	struct why_threads threads = { 0 };
	struct segments s;
	char *text = NULL, *at;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(segments_make(p, "query", &s), 0);
	assert_int_equal(why_select(&s, "A", false, &threads), 0);
	assert_int_equal(why_print_interval(&s, &threads, &interval, &options, out), 0);
	fclose(out);
	at = strstr(text, "\"without_ns\":");
	assert_non_null(at);
	assert_float_equal(strtod(at + 13, NULL) / 1e6, expected_ms, 1e-6);
	free(text);
	free(threads.list);
	segments_free(&s);
	profile_free(p);
}

/* Of a function, with all that it calls and waits for, of a thread and of a reason likewise. */
static void test_without(void **state)
{
	(void)state;
	check_without("f", 40 + 40);
	check_without("leaf", 40);
	check_without("g", 40);
	check_without("work", 15 + 10);
	check_without("h", 15);
	check_without("sync", 10);
	check_without("lock", 40);
	check_without("disk", 10);
	check_without("delay", 5);
	check_without("runnable", 5);
	check_without("B", 30 + 10);
	check_without("A", 105);
	check_without("nobody", 0);
}

/* Calls of one function, by two threads: with or without its parameters, but not another's. */
static void test_calls(void **state)
{
	static const char *const events[] = {
		"A 10+20 call f(int)",	     "A 15+10 blocked lock B",
		"A 40+10 call f(int)",	     "B 12+40 call f(int)",
		"B 30+20 blocked disk disk", "A 60+30 call ff",
		"B 100+1 blocked pipe -",    NULL,
	};
	const struct why_options options = { .percent = 1, .limit = 2, .span = "f" };

	(void)state;
	check_turns(events, &options, 3,
		    "3 calls of f: median 20.000 ms, 90 % 40.000 ms, 99 % 40.000 ms, 99.9 "
		    "% 40.000 ms, longest 40.000 ms\n"
		    "\n"
		    "         ms  from                         thread\n"
		    "     40.000  2001-09-09 01:46:40.012 UTC  B (66)\n"
		    "     20.000  2001-09-09 01:46:40.010 UTC  A (65)\n"
		    "\n"
		    "    slowest     1 %    all calls        \n"
		    "         ms       %           ms       %\n"
		    "     40.000  100.00       23.333  100.00  a call, on average\n"
		    "     20.000   50.00        6.667   28.57    B on CPU\n"
		    "     20.000   50.00        6.667   28.57    B blocked: disk, "
		    "woken by interrupt: disk\n"
		    "      0.000    0.00        6.667   28.57    A on CPU\n"
		    "      0.000    0.00        3.333   14.29    A blocked: lock, woken by B\n"
		    "      0.000    0.00        3.333   14.29      B on CPU\n");
}

/*
 * A million waits of threads that wake each other at random, as nothing true does: the work is
 * bounded, and sums stay right.
 */
static void test_many(void **state)
{
	const struct time_interval all = { time_of(0), time_of(DURATION_MS) };
	struct profile *p = record((const char *const[]){
		"A 0+1 blocked lock B", "B 0+1 blocked lock C", "C 0+1 blocked socket A",
		"D 0+1 idle pipe A", "D 0+1 blocked pipe C", NULL });
	struct segments s;
	struct chain c;

	(void)state;
	srand48(1);
	for (int i = 0; i < 1000000; i++)
		assert_int_equal(wait_list_add(&p->waits, (uint32_t)(lrand48() % 5),
					       time_of(drand48() * DURATION_MS),
					       (uint64_t)(lrand48() % 3000), 0),
				 0);
	assert_int_equal(segments_make(p, "query", &s), 0);
	for (uint32_t i = 0; i < s.thread_count; i++)
		check_sums(&s, i, &all);
	assert_int_equal(chain_begin(&c, &s, true), 0);
	for (uint32_t i = 0; i < s.thread_count; i++)
		assert_int_equal(chain_add(&c, i, &all), 0);
	assert_true(c.steps < 100000000);
	chain_free(&c);
	segments_free(&s);
	profile_free(p);
}

/* The states of waits, with their milliseconds, once functions have names. */
static void check_states(const char *expected, const char *const *events)
{
	struct profile *p = record(events);
	char *all = NULL;
	size_t size;
	FILE *out = open_memstream(&all, &size);

	for (int i = 0; i < 2; i++) /* the second time, as in a file, nothing changes */
		assert_int_equal(wait_names_apply(p), 0);
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_location *leaf =
			&p->locations[p->frames[p->samples[i].first_frame]];

		fprintf(out, "%s %s %g\n", p->labels[p->samples[i].labels].comm,
			p->functions[p->lines[leaf->first_line].function].name,
			(double)p->values[i * p->value_type_count + 2] / 1e6);
	}
	fclose(out);
	assert_string_equal(all, expected);
	free(all);
	profile_free(p);
}

#define CHECK_STATES(expected, ...) \
	check_states(expected, (const char *const[]){ __VA_ARGS__, NULL })

/* Waits without a stack have the state of others of their thread, or process. */
static void test_undecided(void **state)
{
	(void)state;
	/* Most of the time counts, of waits for the same reason. */
	CHECK_STATES("A [idle: condition] 20\nA [idle: condition] 60\nA [blocked: condition] 50\n"
		     "A [blocked: pipe] 30\nA [blocked: pipe] 90\n",
		     "A 0+20 undecided condition -", "A 20+60 idle condition@get -",
		     "A 100+50 blocked condition@ask -", "A 200+30 undecided pipe -",
		     "A 300+90 blocked pipe@read -");
	/* The names of functions say that B ends waits for a lock: C those for work. */
	CHECK_STATES("A [blocked: condition] 20\nA [idle: condition] 30\n"
		     "A [blocked: lock] 10\nA [idle: condition] 90\n",
		     "A 0+20 undecided condition B", "A 20+30 undecided condition C",
		     "A 100+10 blocked condition@take_gil B", "A 200+90 idle condition@get C");
	/* The thread's own before those that the same waker ended of another one. */
	CHECK_STATES("A [blocked: poll] 20\nA [blocked: poll] 30\nD [idle: poll] 40\n"
		     "E [idle: poll] 10\nE [blocked: poll] 5\n",
		     "A 0+20 undecided poll C", "A 100+30 blocked poll@ask B",
		     "D 200+40 idle poll@loop C", "E 300+10 undecided poll C",
		     "E 400+5 undecided poll B");
	/* Nothing is known. */
	CHECK_STATES("A [blocked: event] 20\nA [idle: poll] 30\n", "A 0+20 undecided event -",
		     "A 100+30 idle poll@loop -");
}

/* For whom threads worked: a waiter, and who ended the wait. */
static void test_labels(void **state)
{
	static const char *const events[] = { "A 0+10 idle socket C",
					      "A 20+40 blocked lock B for q1",
					      "A 70+5 runnable 1 for q1",
					      "A 80+10 idle socket C",
					      "A 92+2 blocked disk disk for q2",
					      "A 95+4 idle socket C",
					      "B 5+1 idle sleep timer",
					      "B 30 tick hold for q3",
					      "B 58+12 blocked disk disk for q3",
					      NULL };
	const struct why_options options = { .percent = 0, .by_label = true },
				 some = { .percent = 0, .json = true, .pattern = "q[2]" };
	struct profile *p = record(events);
	struct why_threads threads = { 0 };
	struct segments s;
	size_t size, count = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	check_chain(10, 80,
		    "A (65) blocked: lock, woken by B (66); query: q1 40\n"
		    "  B (66) on CPU; query: q3 38\n"
		    "    hold 38\n"
		    "  B (66) blocked: disk, woken by interrupt: disk; query: q3 2\n"
		    "A (65) on CPU; query: q1 25\n"
		    "A (65) runnable (no free CPU); query: q1 5\n"
		    "  meanwhile on that CPU: nothing that was recorded 5\n",
		    events);
	assert_int_equal(segments_make(p, "query", &s), 0);
	assert_int_equal(why_select(&s, "A", false, &threads), 0);
	assert_int_equal(why_print_turns(&s, &threads, &options, &count, out), 0);
	assert_int_equal(count, 2);
	fflush(out);
	assert_non_null(strstr(text, "     70.000         1       70.000       70.000  q1\n"
				     "      5.000         1        5.000        5.000  q2\n"
				     "\nq1\n1 turn: "));
	assert_int_equal(why_print_turns(&s, &threads, &some, &count, out), 0);
	assert_int_equal(count, 1);
	fclose(out);
	assert_non_null(strstr(text, "\"q2\""));
	free(text);
	free(threads.list);
	segments_free(&s);
	profile_free(p);
	/* Without a label there is none. */
	assert_int_equal(segments_make(p = record(events + 8), "route", &s), 0);
	assert_null(s.label);
	segments_free(&s);
	profile_free(p);
}

/* The end of a window of an archive cuts waits in two, of which only the second has a waker. */
static void test_windows(void **state)
{
	(void)state;
	CHECK(0, 100,
	      "A (65) blocked: lock, woken by B (66), in take 80\n"
	      "  B (66) on CPU 75\n"
	      "  B (66) blocked: disk, woken by interrupt: disk 5\n"
	      "A (65) on CPU 20\n",
	      "A 10+40 blocked lock@take -", "A 53+37 blocked lock@take B",
	      "B 1+1 idle sleep timer", "B 20+5 blocked disk disk");
	/* Another place, or too late. */
	CHECK(0, 300,
	      "A (65) on CPU 163\n"
	      "A (65) blocked: lock, woken by B (66), in look 97\n"
	      "  B (66) on CPU 97\n"
	      "A (65) blocked: lock, in take 40\n"
	      "  unknown: who ended the wait 40\n",
	      "A 10+40 blocked lock@take -", "A 53+37 blocked lock@look B",
	      "A 200+60 blocked lock@look B", "B 1+1 idle sleep timer");
}

/* All blocked time as a profile: each stack is a way down the tree. */
static void test_sum(void **state)
{
	const struct time_interval interval = { time_of(20), time_of(700) };
	const struct format_options options = { 0 };
	struct profile *p = record((const char *const[]){
		"A 10+60 blocked lock B", "A 500+100 idle socket B", "A 650+100 blocked lock B",
		"B 0+5 blocked pipe -", "B 30+20 blocked disk disk", "B 55 tick hold", NULL });
	struct why_threads threads = { 0 };
	struct profile *sum;
	struct segments s;
	struct error e;
	size_t size;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(segments_make(p, "query", &s), 0);
	assert_int_equal(why_select(&s, "A", false, &threads), 0);
	assert_int_equal(why_sum(&s, &threads, &interval, &sum), 0);
	profile_free(p);
	assert_int_equal(profile_total(sum, "blocked"), 100000000);
	assert_int_equal(format_folded.write(sum, &options, out, &e), 0);
	fclose(out);
	assert_non_null(strstr(text, "A blocked: lock, woken by B;B on CPU;hold 80000000\n"));
	assert_non_null(strstr(text, "A blocked: lock, woken by B;"
				     "B blocked: disk, woken by interrupt: disk 20000000\n"));
	assert_null(strstr(text, "idle"));
	free(text);
	free(threads.list);
	profile_free(sum);
	segments_free(&s);
}

/* Threads that all wake each other: what a tree takes of memory is bounded, too. */
static void test_crowd(void **state)
{
	enum {
		THREADS = 3000,
		WAKERS = 4
	};
	const struct time_interval all = { time_of(0), time_of(DURATION_MS) };
	struct profile *p = record((const char *const[]){ "A 0+1 blocked pipe -", NULL });
	uint32_t frame = location_of(p, "[blocked: pipe]"), samples[THREADS * WAKERS], labels;
	struct segments s;
	struct chain c;

	(void)state;
	srand48(2);
	for (int i = 0; i < THREADS * WAKERS; i++) {
		char waker[16], name[16];
		struct profile_tag tags[] = { { "waker", name, 0, "" },
					      { "waker_tid", waker, 0, "" } };
		long other = lrand48() % THREADS;

		snprintf(name, sizeof(name), "t%ld", other);
		snprintf(waker, sizeof(waker), "%ld", 1000 + other);
		assert_int_equal(
			profile_add_labels(p,
					   &(struct profile_labels){ .pid = 1,
								     .tid = 1000 + i / WAKERS,
								     .comm = "t",
								     .tag_count = 2,
								     .tags = tags },
					   &labels),
			0);
		assert_int_equal(profile_sample(p, &frame, 1, labels, &samples[i]), 0);
	}
	for (int i = 0; i < 1000000; i++)
		assert_int_equal(wait_list_add(&p->waits, samples[lrand48() % (THREADS * WAKERS)],
					       time_of(drand48() * DURATION_MS),
					       (uint64_t)(lrand48() % 30000000), WAIT_NO_CPU),
				 0);
	assert_int_equal(segments_make(p, "query", &s), 0);
	assert_int_equal(chain_begin(&c, &s, false), 0);
	for (uint32_t i = 1; i < 10; i++)
		assert_int_equal(chain_add(&c, i, &all), 0);
	assert_int_equal(chain_end(&c, 0), 0);
	assert_true(c.cut);
	assert_in_range(c.count, 1000000, 1050000);
	chain_free(&c);
	segments_free(&s);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lock),	    cmocka_unit_test(test_three_deep),
		cmocka_unit_test(test_child),	    cmocka_unit_test(test_creator),
		cmocka_unit_test(test_not_ended),   cmocka_unit_test(test_timers),
		cmocka_unit_test(test_next_on_cpu), cmocka_unit_test(test_false_wakeups),
		cmocka_unit_test(test_interrupts),  cmocka_unit_test(test_idle_meanwhile),
		cmocka_unit_test(test_queue),	    cmocka_unit_test(test_convoy),
		cmocka_unit_test(test_circle),	    cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_turns),	    cmocka_unit_test(test_many),
		cmocka_unit_test(test_crowd),	    cmocka_unit_test(test_places),
		cmocka_unit_test(test_functions),   cmocka_unit_test(test_lives),
		cmocka_unit_test(test_sum),	    cmocka_unit_test(test_calls),
		cmocka_unit_test(test_without),	    cmocka_unit_test(test_windows),
		cmocka_unit_test(test_undecided),   cmocka_unit_test(test_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
