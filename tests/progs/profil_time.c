// SPDX-License-Identifier: GPL-2.0-only
/* The number of ticks for the CPU time of threads: profil_row.h. */
#include "machine.h"
#include "profil_row.h"

#include <sys/resource.h>
#include <sys/syscall.h>

SPINNER(warm)

static void start_threads(pthread_t *threads, int count, void *(*run)(void *))
{
	for (int i = 0; i < count; i++)
		need(pthread_create(&threads[i], NULL, run, NULL) == 0, "pthread_create");
}

static void join_threads(const pthread_t *threads, int count)
{
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* To be shown, not judged: with the 100 Hz of the C library's profil() all takes long. */
static bool brief(void)
{
	return getenv("PROFIL_TEST_BRIEF");
}

/* In so many threads, each of which may lose a period. */
static void measure(const char *name, double (*ticks)(double *due), unsigned int threads)
{
	double due, got = ticks(&due);

	expect(is_about(got, due, due, threads), "%s: %.0f ticks, due were %.1f", name, got, due);
}

/* --- The rate --- */

/* So many ticks that one does not matter. */
static double enough(void)
{
	return rate_hz() <= 100 ? 100 : 500;
}

static _Atomic uint64_t burnt_ns; /* by threads, while profiling is on */
static _Atomic bool is_on;

/* Spins while it is to go on. Each thread looks at its own clock, as burn() does. */
static void *spin_and_add(void *unused)
{
	uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID), now;

	for (; go_on; before = now) {
		spin_hot(30000);
		now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		if (is_on)
			burnt_ns += step_ns(before, now);
	}
	return unused;
}

/* Half of 8 threads run already, half come. */
static double ticks_of_8(double *due)
{
	uint64_t wall = clock_ns(CLOCK_MONOTONIC);
	pthread_t threads[8];

	memset(cells, 0, sizeof(cells));
	start_threads(threads, 4, spin_and_add);
	expect(profil_hot(cells) == 0, "on: %m");
	is_on = true;
	start_threads(threads + 4, 4, spin_and_add);
	while (burnt_ns < enough() * tick_ns())
		sleep_ms(5);
	/* They end first: else they run on between their last look at the clock and profil_off().
	 */
	go_on = false;
	join_threads(threads, 8);
	profil_off();
	add_uncharged((clock_ns(CLOCK_MONOTONIC) - wall) * sysconf(_SC_NPROCESSORS_ONLN), burnt_ns);
	*due = ticks_in(burnt_ns);
	return sum();
}

static void rate(void)
{
	measure("8 threads", ticks_of_8, 8);
}

static double ticks_of_one(double *due)
{
	memset(cells, 0, sizeof(cells));
	expect(profil_hot(cells) == 0, "on: %m");
	*due = burn(enough());
	profil_off();
	return sum();
}

static void rate_of_one(void)
{
	measure("one thread", ticks_of_one, 1);
}

/* On for half a period, and off for a random time, again and again. */
static double ticks_of_stretches(double *due)
{
	struct drand48_data numbers = { 0 };
	double pause;

	memset(cells, 0, sizeof(cells));
	srand48_r(getpid(), &numbers);
	*due = 0;
	for (int i = 0; i < (brief() ? 20 : 100); i++) {
		expect(profil_hot(cells) == 0, "on: %m");
		*due += burn(0.5);
		profil_off();
		drand48_r(&numbers, &pause);
		sleep_ms(pause * tick_ns() / 1e6);
	}
	return sum();
}

static void stretches(void)
{
	measure("half a period at a time", ticks_of_stretches, 1);
}

/* --- Which time --- */

static int zero_file;

/*
 * Reads zeros, and its clock, while it is to go on: the instructions behind the system calls are in
 * `hot`.
 */
