/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For the programs of tests/profil: each is a table of rows; a row is a fact that it verifies in a
 * separate process. They know profil(2) only from the C library's headers, like any old program,
 * and so run with libprofil preloaded or with the C library's own profil().
 *
 *   PROGRAM list       prints "WHERE NAME" for each row. WHERE it must hold: with `any` back end;
 * only where the `kernel` counts, not with the C library's signals; or, the same, at a `rate` that
 * is chosen for it; or only with `kmod`
 *
 *   PROGRAM NAME       exits 0 if the row holds, else prints what does not, and exits 1
 */
#ifndef TESTS_PROFIL_ROW_H
#define TESTS_PROFIL_ROW_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/profil.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chance.h"

struct row {
	const char *where, *name;
	void (*run)(void);
};

static int wrong;

/* Prints the message and marks the row as failed unless right. Returns right. */
static inline __attribute__((format(printf, 2, 3))) bool expect(bool right, const char *found, ...)
{
	va_list args;

	if (right)
		return true;
	va_start(args, found);
	vprintf(found, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	wrong = 1;
	return false;
}

/* For what must be there for the test itself. */
static inline void need(bool there, const char *what)
{
	if (there)
		return;
	printf("%s: %m\n", what);
	exit(2);
}

static inline int run_row(int argc, char **argv, const struct row *rows, size_t count)
{
	bool list = argc == 2 && strcmp(argv[1], "list") == 0;

	for (size_t i = 0; i < count; i++) {
		if (list) {
			printf("%s %s\n", rows[i].where, rows[i].name);
		} else if (argc >= 2 && strcmp(argv[1], rows[i].name) == 0) {
			rows[i].run();
			return wrong;
		}
	}
	return list ? 0 : 2;
}

/* "." and ".." apart. */
static inline int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int count = -2;

	need(dir, path);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* --- Time --- */

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static inline uint64_t period_ns(void)
{
	const char *hz = getenv("PROFIL_HZ");

	return 1000000000 / (hz ? atoi(hz) : 100);
}

static inline void sleep_ms(double ms)
{
	struct timespec interval = { .tv_nsec = ms * 1e6 };

	nanosleep(&interval, NULL);
}

/* --- A function to be counted in, and its cells --- */

/* Defines a function that spins, alone in a section. Its extent is __start_SECTION, __stop_SECTION.
 */
#define SPINNER(section_name)                                                              \
	extern char __start_##section_name[], __stop_##section_name[];                     \
	__attribute__((noinline, section(#section_name))) static void spin_##section_name( \
		unsigned int turns)                                                        \
	{                                                                                  \
		while (turns--)                                                            \
			__asm__ volatile("");                                              \
	}

SPINNER(hot)

/*
 * CPU time, of all processes and threads of a row, in which no instruction ran: the clock goes on
 * where a virtual machine stands still, unless its host says so, but all ticks that are due then
 * are one. Each thread looks at what it burns itself.
 */
static _Atomic uint64_t *stalled_ns;

/* The number that fscanf(3) reads by the format; 0: there is none. */
static inline unsigned long long number_in(const char *path, const char *format)
{
	FILE *file = fopen(path, "re");
	unsigned long long number = 0;

	if (file) {
		if (fscanf(file, format, &number) != 1)
			number = 0;
		fclose(file);
	}
	return number;
}

/*
 * Where the host says so, no CPU time passes, but a tick that comes in between, and not only then,
 * hits whoever runs. All that it has taken from this machine, in steps of 10 ms.
 */
static inline uint64_t stolen_ns(void)
{
	return number_in("/proc/stat", "cpu %*u %*u %*u %*u %*u %*u %*u %llu") *
	       (1000000000 / sysconf(_SC_CLK_TCK));
}

static uint64_t stolen_before_ns;

static inline double stolen_ticks(void)
{
	return (double)(stolen_ns() - stolen_before_ns) / period_ns();
}

/*
 * What a thread may run that is not in its CPU time, each time that it is preempted. When another
 * CPU wakes a thread that is to run here, the kernel charges from then on to that one
 * (rq_clock_skip_update()), but this one runs until the interrupt has come, and its ticks come. In
 * a virtual machine that took 13 us in half of 3,900 cases, and 20 us on average.
 */
#define WAKE_NS 50000

/* Of this process and of children that have been waited for. */
static inline double uncharged_ticks(void)
{
	struct rusage self, children;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	return (double)(self.ru_nivcsw + children.ru_nivcsw) * WAKE_NS / period_ns();
}

static __attribute__((constructor)) void make_stalled(void)
{
	stolen_before_ns = stolen_ns();
	stalled_ns = mmap(NULL, sizeof(*stalled_ns), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (stalled_ns == MAP_FAILED)
		abort();
}

/* How long this thread has waited for a CPU: proc_pid_schedstat(5). */
static inline uint64_t waited_ns(void)
{
	return number_in("/proc/thread-self/schedstat", "%*u %llu");
}

static bool has_priority; /* this thread, between watch() and unwatch() */

/*
 * Until unwatch() this thread has a CPU whenever it wants one, so that what it comes too late by is
 * the machine's; that takes CAP_SYS_NICE. It stays on this CPU, and so do the threads that it
 * starts: while one of them runs, this one sleeps, and no stop of its CPU is missed.
 */
static inline void watch(void)
{
	const struct sched_param first = { .sched_priority = 1 };
	cpu_set_t cpu;

	has_priority = !sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	need(sched_setaffinity(0, sizeof(cpu), &cpu) == 0, "sched_setaffinity");
}

static inline void unwatch(void)
{
	const struct sched_param normal = { 0 };
	cpu_set_t all;

	memset(&all, 0xff, sizeof(all));
	need(sched_setaffinity(0, sizeof(all), &all) == 0, "sched_setaffinity");
	sched_setscheduler(0, SCHED_OTHER, &normal);
}

/*
 * Sleeps, and adds to `stalled_ns` by how much too late it woke, but for what it waited for a CPU
 * because it has no priority: the machine has stood still meanwhile, and with it the thread
 * that had the CPU, whose clock went on. For those that cannot look themselves; between watch() and
 * unwatch().
 */
static inline void sleep_watched(double ms)
{
	/* Read first, and last: it may also wait between two of these calls. */
	uint64_t waited = waited_ns(), begin = clock_ns(CLOCK_MONOTONIC), late;

	sleep_ms(ms);
	late = clock_ns(CLOCK_MONOTONIC) - begin - (uint64_t)(ms * 1e6);
	waited = has_priority ? 0 : waited_ns() - waited;
	if (late > waited + 1000000)
		*stalled_ns += late - waited;
}

/*
 * Spins for a short while, and adds to `stalled_ns` what this thread's CPU clock has gone on by
 * more than instructions ran. It looks at the time often, and takes what lies between two looks
 * for a stall from half a period on. Returns the CPU clock's time.
 */
static inline uint64_t spin_watched(void (*spin)(unsigned int turns), uint64_t cpu)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), ran = 0, shortest = UINT64_MAX, took[10], now;

	for (int i = 0; i < 10; i++) {
		spin(30000);
		now = clock_ns(CLOCK_MONOTONIC);
		took[i] = now - begin;
		shortest = took[i] < shortest ? took[i] : shortest;
		begin = now;
	}
	for (int i = 0; i < 10; i++) {
		uint64_t most = shortest * 3 + period_ns() / 2;

		ran += took[i] < most ? took[i] : most;
	}
	now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (now - cpu > ran + period_ns() / 2)
		*stalled_ns += now - cpu - ran;
	return now;
}

/*
 * Whether the C library counts, by itself or for libprofil: by a timer of the process, which
 * signals each 10 ms. All others are named, or given a rate, by whoever runs this.
 */
static inline bool is_libc(void)
{
	const char *backend = getenv("PROFIL_BACKEND");

	return !getenv("PROFIL_HZ") && (!backend || strcmp(backend, "libc") == 0);
}

/*
 * This thread's CPU time as the kernel accounts it at the scheduler's ticks, all of a period to
 * whoever runs then: of clock_gettime(2)'s clocks of a thread, the one that CPUCLOCK_PROF makes.
 * The C library's timer goes by it. On a busy machine it differs from what the thread has used: one
 * that ran in turns of 1.4 ms had used 100 ms and been accounted 8.
 */
#define ACCOUNTED_CLOCK ((clockid_t)-4)

/* What the ticks go by. cpu: this thread's CPU time. */
static inline uint64_t ticks_clock_ns(uint64_t cpu)
{
	return is_libc() ? clock_ns(ACCOUNTED_CLOCK) : cpu;
}

/*
 * Burns that many tick periods of this thread's CPU time in a spinner, but for what it takes to
 * read the clock. Returns them, exactly.
 */
static inline double burn_in(void (*spin)(unsigned int turns), double ticks)
{
	uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), begin = ticks_clock_ns(cpu), now;

	do {
		cpu = spin_watched(spin, cpu);
		now = ticks_clock_ns(cpu);
	} while (now - begin < ticks * period_ns());
	return (double)(now - begin) / period_ns();
}

static inline double burn(double ticks)
{
	return burn_in(spin_hot, ticks);
}

/* For threads: while they are to go on. */
static _Atomic bool go_on = true;

/* Spins in `hot` alone, without a system call. */
static __attribute__((unused, noinline, section("hot"))) void *spin_on(void *unused)
{
	while (go_on)
		;
	return unused;
}

/* Ticks: enough of them that none at all is not chance, and a short time with the C library too. */
static inline double some(void)
{
	return period_ns() < 1000000 ? 100 : period_ns() >= 10000000 ? 10 : 50;
}

#define CELLS 512
static unsigned short cells[CELLS];

static inline int profil_hot(unsigned short *buffer)
{
	return profil(buffer, CELLS * sizeof(*buffer), (size_t)__start_hot, 0x10000);
}

static inline int profil_off(void)
{
	/* The C library declares it nonnull, but NULL turns it off. */
	unsigned short *volatile none = NULL;

	return profil(none, 0, 0, 0);
}

static inline unsigned int sum_of(const volatile unsigned short *counts)
{
	unsigned int sum = 0;

	for (int i = 0; i < CELLS; i++)
		sum += counts[i];
	return sum;
}

/* Of `cells`. Reads each but once: another thread may write them. */
static inline unsigned int sum(void)
{
	return sum_of(cells);
}

/*
 * Whether there can be so many ticks when between `low` and `high` are due, in so many threads or
 * stretches that each may begin or end within a period. The C library's timer goes by steps of the
 * scheduler's period, and what was burnt by ACCOUNTED_CLOCK.
 */
static inline bool can_be(double got, double low, double high, unsigned int stretches)
{
	double stolen = stolen_ticks();
	double lost = (double)*stalled_ns / period_ns() + stolen + stretches;
	double more = uncharged_ticks() + stolen + stretches;

	if (is_libc())
		return got + 0.5 > low * 0.5 - lost && got <= high * 1.5 + 3 + high / 3;
	return is_rate(got, low - lost, high + more);
}

/* What can_be() allows beyond chance, for messages. */
static inline const char *besides(void)
{
	static char text[100];

	snprintf(text, sizeof(text), "; stalled %.1f, stolen %.1f, not charged up to %.1f",
		 (double)*stalled_ns / period_ns(), stolen_ticks(), uncharged_ticks());
	return text;
}

static inline bool expect_about(const char *what, double got, double due)
{
	return expect(can_be(got, due, due, 1), "%s: %.0f ticks, due were %.0f%s", what, got, due,
		      besides());
}

/* At least so many; others count there as well. */
static inline bool expect_least(const char *what, double got, double due)
{
	return expect(got >= due || can_be(got, due, due, 2), "%s: %.0f ticks of at least %.0f",
		      what, got, due);
}

/* In a forked child counting begins a little late: not much of this time is lost by it. */
static inline double long_time(void)
{
	double ticks = 50e6 / period_ns();

	return ticks < 2 * some() ? 2 * some() : ticks;
}

/* --- Memory and processes --- */

/* Shared with the children. */
static inline void *shared_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	need(memory != MAP_FAILED, "mmap");
	return memory;
}

