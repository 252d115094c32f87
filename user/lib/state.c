// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/state.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/backends.h"
#include "lib/last_error.h"
#include "lib/references.h"
#include "lib/service_thread.h"
#include "lib/sessions.h"
#include "lib/verbose.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;

/*
 * The PID of the process that the state belongs to, in a page that the kernel wipes in a forked
 * child: 0 until the child has taken over its copy of the state. A child of vfork(2), which shares
 * the memory, finds a PID that is not its own.
 */
static pid_t *owner;

static bool has_watcher;	 /* a thread runs watch_for_end() */
static sigset_t watcher_signals; /* that it blocks: those that its creator blocked */

static __thread bool fork_entered; /* this thread forks, and has the lock */

static pthread_key_t key; /* its destructor, end_thread(), is called when a thread ends */
static bool has_key;

/* The key's values: which thread ends. A filter may forbid the system call that would say so. */
static char first_thread, other_thread;

static bool is_first_thread(void)
{
	return syscall(SYS_gettid) == getpid();
}

/* Has end_thread() called when this thread ends. Returns false if the caller should try again. */
static bool watch_this_thread(void)
{
	bool first;

	if (!has_key)
		return true;
	first = is_first_thread();
	if (pthread_setspecific(key, first ? &first_thread : &other_thread))
		return false;
	if (first)
		profil__set_first_thread(FIRST_THREAD_RUNS);
	return true;
}

/* In a forked child, whose first thread is the one that forked. */
static void take_over_state(void)
{
	*owner = getpid();
	has_watcher = false;
	profil__set_first_thread(FIRST_THREAD_UNWATCHED);
	watch_this_thread();
}

/* --- The lock --- */

static void prepare_state(void);

bool profil__is_borrowed(void)
{
	pthread_once(&once, prepare_state);
	return *owner && *owner != getpid();
}

int profil__enter(struct guard *guard)
{
	sigset_t all;

	if (fork_entered)
		return profil__error(
			EDEADLK, "called by a fork handler that was registered before libprofil's");
	if (profil__is_borrowed())
		return profil__error(EPERM, "not in a child of vfork(2): it shares its parent's "
					    "memory");
	guard->code = errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &guard->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard->cancel);
	/*
	 * In a child that was made by a system call, without fork handlers: drops the parent's
	 * sessions. Another thread of the parent may have had the lock.
	 */
	if (!*owner) {
		pthread_mutex_init(&profil__lock, NULL);
		profil__sessions_forget();
		take_over_state();
	}
	pthread_mutex_lock(&profil__lock);
	return 0;
}

void profil__leave(const struct guard *guard)
{
	pthread_mutex_unlock(&profil__lock);
	pthread_setcancelstate(guard->cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &guard->signals, NULL);
	errno = guard->code;
}

/* --- fork(2) --- */

/* Of the thread that forks. */
static __thread struct guard fork_guard;

static void before_fork(void)
{
	fork_entered = profil__enter(&fork_guard) == 0;
	if (fork_entered)
		profil__sessions_before_fork();
}

static void after_fork(void)
{
	if (!fork_entered)
		return;
	fork_entered = false;
	profil__sessions_after_fork();
	profil__leave(&fork_guard);
}

static void after_fork_in_child(void)
{
	if (!fork_entered)
		return;
	fork_entered = false;
	take_over_state();
	profil__sessions_forked();
	profil__sessions_after_fork();
	profil__leave(&fork_guard);
}

/* --- Exit --- */

static bool used;

/*
 * Makes no system call when nothing is on: a seccomp(2) filter may end a program that makes one
 * which it does not need itself.
 */
static void update_all(void)
{
	struct guard guard;

	if (!profil__sessions_any() || profil__enter(&guard))
		return;
	profil__sessions_update();
	profil__leave(&guard);
}

void profil__update_at_exit(void *unused)
{
	(void)unused;
	update_all();
}