static __attribute__((noinline, section("hot"))) void *read_on(void *period)
{
	static char zeros[1 << 16];
	const uint64_t most = *(uint64_t *)period;
	uint64_t before = 0, after, step;
	struct timespec now;
	long got __attribute__((unused));

	while (go_on) {
		SYSTEM_CALL(got, SYS_read, zero_file, zeros, sizeof(zeros));
		SYSTEM_CALL(got, SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now, 0);
		after = now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
		step = after - before;
		burnt_ns += step < most ? step : most;
		before = after;
	}
	return NULL;
}

static double system_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_stime.tv_sec * 1e9 + usage.ru_stime.tv_usec * 1e3;
}

static double ticks_of_system(double *due)
{
	uint64_t wall = clock_ns(CLOCK_MONOTONIC), period = tick_ns();
	double system = system_ns();
	pthread_t thread;

	memset(cells, 0, sizeof(cells));
	zero_file = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	need(zero_file >= 0, "/dev/zero");
	expect(profil_hot(cells) == 0, "on: %m");
	need(pthread_create(&thread, NULL, read_on, &period) == 0, "pthread_create");
	/* Which of its time it is, the kernel tells by the scheduler's ticks: it may have few. */
	while (burnt_ns < 10 * some() * period || system_ns() - system < burnt_ns / 2)
		sleep_ms(5);
	go_on = false;
	pthread_join(thread, NULL);
	profil_off();
	close(zero_file);
	add_uncharged(clock_ns(CLOCK_MONOTONIC) - wall, burnt_ns);
	*due = (double)burnt_ns / period;
	return sum();
}

static void system_time(void)
{
	measure("system time", ticks_of_system, 2);
}

static void *burn_warm(void *unused)
{
	burn_in(spin_warm, 5 * some());
	return unused;
}

static void *wait_and_burn(void *unused)
{
	while (!go_on)
		sleep_ms(1);
	burn(5 * some());
	return unused;
}

/* One thread runs already, one comes; each is in code of its own. */
static void two_threads(void)
{
	static struct {
		unsigned short hot[CELLS], warm[CELLS];
	} counts;
	struct prof regions[] = {
		{ counts.hot, __stop_hot - __start_hot, (size_t)__start_hot, 0x10000 },
		{ counts.warm, __stop_warm - __start_warm, (size_t)__start_warm, 0x10000 },
	};
	pthread_t threads[2];

	go_on = false;
	start_threads(&threads[0], 1, wait_and_burn);
	expect(sprofil(regions, 2, NULL, PROF_USHORT) == 0, "on: %m");
	start_threads(&threads[1], 1, burn_warm);
	go_on = true;
	join_threads(threads, 2);
	sprofil(NULL, 0, NULL, 0);
	expect_about("the one that ran", sum_of(counts.hot), 5 * some());
	expect_about("the one that came", sum_of(counts.warm), 5 * some());
}

/*
 * Whether this thread of the process waits for a signal, for a second at least, as libprofil's does
 * while nothing runs: proc_pid_syscall(5) has the system call and where its arguments are.
 */
static bool waits_long(const char *tid)
{
	unsigned long number, set, info, timeout = 0;
	char path[300];
	FILE *in;
	int got;

	snprintf(path, sizeof(path), "/proc/self/task/%s/syscall", tid);
	in = fopen(path, "re");
	if (!in)
		return false;
	got = fscanf(in, "%lu 0x%lx 0x%lx 0x%lx", &number, &set, &info, &timeout);
	fclose(in);
	return got == 4 && number == SYS_rt_sigtimedwait && timeout &&
	       ((const struct timespec *)timeout)->tv_sec >= 1;
}

static bool others_wait_long(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	bool all = true;

	need(tasks, "/proc/self/task");
	while ((task = readdir(tasks)))
		if (task->d_name[0] != '.' && atoi(task->d_name) != getpid())
			all &= waits_long(task->d_name);
	closedir(tasks);
	return all;
}

/* Each look uses CPU time, which wakes libprofil's thread for 40 ms: the next comes later. */
static void asleep(void)
{
	bool quiet = false;

	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	for (int ms = 60; !quiet && ms < 60000; ms *= 2) {
		usleep(ms * 1000);
		quiet = others_wait_long();
	}
	expect(quiet, "a thread that is not the program's goes on while nothing runs");
	burn(some());
	profil_off();
	expect_about("before and after", sum(), 2 * some());
}

