// SPDX-License-Identifier: GPL-2.0-only
/*
 * When counts are in the buffer: while profiling is on, afterwards, and at the end: profil_row.h.
 */
#include "profil_row.h"

#include <sched.h>

/* Ticks of half the time that the buffer may be behind: what is not exact misses some of them. */
static double few(void)
{
	return ticks_in(5e6);
}

/* --- While it is on --- */

/* Burns until `seen` ticks are in the buffer, which is a matter of milliseconds. */
static void expect_seen(unsigned int seen)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	while (sum() < seen && clock_ns(CLOCK_MONOTONIC) - begin < UINT64_C(30000000000))
		burn(few() / 10);
	expect(sum() >= seen, "%u ticks after 30 s, while it is on", sum());
}

/* The program reads while it burns. */
static void reads_itself(void)
{
	expect(profil_hot(cells) == 0, "on: %m");
	for (int i = 0; i < 10; i++)
		expect_seen(sum() + 1);
	profil_off();
}

/* A thread reads what another is counted for. */
static void thread_reads(void)
{
	pthread_t thread;

	expect(profil_hot(cells) == 0, "on: %m");
	need(pthread_create(&thread, NULL, spin_on, NULL) == 0, "pthread_create");
	for (int i = 0; i < 10; i++) {
		unsigned int before = sum();

		for (int ms = 0; ms < 30000 && sum() == before; ms++)
			sleep_ms(1);
		expect(sum() > before, "no tick in 30 s, while it is on");
	}
	go_on = false;
	pthread_join(thread, NULL);
	profil_off();
}

/* Every other look is after a pause, when nothing runs: what was burnt must come by itself. */
static void comes_while_asleep(void)
{
	double due = 0;

	expect(profil_hot(cells) == 0, "on: %m");
	for (int i = 0; i < 20; i++) {
		due += burn(few());
		for (int ms = 0; ms < 30000 && !is_about(sum(), due, due, i + 1); ms++)
			sleep_ms(1);
		expect(is_about(sum(), due, due, i + 1),
		       "%d: %u ticks after 30 s of sleep, due were %.0f", i, sum(), due);
	}
	profil_off();
}

/* Nothing is taken back. */
static void grows(void)
{
	unsigned int before = 0, now;

	expect(profil_hot(cells) == 0, "on: %m");
	for (int i = 0; i < 200; i++) {
		burn(few() / 20);
		now = sum();
		expect(now >= before, "%u ticks became %u", before, now);
		before = now;
	}
	profil_off();
}

/* --- Exact --- */

/* Of those processes that a row is about: a buffer and what was burnt, for both to see. */
static struct {
	unsigned short counts[CELLS];
	double burnt;
} * shared;

static double burnt; /* by this process */

static void burn_few(void)
{
	burnt = burn(few());
	if (shared)
		shared->burnt = burnt;
}

/* What had not come would be all: no count comes by itself so soon. */
static void expect_exact(const char *when)
{
	expect_about(when, sum(), burnt);
}

static void after_off(void)
{
	unsigned int all = 0, now;
	double due = 0;

	for (int i = 0; i < 20; i++) {
		memset(cells, 0, sizeof(cells));
		expect(profil_hot(cells) == 0, "on: %m");
		burn_few();
		profil_off();
		now = sum();
		all += now;
		due += burnt;
		burn(3 * few());
		expect(sum() == now, "%u ticks after it was off", sum() - now);
	}
	expect(is_about(all, due, due, 20), "%u ticks of %.1f", all, due);
}

static void after_second_call(void)
{
	static unsigned short others[CELLS];
	unsigned int all = 0;
	double due = 0;

	for (int i = 0; i < 20; i++) {
		memset(cells, 0, sizeof(cells));
		expect(profil_hot(cells) == 0, "on: %m");
		burn_few();
		expect(profil_hot(others) == 0, "on: %m");
		all += sum();
		due += burnt;
	}
	profil_off();
	expect(is_about(all, due, due, 20), "%u ticks of %.1f", all, due);
}

/* --- At the end of the process --- */

/*
 * A child in `end` burns a few ticks with its buffer in memory that both see. The parent looks once
 * it has ended.
 */
