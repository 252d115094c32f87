// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The public functions of libc's gmon runtime, to be preloaded or linked before libc. gcrt1.o,
 * which gcc -pg links, calls __monstartup() before main() and _mcleanup() at exit; some programs
 * call monstartup() and moncontrol() themselves.
 */
#include "lib/gmon.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/gmon.h>

#include "lib/export.h"

/* <sys/gmon.h> declares the others. */
void moncontrol(int mode);

/* All of this is guarded by the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gmon_arcs *arcs; /* NULL: not started, or ended */
static struct gmon_histogram histogram;
static bool reported; /* that there is no histogram */

/* --- Lock and fork --- */

/*
 * What leave() restores. A thread that holds the lock has all signals blocked, as a handler may
 * exit, and cannot be cancelled.
 */
struct guard {
	sigset_t signals;
	int cancel;
};

static bool used;		   /* it was on; not only preloaded */
static __thread bool fork_entered; /* this thread forks, and holds the lock */
static struct guard fork_guard;	   /* its */

static void enter(struct guard *guard)
{
	sigset_t all;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard->cancel);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &guard->signals);
	pthread_mutex_lock(&lock);
}

static void leave(const struct guard *guard)
{
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &guard->signals, NULL);
	pthread_setcancelstate(guard->cancel, NULL);
}

static void before_fork(void)
{
	struct guard guard;

	fork_entered = used;
	if (!fork_entered)
		return;
	enter(&guard);
	fork_guard = guard;
}

static void after_fork(void)
{
	struct guard guard = fork_guard;

	if (fork_entered)
		leave(&guard);
}

/*
 * Registers fork handlers after libprofil has registered its own: handlers before fork run in the
 * reverse order, so that this lock is always taken first. When the library is loaded, as
 * moncontrol() may be called by a signal handler, which must not take libc's lock for them.
 */
__attribute__((constructor)) static void handle_forks(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

/* --- Range --- */

static int find_image(struct dl_phdr_info *info, size_t size, void *context)
{
	struct gmon_range *range = context;
	uintptr_t low = UINTPTR_MAX, high = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD)
			continue;
		if (start < low)
			low = start;
		if (start + part->p_memsz > high)
			high = start + part->p_memsz;
	}
	if (range->low < low || range->low >= high)
		return 0;
	range->image_low = low;
	range->image_high = high;
	range->load_bias = info->dlpi_addr;
	return 1;
}

/* --- Start and end --- */

static void resume(void)
{
	if (profil__histogram_start(&histogram) && !reported) {
		profil__gmon_print("no histogram: %s", profil_error());
		reported = true;
	}
	profil__arcs_count(arcs);
	used = true;
}

static void pause_all(void)
{
	profil__arcs_count(NULL);
	profil__histogram_pause(&histogram);
}

static void start(uintptr_t low, uintptr_t high)
{
	struct gmon_range range = { .low = low, .high = high, .image_high = UINTPTR_MAX };

	if (low >= high) {
		profil__gmon_print("monstartup: no code to profile");
		return;
	}
	dl_iterate_phdr(find_image, &range);
	if (profil__histogram_open(&histogram, &range) == 0)
		arcs = profil__arcs_open(&range);
	if (arcs) {
		resume();
	} else {
		profil__histogram_close(&histogram);
		profil__gmon_print("monstartup: out of memory");
	}
}

static void end(void)
{
	pause_all();
	profil__histogram_close(&histogram);
	arcs = NULL;
}

/* Warns if fewer ticks came than were due by CPU time, by 5 % and four standard deviations. */
static void warn_missing(void)
{
	uint64_t due = histogram.period_ns ? histogram.cpu_ns / histogram.period_ns : 0;
	uint64_t missing = due > histogram.ticks ? due - histogram.ticks : 0;

	if (missing > due / 20 && missing > 16 * due / missing)
		profil__gmon_print("%llu of %llu ticks that were due did not come",
				   (unsigned long long)missing, (unsigned long long)due);
}

static void warn_losses(void)
{
	unsigned long long calls = gmon_arcs_calls(arcs, 0);

	if (calls)
		profil__gmon_print("%llu calls are not in the call graph: it has room for %u arcs",
				   calls, arcs->limit);
	if (histogram.lost)
		profil__gmon_print("%llu ticks are not in the histogram",
				   (unsigned long long)histogram.lost);
	warn_missing();
}

/* --- Public functions --- */

/*
 * Starts from zero, and drops what was counted before. Servers call it in each of the processes
 * that they fork.
 */
EXPORT void __monstartup(unsigned long low, unsigned long high)
{
	struct guard guard;

	enter(&guard);
	end();
	start(low, high);
	leave(&guard);
}

/* Weak, as libc's: a static program may define functions of these names. */
EXPORT void monstartup(unsigned long low, unsigned long high)
	__attribute__((weak, alias("__monstartup")));

/* Continues; mode 0 pauses. */
EXPORT __attribute__((weak)) void moncontrol(int mode)
{
	struct guard guard;

	enter(&guard);
	if (mode && arcs)
		resume();
	else
		pause_all();
	leave(&guard);
}

/* Stops, and writes gmon.out once for each start. */
EXPORT void _mcleanup(void)
{
	struct guard guard;

	enter(&guard);
	if (arcs) {
		pause_all();
		profil__gmon_create_file(&histogram, arcs);
		warn_losses();
		end();
	}
	leave(&guard);
}
