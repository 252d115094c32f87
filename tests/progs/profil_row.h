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

/* Ticks per second of CPU time. */
static inline unsigned int rate_hz(void)
{
	const char *hz = getenv("PROFIL_HZ");

	return hz ? atoi(hz) : 100;
}

/* The CPU time that a tick stands for, by this rate. */
static inline uint64_t tick_ns(void)
{
	return 1000000000 / rate_hz();
}

static inline double ticks_in(double cpu_ns)
{
	return cpu_ns / tick_ns();
}

static inline void sleep_ms(double ms)
{
	struct timespec interval = { .tv_nsec = ms * 1e6 };

	nanosleep(&interval, NULL);
}

/* --- A function to be counted in, and its cells --- */

/*
 * Defines a function that spins, alone in a section. Its extent is __start_SECTION, __stop_SECTION.
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
 * Time that threads and processes of this row spun for without being charged: others had their
 * CPU, or the host had it, or so seems a long step of the clock. A tick that comes in a moment that
 * the kernel charges to another task still counts, so there may be more ticks than CPU time, but no
 * more than fit into both.
 */
static _Atomic uint64_t *uncharged_ns;

static __attribute__((constructor)) void make_uncharged(void)
{
	uncharged_ns = mmap(NULL, sizeof(*uncharged_ns), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (uncharged_ns == MAP_FAILED)
		abort();
}

/* Adds what `wall_ns` of spinning has more than `cpu_ns` of CPU time that ticks were due for. */
static inline void add_uncharged(uint64_t wall_ns, uint64_t cpu_ns)
{
	*uncharged_ns += wall_ns > cpu_ns ? wall_ns - cpu_ns : 0;
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

/*
 * The CPU time of a step of a clock for which ticks are due. A virtual machine may stand still
 * while the clock goes on, and all ticks that are due then are one: a step is one period at most.
 */
static inline uint64_t step_ns(uint64_t before, uint64_t now)
{
	return now - before < tick_ns() ? now - before : tick_ns();
}

/*
 * Burns that many tick periods of this thread's CPU time in a spinner, but for what it takes to
 * read the clock. Returns them.
 */
static inline double burn_in(void (*spin)(unsigned int turns), double ticks)
{
	clockid_t clock = is_libc() ? ACCOUNTED_CLOCK : CLOCK_THREAD_CPUTIME_ID;
	uint64_t wall = clock_ns(CLOCK_MONOTONIC), before = clock_ns(clock), now, burnt = 0;

	for (; burnt < ticks * tick_ns(); before = now) {
		spin(30000);
		now = clock_ns(clock);
		burnt += step_ns(before, now);
	}
	add_uncharged(clock_ns(CLOCK_MONOTONIC) - wall, burnt);
	return ticks_in(burnt);
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

/* Ticks: some dozens, and a short time with the C library too. */
static inline double some(void)
{
	return rate_hz() > 1000 ? 100 : rate_hz() <= 100 ? 10 : 50;
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
 * Burns until there is a tick in `cells`: the C library's timer goes by ticks of the scheduler, and
 * another may have the CPU of libprofil's thread.
 */
static inline void burn_until_counted(void)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	do
		burn(ticks_in(50e6));
	while (!sum() && clock_ns(CLOCK_MONOTONIC) - begin < UINT64_C(30000000000));
}

/*
 * Whether so many ticks are roughly those of between `low` and `high` periods, in so many threads
 * or stretches that each may begin or end within a period: half of them at least, and less than
 * twice as many. How busy the machine is does not matter.
 */
static inline bool is_about(double got, double low, double high, unsigned int stretches)
{
	return got + 0.5 > low / 2 - stretches &&
	       got <= high * 1.75 + 3 + stretches + ticks_in(*uncharged_ns);
}

static inline bool expect_about(const char *what, double got, double due)
{
	return expect(is_about(got, due, due, 1), "%s: %.0f ticks, due were %.0f", what, got, due);
}

/* At least about so many; others count there as well. */
static inline bool expect_least(const char *what, double got, double due)
{
	return expect(is_about(got, due, got, 2), "%s: %.0f ticks of at least %.0f", what, got,
		      due);
}

/*
 * Of code that does not look at the clock itself, and so cannot leave out where the machine stood
 * still: it ran until there was a tick.
 */
static inline bool expect_some(const char *what, double got, double most)
{
	return expect(got >= 1 && is_about(got, 0, most, 3), "%s: %.0f ticks, due were %.0f", what,
		      got, most);
}

/* In a forked child counting begins a little late: not much of this time is lost by it. */
static inline double long_time(void)
{
	double ticks = ticks_in(50e6);

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
static inline void expect_turned_off(void)
{
	unsigned int before;

	expect(profil_off() == 0, "off: %m");
	before = sum();
	burn(some());
	expect(sum() == before, "%u ticks when off", sum() - before);
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