static void expect_at_end(void (*end)(void))
{
	unsigned int got;
	pid_t child;

	shared = shared_memory(4096);
	child = fork();
	if (child == 0)
		end();
	expect_well(child, "child");
	got = sum_of(shared->counts);
	expect_about("at the end", got, shared->burnt);
}

static void begin_shared(void)
{
	expect(profil_hot(shared->counts) == 0, "on: %m");
	burn_few();
}

static void end_by_exit(void)
{
	begin_shared();
	exit(wrong);
}

static void at_exit(void)
{
	expect_at_end(end_by_exit);
}

static void *exit_in_thread(void *unused)
{
	exit(wrong);
	return unused;
}

static void end_by_thread(void)
{
	pthread_t thread;

	begin_shared();
	need(pthread_create(&thread, NULL, exit_in_thread, NULL) == 0, "pthread_create");
	for (;;)
		pause();
}

static void at_exit_of_thread(void)
{
	expect_at_end(end_by_thread);
}

static void *burn_later(void *unused)
{
	while (go_on)
		sleep_ms(1);
	burn_few();
	return unused;
}

/* The first thread ends before the other burns and ends. */
static void end_by_pthread_exit(void)
{
	pthread_t thread;

	expect(profil_hot(shared->counts) == 0, "on: %m");
	need(pthread_create(&thread, NULL, burn_later, NULL) == 0, "pthread_create");
	go_on = false;
	pthread_exit(NULL);
}

static void at_pthread_exit(void)
{
	expect_at_end(end_by_pthread_exit);
}

static void burn_in_handler(void)
{
	burn_few();
}

static void end_after_handler(void)
{
	expect(profil_hot(shared->counts) == 0, "on: %m");
	atexit(burn_in_handler);
	exit(wrong);
}

static void after_handlers(void)
{
	expect_at_end(end_after_handler);
}

/* --- In atexit handlers --- */

static void look_at_exit(void)
{
	expect_exact("in the handler");
	if (wrong)
		_exit(wrong);
}

static void begin_here(void)
{
	expect(profil_hot(cells) == 0, "on: %m");
	burn_few();
}

static void end_handler_before(void)
{
	atexit(look_at_exit);
	begin_here();
	exit(wrong);
}

static void end_handler_after(void)
{
	expect(profil_hot(cells) == 0, "on: %m");
	atexit(look_at_exit);
	burn_few();
	exit(wrong);
}

static void end_handler_thread(void)
{
	pthread_t thread;

	expect(profil_hot(cells) == 0, "on: %m");
	atexit(look_at_exit);
	burn_few();
	need(pthread_create(&thread, NULL, exit_in_thread, NULL) == 0, "pthread_create");
	for (;;)
		pause();
}

static void *profil_in_thread(void *unused)
{
	expect(profil_hot(cells) == 0, "on: %m");
	return unused;
}

static void end_handler_caller(void)
{
	pthread_t thread;

	need(pthread_create(&thread, NULL, profil_in_thread, NULL) == 0, "pthread_create");
	pthread_join(thread, NULL);
	atexit(look_at_exit);
	burn_few();
	exit(wrong);
}

static void end_handler_pthread_exit(void)
{
	pthread_t thread;

	expect(profil_hot(cells) == 0, "on: %m");
	atexit(look_at_exit);
	need(pthread_create(&thread, NULL, burn_later, NULL) == 0, "pthread_create");
	go_on = false;
	pthread_exit(NULL);
}

static void end_handler_child(void)
{
	pid_t child;

	expect(profil_hot(cells) == 0, "on: %m");
	atexit(look_at_exit);
	child = fork();
	if (child == 0) { /* from now on, for it begins late after fork() */
		profil_hot(cells);
		memset(cells, 0, sizeof(cells));
	}
	burn_few();
	if (child == 0)
		exit(wrong);
	expect_well(child, "grandchild");
	exit(wrong);
}

static void expect_in_handler(void (*end)(void))
{
	pid_t child = fork();

	if (child == 0)
		end();
	expect_well(child, "child");
}

static void handler_before(void)
{
	expect_in_handler(end_handler_before);
}

static void handler_after(void)
{
	expect_in_handler(end_handler_after);
}

static void handler_thread(void)
{
	expect_in_handler(end_handler_thread);
}

static void handler_caller(void)
{
	expect_in_handler(end_handler_caller);
}

