// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/service_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/last_error.h"
#include "lib/state.h"
#include "lib/session.h"
#include "lib/threads.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

/*
 * The buffers are at most 10 ms behind, and the thread may get the CPU a little late. The slack
 * lets it go along with a tick of the kernel, for a timer of its own costs more than all that it
 * does.
 */
#define LOOK_NS	 (13 * NS_PER_MS / 2)
#define SLACK_NS (5 * NS_PER_MS / 2)

/* So long without a tick, and the thread waits until the process runs again. */
#define QUIET_NS (40 * NS_PER_MS)

/* CPU time that the thread itself takes from a look until it waits is less. */
#define OWN_CPU_NS 50000

/* Enough for the back ends. The threads' variables of the program are on it, too. */
#define STACK_SIZE (256 * 1024)

/*
 * What wakes the thread: libc's own signal for pthread_cancel(3). It is sent to single threads
 * only; one that can be sent to the process would be taken away from the program here. libc's
 * functions refuse it, so it takes the system calls.
 */
#define WAKE_SIGNAL 32

static struct {
	pthread_t thread;
	pid_t tid;
	bool running;  /* with the lock */
	timer_t timer; /* of the process's CPU time */
	bool has_timer;
	/* Work to be done, or the end: */
	bool called;
	int (*work)(struct profil_session *);
	struct profil_session *session;
	sem_t done;
	int result;
	char error[ERROR_SIZE]; /* of the work */
} live;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

unsigned long long profil__now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

bool profil__live_runs(void)
{
	return live.running;
}

unsigned long long profil__live_cpu_ns(void)
{
	clockid_t clock;

	return live.running && pthread_getcpuclockid(live.thread, &clock) == 0 ? clock_ns(clock)
									       : 0;
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

/* --- The thread --- */

static void make_timer(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = WAKE_SIGNAL };

	event.sigev_notify_thread_id = live.tid;
	live.has_timer = timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &live.timer) == 0;
}

static void delete_timer(void)
{
	if (live.has_timer)
		timer_delete(live.timer);
}

/* Wakes the thread when the process has used so much CPU time; the kernel looks at its ticks. */
static bool wake_at_cpu_time(uint64_t cpu_ns)
{
	struct itimerspec when = { .it_value = { cpu_ns / NS_PER_S, cpu_ns % NS_PER_S } };

	return live.has_timer && timer_settime(live.timer, TIMER_ABSTIME, &when, NULL) == 0;
}

/* The kernel's set of signals. */
static const uint64_t wake_set = 1ULL << (WAKE_SIGNAL - 1);

/* Whether it was woken before the time was over. */
static bool wait_for_signal(uint64_t ns)
{
	const struct timespec timeout = { ns / NS_PER_S, ns % NS_PER_S };

	return syscall(SYS_rt_sigtimedwait, &wake_set, NULL, &timeout, sizeof(wake_set)) ==
	       WAKE_SIGNAL;
}

/* Tells who waits for it what became of the work. */
static void finish(void)
{
	snprintf(live.error, sizeof(live.error), "%s", profil__error_text());
	sem_post(&live.done);
}

/* Looks after the sessions, unless the library is in use now. When none is left, returns false. */
static bool look(struct look *seen)
{
	if (!profil__try_lock())
		return true;
	*seen = profil__sessions_look();
	if (!seen->any) {
		pthread_detach(live.thread);
		delete_timer();
		live.running = false;
	}
	profil__unlock();
	return seen->any;
}

/* Nobody is left to be counted. The next look ends the thread, and so the process. */
static void stop(void)
{
	if (profil__try_lock()) {
		profil__sessions_stop();
		profil__unlock();
	}
}

/* When there was something to be seen. */
struct pace {
	uint64_t ticks, quiet_since;
};

/*
 * Looks, and returns how long to wait then; 0: no more. Counts that change are looked at again
 * soon. Of a process that does not run there is nothing to be seen until it does; it is looked at
 * once a second all the same.
 */
static uint64_t look_in_pace(struct pace *pace)
{
	uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), now;
	struct look seen = { .soon = true, .ticks = pace->ticks };

	if (!look(&seen))
		return 0;
	now = profil__now_ns();
	if (seen.ticks != pace->ticks)
		*pace = (struct pace){ seen.ticks, now };
	if (now - pace->quiet_since <= QUIET_NS)
		return seen.soon ? LOOK_NS : NS_PER_S;
	if (profil__program_ended(1))
		stop();
	if (!seen.soon)
		return NS_PER_S;
	return wake_at_cpu_time(cpu + OWN_CPU_NS) ? NS_PER_S : LOOK_NS;
}

/* Returns false when it is to end. */
static bool do_work(void)
{
	if (!live.work)
		return false;
	profil__error_clear();
	live.result = live.work(live.session);
	finish();
	return true;
}

static void look_again_and_again(void)
{
	struct pace pace = { .quiet_since = profil__now_ns() };
	uint64_t wait;

	while ((wait = look_in_pace(&pace))) {
		if (wait_for_signal(wait))
			pace.quiet_since = profil__now_ns();
		if (__atomic_exchange_n(&live.called, false, __ATOMIC_ACQ_REL) && !do_work()) {
			delete_timer();
			return;
		}
	}
}

static void *live_main(void *unused)
{
	int err;

	(void)unused;
	prctl(PR_SET_NAME, "profil");
	prctl(PR_SET_TIMERSLACK, SLACK_NS);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &wake_set, NULL, sizeof(wake_set));
	live.tid = syscall(SYS_gettid);
	err = live.result = own_descriptors();
	if (!err)
		make_timer();
	finish();
	if (!err)
		look_again_and_again();
	return NULL;
}

/* --- Those who call it --- */

/* NULL: it is to end. */
static void call(int (*work)(struct profil_session *), struct profil_session *s)
{
	live.work = work;
	live.session = s;
	__atomic_store_n(&live.called, true, __ATOMIC_RELEASE);
	/* When no signal can be queued (RLIMIT_SIGPENDING), the thread sees it at its next look. */
	syscall(SYS_tgkill, getpid(), live.tid, WAKE_SIGNAL);
}

/* What the thread returned. */
static int wait_until_done(void)
{
	while (sem_wait(&live.done) && errno == EINTR)
		;
	return live.result ? profil__error(-live.result, "%s", live.error) : 0;
}

static int create_thread(void)
{
	pthread_attr_t attr;
	int code;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	code = pthread_create(&live.thread, &attr, live_main, NULL);
	pthread_attr_destroy(&attr);
	if (code == EINVAL) /* a program with more variables for each thread than that */
		code = pthread_create(&live.thread, NULL, live_main, NULL);
	errno = code;
	return code ? profil__system_error("cannot create a thread") : 0;
}

int profil__live_begin(void)
{
	int err;

	if (live.running)
		return 0;
	live.called = false;
	sem_init(&live.done, 0, 0);
	err = create_thread();
	if (err)
		return err;
	err = wait_until_done();
	if (err)
		pthread_join(live.thread, NULL);
	live.running = !err;
	return err;
}

static bool is_live_thread(void)
{
	return live.running && pthread_equal(pthread_self(), live.thread);
}

void profil__live_end(void)
{
	if (!live.running || is_live_thread())
		return;
	call(NULL, NULL);
	pthread_join(live.thread, NULL);
	live.running = false;
}

int profil__live_call(int (*work)(struct profil_session *), struct profil_session *s)
{
	if (is_live_thread())
		return work(s);
	call(work, s);
	return wait_until_done();
}

void profil__live_forget(void)
{
	live.running = false;
}
