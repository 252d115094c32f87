// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/live.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/process.h"
#include "lib/session.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

/* The buffers are at most 10 ms behind, and the thread may get the CPU a little late. */
#define LOOK_NS (8 * NS_PER_MS)

/* In a forked child: most of those that exec at once have done it by then. */
#define FIRST_LOOK_NS (2 * NS_PER_MS)

/* So long without a tick, and the thread sleeps until the process runs again. */
#define QUIET_NS NS_PER_S

/* CPU time that the thread itself takes from its last look until it sleeps is less. */
#define OWN_CPU_NS 50000

/* Enough for the back ends. The threads' variables of the program are on it, too. */
#define STACK_SIZE (256 * 1024)

static struct {
	pthread_t thread;
	pid_t tid;
	bool running; /* the thread is there: with the lock */
	bool ending;
	int unusable; /* why it must not be given work: a negative errno */
	char dormant; /* it sleeps so that only CPU time of the process wakes it */
	sem_t wake, done;
	int (*work)(struct profil_session *);
	struct profil_session *session;
	int result;
	char error[ERROR_SIZE]; /* of the work */
} live;

unsigned long long profil__now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

pid_t profil__live_tid(void)
{
	return live.tid;
}

/* The numbers 0 to 2 are taken, so that no library takes one of ours for a standard stream. */
static int own_descriptors(void)
{
	if (syscall(SYS_close_range, 0, ~0U, CLOSE_RANGE_UNSHARE))
		return profil__system_error("close_range(2) for a thread's own descriptors");
	for (int i = 0; i <= 2; i++)
		open("/dev/null", O_RDWR | O_CLOEXEC);
	return 0;
}

static void do_work(void)
{
	profil__error_clear();
	live.result = live.unusable ? live.unusable : live.work(live.session);
	live.work = NULL;
	snprintf(live.error, sizeof(live.error), "%s", profil__error_text());
	sem_post(&live.done);
}

/* Looks after the sessions, unless the library is in use now. The last time ends the thread. */
static bool look(struct look *seen)
{
	if (!live.unusable && profil__try_lock()) {
		*seen = profil__sessions_look();
		if (!seen->any) {
			pthread_detach(live.thread);
			live.running = false;
		}
		profil__unlock();
	}
	return seen->any;
}

/*
 * Until the process runs again: as long as it does not, there is nothing to be seen. The kernel
 * notes it at the next of its ticks that finds the process running.
 */
static bool sleep_until_it_runs(struct look *seen)
{
	uint64_t ticks = seen->ticks;
	struct timespec until;
	int waiting;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &until);
	until.tv_nsec += OWN_CPU_NS;
	if (until.tv_nsec >= (long)NS_PER_S) {
		until.tv_nsec -= NS_PER_S;
		until.tv_sec++;
	}
	if (!look(seen))
		return false;
	__atomic_store_n(&live.dormant, 1, __ATOMIC_SEQ_CST);
	if (seen->ticks == ticks && sem_getvalue(&live.wake, &waiting) == 0 && waiting == 0)
		clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &until, NULL);
	__atomic_store_n(&live.dormant, 0, __ATOMIC_SEQ_CST);
	return true;
}

/* Whether there is work to be done, or the end; false: it is time to look. */
static bool wait_for_work(uint64_t until_ns)
{
	struct timespec until = { until_ns / NS_PER_S, until_ns % NS_PER_S };

	return sem_clockwait(&live.wake, CLOCK_MONOTONIC, &until) == 0;
}

/* When the thread looks next. */
static uint64_t next_look(const struct look *seen)
{
	return profil__now_ns() + (seen->soon ? LOOK_NS : NS_PER_S);
}

static void look_again_and_again(void)
{
	uint64_t quiet_since = profil__now_ns(), ticks = 0, next = quiet_since + FIRST_LOOK_NS;
	struct look seen = { .any = true };

	for (;;) {
		if (wait_for_work(next)) {
			if (live.ending)
				return;
			do_work();
			quiet_since = profil__now_ns();
			next = quiet_since + LOOK_NS;
			continue;
		}
		if (!look(&seen))
			return;
		if (seen.ticks != ticks || seen.depends)
			quiet_since = profil__now_ns();
		ticks = seen.ticks;
		if (profil__now_ns() - quiet_since > QUIET_NS) {
			if (!sleep_until_it_runs(&seen))
				return;
			quiet_since = profil__now_ns();
		}
		next = next_look(&seen);
	}
}

static void *live_main(void *wait)
{
	prctl(PR_SET_NAME, "profil");
	live.tid = syscall(SYS_gettid);
	live.unusable = own_descriptors();
	if (wait) {
		snprintf(live.error, sizeof(live.error), "%s", profil__error_text());
		sem_post(&live.done);
	}
	look_again_and_again();
	return NULL;
}

/* The CPU time that we burn wakes a thread that waits for just that. */
static void wake(void)
{
	sem_post(&live.wake);
	while (__atomic_load_n(&live.dormant, __ATOMIC_SEQ_CST))
		;
}

static void wait_until_done(void)
{
	while (sem_wait(&live.done) && errno == EINTR)
		;
}

static int create_thread(bool wait)
{
	void *argument = wait ? &live : NULL;
	pthread_attr_t attr;
	int code;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	code = pthread_create(&live.thread, &attr, live_main, argument);
	pthread_attr_destroy(&attr);
	if (code == EINVAL) /* a program with more variables for each thread than that */
		code = pthread_create(&live.thread, NULL, live_main, argument);
	errno = code;
	return code ? profil__system_error("cannot create a thread") : 0;
}

int profil__live_begin(bool wait)
{
	int err;

	if (live.running)
		return 0;
	live.ending = false;
	sem_init(&live.wake, 0, 0);
	sem_init(&live.done, 0, 0);
	err = create_thread(wait);
	if (err)
		return err;
	live.running = true;
	if (!wait)
		return 0;
	wait_until_done();
	if (live.unusable) {
		profil__live_end();
		return profil__error(-live.unusable, "%s", live.error);
	}
	return 0;
}

static bool is_live_thread(void)
{
	return pthread_equal(pthread_self(), live.thread);
}

void profil__live_end(void)
{
	if (!live.running || is_live_thread())
		return;
	live.ending = true;
	wake();
	pthread_join(live.thread, NULL);
	live.running = false;
}

int profil__live_call(int (*work)(struct profil_session *), struct profil_session *s)
{
	if (is_live_thread())
		return work(s);
	live.work = work;
	live.session = s;
	wake();
	wait_until_done();
	return live.result ? profil__error(-live.result, "%s", live.error) : 0;
}

void profil__live_forget(void)
{
	live.running = false;
}