/* --- Threads that come and go --- */

static _Atomic int left, running;

static void burn_and_add(double ticks)
{
	burnt_ns += (uint64_t)(burn(ticks) * tick_ns());
}

/* Each burns 100 ticks, makes the next of its chain and ends. */
static void *link_of_chain(void *unused)
{
	pthread_t next;

	burn_and_add(100);
	if (atomic_fetch_sub(&left, 1) > 0) {
		need(pthread_create(&next, NULL, link_of_chain, NULL) == 0, "pthread_create");
		pthread_detach(next);
	} else {
		running--;
	}
	return unused;
}

static double ticks_of_chains(double *due)
{
	pthread_t first;

	memset(cells, 0, sizeof(cells));
	burnt_ns = 0;
	left = brief() ? 0 : 40;
	running = 4;
	expect(profil_hot(cells) == 0, "on: %m");
	for (int i = 0; i < 4; i++) {
		need(pthread_create(&first, NULL, link_of_chain, NULL) == 0, "pthread_create");
		pthread_detach(first);
	}
	while (running)
		sleep_ms(5);
	profil_off();
	*due = ticks_in(burnt_ns);
	return sum();
}

static void chains(void)
{
	measure("4 chains", ticks_of_chains, 44);
}

static void *end_at_once(void *unused)
{
	return unused;
}

/* Burns ten ticks between a thread that it makes, which ends at once, and the next. */
static void *make(void *unused)
{
	pthread_t thread;

	while (go_on) {
		burn_and_add(10);
		need(pthread_create(&thread, NULL, end_at_once, NULL) == 0, "pthread_create");
		pthread_join(thread, NULL);
	}
	return unused;
}

static double ticks_of_makers(double *due)
{
	pthread_t threads[2];

	memset(cells, 0, sizeof(cells));
	burnt_ns = 0;
	go_on = true;
	expect(profil_hot(cells) == 0, "on: %m");
	start_threads(threads, 2, make);
	while (burnt_ns < 20 * some() * tick_ns())
		sleep_ms(5);
	go_on = false;
	join_threads(threads, 2);
	profil_off();
	*due = ticks_in(burnt_ns);
	return sum();
}

static void makers(void)
{
	measure("2 makers", ticks_of_makers, 2);
}

static void *burn_some(void *unused)
{
	burn_and_add(some());
	return unused;
}

static double ticks_of_many(double *due)
{
	pthread_t threads[100];
	int count = brief() ? 10 : 100;

	memset(cells, 0, sizeof(cells));
	burnt_ns = 0;
	expect(profil_hot(cells) == 0, "on: %m");
	start_threads(threads, count, burn_some);
	join_threads(threads, count);
	profil_off();
	*due = ticks_in(burnt_ns);
	return sum();
}

static void many(void)
{
	measure("100 threads", ticks_of_many, 100);
}

static void *profil_and_end(void *unused)
{
	expect(profil_hot(cells) == 0, "on: %m");
	return unused;
}

static void caller_ends(void)
{
	pthread_t thread;

	start_threads(&thread, 1, profil_and_end);
	join_threads(&thread, 1);
	burn(some());
	profil_off();
	expect_about("after its end", sum(), some());
}

static const struct row rows[] = {
	{ "rate", "8 threads: their CPU time", rate },
	{ "rate", "a thread: its CPU time", rate_of_one },
	{ "rate", "short stretches", stretches },
	{ "kernel", "system time is charged", system_time },
	{ "kernel", "a thread that ran and one that came", two_threads },
	{ "any", "asleep", asleep },
	{ "kernel", "threads that make threads and end", chains },
	{ "kernel", "threads that make threads which end at once", makers },
	{ "kernel", "100 threads", many },
	{ "any", "the thread that turned it on ends", caller_ends },
};

int main(int argc, char **argv)
{
	return run_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