static void handler_pthread_exit(void)
{
	expect_in_handler(end_handler_pthread_exit);
}

static void handler_child(void)
{
	expect_in_handler(end_handler_child);
}

/* By return from main(), with what a destructor sees. */
static bool look_in_destructor;

static __attribute__((destructor)) void see_last(void)
{
	if (look_in_destructor)
		look_at_exit();
}

static void in_destructor(void)
{
	look_in_destructor = true;
	begin_here();
}

/* Longer than a clock ticks on for a next histogram. */
#define UNUSED_MS 1500

/* One turns counting off, and on again, while the other's goes on. */
static void on_again(bool in_child)
{
	pid_t child;

	expect(profil_hot(cells) == 0, "on: %m");
	child = fork();
	if ((child == 0) == in_child) {
		burn_few();
		profil_off();
		sleep_ms(UNUSED_MS);
		memset(cells, 0, sizeof(cells));
		expect(profil_hot(cells) == 0, "on again: %m");
		burn_few();
		profil_off();
		expect_exact("on again");
	} else {
		sleep_ms(2 * UNUSED_MS);
		profil_off();
	}
	if (child == 0)
		exit(wrong);
	expect_well(child, "child");
}

static void child_on_again(void)
{
	on_again(true);
}

static void parent_on_again(void)
{
	on_again(false);
}

/* Waits until the parent and the child have come here for the nth time. */
static void meet(_Atomic int *met, int nth)
{
	for (++*met; *met < 2 * nth;)
		sleep_ms(1);
}

/* Both turn it on at another rate, at the same time. */
static void both_at_new_rate(void)
{
	_Atomic int *met = shared_memory(4096);
	double hz = rate_hz();
	char first[32], rate[32];
	pid_t child;

	/* Both rates together are within what profild allows a user. */
	snprintf(first, sizeof(first), "%.0f", hz / 4);
	snprintf(rate, sizeof(rate), "%.0f", hz / 2);
	setenv("PROFIL_HZ", first, 1);
	expect(profil_hot(cells) == 0, "on: %m");
	child = fork();
	profil_off();
	setenv("PROFIL_HZ", rate, 1);
	memset(cells, 0, sizeof(cells));
	meet(met, 1);
	expect(profil_hot(cells) == 0, "on at %s Hz: %m", rate);
	meet(met, 2);
	burnt = burn(8 * long_time());
	meet(met, 3);
	profil_off();
	expect_about(child ? "parent" : "child", sum(), burnt);
	if (child == 0)
		exit(wrong);
	expect_well(child, "child");
}

static void exact_now(void)
{
	begin_here();
	profil_off();
	expect_exact("off");
}

static const struct row rows[] = {
	{ "kernel", "the program reads its own counts", reads_itself },
	{ "kernel", "a thread reads the counts of another", thread_reads },
	{ "any", "counts come while it sleeps", comes_while_asleep },
	{ "any", "counts grow only", grows },
	{ "kernel", "exact after off", after_off },
	{ "kernel", "exact after a second call", after_second_call },
	{ "kernel", "exact after exit", at_exit },
	{ "kernel", "exact after exit in a thread", at_exit_of_thread },
	{ "kernel", "exact after pthread_exit of the first thread", at_pthread_exit },
	{ "kernel", "exact after what atexit handlers burn", after_handlers },
	{ "kernel", "exact in an atexit handler from before profil", handler_before },
	{ "kernel", "exact in an atexit handler from after profil", handler_after },
	{ "kernel", "exact in an atexit handler when a thread exits", handler_thread },
	{ "kernel", "exact in an atexit handler when a thread called profil", handler_caller },
	{ "kernel", "exact in an atexit handler after pthread_exit", handler_pthread_exit },
	{ "kernel", "exact in an atexit handler of a child", handler_child },
	{ "kernel", "exact in a destructor", in_destructor },
	{ "kernel", "exact in a child that turns it on again, while its parent counts",
	  child_on_again },
	{ "kernel", "exact in a parent that turns it on again, while its child counts",
	  parent_on_again },
	{ "kernel", "exact where parent and child turn it on at another rate", both_at_new_rate },
	{ "kernel", "exact when it was short", exact_now },
};

int main(int argc, char **argv)
{
	return run_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
