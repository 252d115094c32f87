// SPDX-License-Identifier: GPL-2.0-only
/*
 * When counts are in the buffer: while profiling is on, afterwards, and at the end: profil_row.h.
 */
#include "profil_row.h"

#include <sched.h>

/* Ticks of half the time that the buffer may be behind: what is not exact misses some of them. */
static double few(void)
{
	return 5e6 / period_ns();
}

/* --- While it is on --- */

#define LOOKS 400

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* How far the counts are behind so many ticks, in milliseconds. */
static double lag_ms(double due)
{
	return (due - sum()) * period_ns() / 1e6;
}

/*
 * They wake each 10 ms, as whoever brings the counts does: a thread of this process, as
 * libprofil's, and another process, as profild. On a busy machine each waits for a CPU.
 */
static struct waking {
	_Atomic uint64_t woken[2];
	_Atomic bool goes_on;
} * waking;
static double late[LOOKS];

static void wake_until_told(int which)
{
	while (waking->goes_on) {
		waking->woken[which] = clock_ns(CLOCK_MONOTONIC);
		sleep_ms(10);
	}
}

static void *wake_thread(void *unused)
{
	wake_until_told(0);
	return unused;
}

static void start_other(void)
{
	pid_t child = fork();

	need(child >= 0, "fork");
	if (child > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	wake_until_told(1);
	_exit(0);
}

/* The thread is on the CPU where all threads of this process are from now on. */
static pthread_t start_waking(void)
{
	pthread_t thread;
	cpu_set_t here;

	waking = mmap(NULL, sizeof(*waking), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	need(waking != MAP_FAILED, "mmap");
	waking->woken[0] = waking->woken[1] = clock_ns(CLOCK_MONOTONIC);
	waking->goes_on = true;
	start_other();
	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	need(sched_setaffinity(0, sizeof(here), &here) == 0, "sched_setaffinity");
	need(pthread_create(&thread, NULL, wake_thread, NULL) == 0, "pthread_create");
	return thread;
}

/* How late the later of them is now. */
static double late_ms(void)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), first = waking->woken[0],
		 second = waking->woken[1];
	double ms = ((double)now - (first < second ? first : second)) / 1e6 - 10;

	return ms > 0 ? ms : 0;
}

/*
 * Whoever brings the counts does more than wake, so that others may run before it more often: as a
 * median it may be as late as these are in the worst of ten looks. There are few wakes among the
 * looks, so the latest of them is what the worst looks may be. Called when it is off: what the
 * counts lack of `due` then has no tick, since the machine stood still, and came to be lacking at
 * some look.
 */
static void expect_behind(pthread_t thread, double *lags, double most, double due)
{
	const int median = LOOKS / 2, worst = LOOKS * 9 / 10;
	const double lag = lag_ms(due), missing = lag > 0 ? lag : 0;

	waking->goes_on = false;
	pthread_join(thread, NULL);
	wait(NULL);
	qsort(lags, LOOKS, sizeof(*lags), compare);
	qsort(late, LOOKS, sizeof(*late), compare);
	printf("behind by %.1f ms as a median, %.1f in the worst of ten, %.1f at most; "
	       "whoever wakes is late by %.1f, %.1f, %.1f; %.1f ms have no tick\n",
	       lags[median], lags[worst], lags[LOOKS - 1], late[median], late[worst],
	       late[LOOKS - 1], missing);
	expect(lags[median] <= most + late[worst] + missing, "the median is more than %.1f ms",
	       most + late[worst] + missing);
	expect(lags[worst] <= 1.5 * most + late[LOOKS - 1] + missing,
	       "one of ten is more than %.1f ms", 1.5 * most + late[LOOKS - 1] + missing);
}

/* The program reads while it burns. */
static void reads_itself(void)
{
	static double lags[LOOKS];
	pthread_t thread = start_waking();
	double due = 0;

	expect(profil_hot(cells) == 0, "on: %m");
	for (int i = 0; i < LOOKS; i++) {
		due += burn(0.37e6 / period_ns());
		lags[i] = lag_ms(due);
		late[i] = late_ms();
	}
	profil_off();
	expect_behind(thread, lags, 10, due);
}

/* A thread reads what another is counted for. */
static void thread_reads(void)
{
	static double lags[LOOKS];
	pthread_t waker = start_waking(), thread;
	clockid_t clock;
	double due = 0;

	expect(profil_hot(cells) == 0, "on: %m");
	need(pthread_create(&thread, NULL, spin_on, NULL) == 0, "pthread_create");
	need(pthread_getcpuclockid(thread, &clock) == 0, "pthread_getcpuclockid");
	for (int i = 0; i < LOOKS; i++) {
		sleep_ms(0.5);
		due = (double)clock_ns(clock) / period_ns();
		lags[i] = lag_ms(due);
		late[i] = late_ms();
	}
	go_on = false;
	pthread_join(thread, NULL);
	profil_off();
	expect_behind(waker, lags, 10, due);
}

/* Every other look is after a pause, when nothing runs: what was burnt must come by itself. */
static void comes_while_asleep(void)
{
	double due = 0;

	expect(profil_hot(cells) == 0, "on: %m");
	for (int i = 0; i < 20; i++) {
		due += burn(few());
		for (int ms = 0; ms < 5000 && !can_be(sum(), due, due, i + 1); ms++)
			sleep_ms(1);
		expect(can_be(sum(), due, due, i + 1),
		       "%d: %u ticks after 5 s of sleep, due were %.0f", i, sum(), due);
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
	expect(can_be(all, due, due, 20), "%u ticks of %.1f", all, due);
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
	expect(can_be(all, due, due, 20), "%u ticks of %.1f", all, due);
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
	{ "kernel", "exact when it was short", exact_now },
};

int main(int argc, char **argv)
{
	return run_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