/*
 * Runs in a thread that is started when the first thread ends while others run. A process ends, and
 * flushes its streams, with its last thread; the service thread must not be that one, as it does
 * not have the program's descriptors. So this thread waits until the program's threads have ended,
 * stops the service thread, and then is the last one.
 */
static void *watch_for_end(void *unused)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	struct guard guard;

	pthread_sigmask(SIG_SETMASK, &watcher_signals, NULL);
	while (!profil__program_ended(2) && !profil__program_ended(1))
		nanosleep(&pause, NULL);
	if (profil__enter(&guard))
		return unused;
	has_watcher = false;
	profil__sessions_stop();
	profil__service_end();
	profil__leave(&guard);
	return unused;
}

/* Called when a thread ends by pthread_exit(3) or its function's return, not by exit(3). */
static void end_thread(void *which)
{
	bool first = which == &first_thread;
	struct guard guard;
	pthread_t thread;

	if (!profil__sessions_any() && !profil__service_runs()) { /* as in update_all() */
		if (first)
			profil__set_first_thread(FIRST_THREAD_ENDS);
		return;
	}
	if (profil__enter(&guard))
		return;
	profil__sessions_update();
	if (first)
		profil__set_first_thread(FIRST_THREAD_ENDS);
	if (profil__service_runs() && !has_watcher && profil__first_thread_ended()) {
		watcher_signals = guard.signals;
		has_watcher = pthread_create(&thread, NULL, watch_for_end, NULL) == 0;
		if (has_watcher)
			pthread_detach(thread);
	}
	profil__leave(&guard);
}

/* libc's, for C++: calls a function when the thread exits, before the handlers of atexit(3). */
extern int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *dso);
extern void *__dso_handle;

/*
 * libc's functions for exit handlers take locks and memory, which a signal handler must not. So
 * they are called once: atexit(3) for handlers that were registered before (atexit.c has the later
 * ones), and in a static program, which has no atexit.c, the hook of the thread that calls first.
 */
void profil__prepare(bool other)
{
	static __thread bool in_thread;
	int code = errno;

	if (profil__is_borrowed())
		return;
	profil__backends_prepare(other);
	if (!in_thread)
		in_thread = watch_this_thread();
	if (!__atomic_exchange_n(&used, true, __ATOMIC_RELAXED)) {
		__cxa_thread_atexit_impl(profil__update_at_exit, NULL, &__dso_handle);
		atexit(update_all);
	}
	errno = code;
}

bool profil__was_used(void)
{
	return used;
}

__attribute__((destructor)) static void update_at_end(void)
{
	struct guard guard;

	update_all();
	if (!profil__is_verbose())
		return;
	if (profil__sessions_any() && profil__enter(&guard) == 0) {
		profil__sessions_end();
		profil__leave(&guard);
	}
	profil__print_sum(profil__sessions_sum(), used);
}

/* --- Initialisation --- */

static void prepare_state(void)
{
	static pid_t not_wiped;
	void *page = mmap(NULL, sizeof(*owner), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	/* Without MADV_WIPEONFORK, a child without fork handlers is taken for one of vfork(2). */
	if (page == MAP_FAILED || madvise(page, sizeof(*owner), MADV_WIPEONFORK))
		page = &not_wiped;
	owner = page;
	*owner = getpid();
	has_key = pthread_key_create(&key, end_thread) == 0;
	if (is_first_thread()) /* even if it never calls the library */
		watch_this_thread();
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/*
 * Early: otherwise a child of vfork(2) that calls first would be taken for the owner. A program
 * that refers to profil() may first call it in a signal handler, when it is too late for what takes
 * memory and locks of libc's. Before the constructors without a priority, of which gmon.c has one.
 */
__attribute__((constructor(1000))) static void prepare_early(void)
{
	int code = errno;

	pthread_once(&once, prepare_state);
	if (profil__is_referenced()) {
		profil__prepare(false);
		profil__service_reserve();
	}
	errno = code;
}
