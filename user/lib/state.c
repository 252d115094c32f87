// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/state.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/last_error.h"
#include "lib/service_thread.h"
#include "lib/session.h"
#include "lib/threads.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/*
 * Whose state it is, in a page that the kernel wipes in a forked child: there it is 0 until the
 * child has made the state its own. A child that shares the memory, of vfork(2), reads another
 * number than its own.
 */
static pid_t *owner;

static bool has_heir;	      /* a thread runs end_process() */
static sigset_t heir_signals; /* which it blocks: those that its parent did */

static __thread bool fork_entered; /* this thread has the lock because it forks */

static pthread_key_t key; /* has a destructor, for threads that end */
static bool has_key;

/* What the key holds: which thread it is. At its end, a system call that asks may be forbidden. */
static char first_thread, other_thread;

static bool is_first_thread(void)
{
	return syscall(SYS_gettid) == getpid();
}

/* Has end_thread() called when this thread ends; returns whether that need not be asked again. */
static bool watch_this_thread(void)
{
	bool first;

	if (!has_key)
		return true;
	first = is_first_thread();
	if (pthread_setspecific(key, first ? &first_thread : &other_thread))
		return false;
	if (first)
		profil__first_thread_tells(FIRST_THREAD_RUNS);
	return true;
}

/* In a new process, whose first thread is the one that forked. */
static void own_state(void)
{
	*owner = getpid();
	has_heir = false;
	profil__first_thread_tells(FIRST_THREAD_UNWATCHED);
	watch_this_thread();
}

/* --- The lock --- */

static void prepare(void);

/* A child that was made without fork handlers, by a system call: nothing that there is is its. */
static void start_anew(void)
{
	pthread_mutex_init(&lock, NULL);
	profil__sessions_forget();
	own_state();
}

bool profil__is_borrowed(void)
{
	pthread_once(&once, prepare);
	return *owner && *owner != getpid();
}

int profil__enter(struct guard *guard)
{
	sigset_t all;

	if (fork_entered)
		return profil__error(EDEADLK, "a fork handler that is older than libprofil");
	if (profil__is_borrowed())
		return profil__error(EPERM, "a child of vfork(2) cannot profile: its memory is its "
					    "parent's");
	guard->code = errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &guard->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard->cancel);
	if (!*owner)
		start_anew();
	pthread_mutex_lock(&lock);
	return 0;
}

void profil__leave(const struct guard *guard)
{
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(guard->cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &guard->signals, NULL);
	errno = guard->code;
}

bool profil__try_lock(void)
{
	return pthread_mutex_trylock(&lock) == 0;
}

void profil__unlock(void)
{
	pthread_mutex_unlock(&lock);
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
	own_state();
	profil__sessions_forked();
	profil__sessions_after_fork();
	profil__leave(&fork_guard);
}

/* --- Exit --- */

static bool used;

/*
 * With nothing on, it makes no system call: a filter of seccomp(2) may end who makes one that the
 * program itself does not need.
 */
static void fold(void)
{
	struct guard guard;

	if (!profil__sessions_any() || profil__enter(&guard))
		return;
	profil__sessions_fold();
	profil__leave(&guard);
}

void profil__fold_at_exit(void *unused)
{
	(void)unused;
	fold();
}

/*
 * Takes the place of a first thread that has ended: when the others have, too, it ends the live
 * thread, and with itself the process, as the last of the others would have done. The live thread
 * could not, for it does not have the program's descriptors, to which streams are to be flushed.
 */
static void *end_process(void *unused)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	struct guard guard;

	pthread_sigmask(SIG_SETMASK, &heir_signals, NULL);
	while (!profil__program_ended(2) && !profil__program_ended(1))
		nanosleep(&pause, NULL);
	if (profil__enter(&guard))
		return unused;
	has_heir = false;
	profil__sessions_stop();
	profil__leave(&guard);
	return unused;
}

/* At pthread_exit(3), not at exit(3). */
static void end_thread(void *which)
{
	bool first = which == &first_thread;
	struct guard guard;
	pthread_t thread;

	if (!profil__sessions_any()) { /* as in fold() */
		if (first)
			profil__first_thread_tells(FIRST_THREAD_ENDS);
		return;
	}
	if (profil__enter(&guard))
		return;
	profil__sessions_fold();
	if (first)
		profil__first_thread_tells(FIRST_THREAD_ENDS);
	if (profil__live_runs() && !has_heir && profil__first_thread_ended()) {
		heir_signals = guard.signals;
		has_heir = pthread_create(&thread, NULL, end_process, NULL) == 0;
		if (has_heir)
			pthread_detach(thread);
	}
	profil__leave(&guard);
}

/* In libc, for C++: what to call when the thread exits, before all that atexit(3) has. */
extern int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *dso);
extern void *__dso_handle;

void profil__be_there_at_exit(void)
{
	static __thread bool in_thread;
	int code = errno;

	if (profil__is_borrowed())
		return;
	if (!in_thread)
		in_thread = !__cxa_thread_atexit_impl(profil__fold_at_exit, NULL, &__dso_handle) &&
			    watch_this_thread();
	/* For handlers that are older than this, when another thread exits. */
	if (!__atomic_exchange_n(&used, true, __ATOMIC_RELAXED))
		atexit(fold);
	errno = code;
}

bool profil__was_used(void)
{
	return used;
}

__attribute__((destructor)) static void end(void)
{
	fold();
}

/* --- The begin --- */

static void prepare(void)
{
	static pid_t not_wiped;
	void *page = mmap(NULL, sizeof(*owner), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	/* Without that, a child of fork(2) without handlers is taken for one of vfork(2). */
	if (page == MAP_FAILED || madvise(page, sizeof(*owner), MADV_WIPEONFORK))
		page = &not_wiped;
	owner = page;
	*owner = getpid();
	has_key = pthread_key_create(&key, end_thread) == 0;
	if (is_first_thread()) /* whoever will call the library */
		watch_this_thread();
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* Early: a child of vfork(2) that is the first to call would take the state for its own. */
__attribute__((constructor)) static void begin(void)
{
	int code = errno;

	pthread_once(&once, prepare);
	errno = code;
}