/* The status of a child; one that does not end in a minute is killed. */
static inline int wait_for_child(pid_t child, const char *name)
{
	int status;

	need(child > 0, name);
	for (int i = 0; waitpid(child, &status, WNOHANG) == 0; i++) {
		if (i == 60000) {
			expect(false, "%s: does not end", name);
			kill(child, SIGKILL);
		}
		sleep_ms(1);
	}
	return status;
}

/* Waits for a child; prints an error if its exit status is not 0. */
static inline void expect_well(pid_t child, const char *name)
{
	int status = wait_for_child(child, name);

	if (WIFSIGNALED(status))
		expect(false, "%s: ended by signal %d", name, WTERMSIG(status));
	else
		expect(status == 0, "%s: exit status %d", name, WEXITSTATUS(status));
}

/* Turns profiling off. Prints an error if anything is counted afterwards. */
static inline void expect_turned_off(const char *name)
{
	unsigned int before;

	expect(profil_off() == 0, "%s: off: %m", name);
	before = sum();
	burn(some());
	expect(sum() == before, "%s: %u ticks when off", name, sum() - before);
}

/* From now on this thread may not make the system calls of these numbers. */
static inline void forbid(unsigned int first, unsigned int last)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, first, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS");
	need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "PR_SET_SECCOMP");
}

#endif
