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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "lib/last_error.h"
#include "util/clock.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/*
 * Counts in buffers are to be at most 10 ms old, and the thread may get the CPU a little late. The
 * timer slack lets it wake up with a tick of the kernel: a timer interrupt of its own would cost
 * more than all else that it does.
 * Bound: pace.
 */
#define LOOK_NS	 (13 * NS_PER_MS / 2)
#define SLACK_NS (5 * NS_PER_MS / 2)

/*
 * After so long without a tick, the thread sleeps until the process uses CPU time again.
 * Bound: pace.
 */
#define QUIET_NS (40 * NS_PER_MS)

/* The thread uses less CPU time than this from a look until it sleeps. Bound: pace. */
#define OWN_CPU_NS 50000

/* Enough for the back ends and the thread-local variables of usual programs. */
#define STACK_SIZE (256 * 1024)

/*
 * Wakes the thread. This is libc's own signal for pthread_cancel(3), which is only ever sent to
 * single threads; by waiting for another one, the thread could take a signal that was sent to the
 * process from the program. libc's functions refuse this signal, so system calls are used.
 */
#define WAKE_SIGNAL 32

/* A set of signals as the kernel has it. */
static const uint64_t wake_set = 1ULL << (WAKE_SIGNAL - 1);

static struct {
	pthread_t thread;
	pid_t tid;
	bool running;
	timer_t timer; /* of the process's CPU time */
	bool has_timer;
	const struct service_duty *duty;
	/* A request to the thread, and its answer: */
	bool called;
	int (*work)(struct profil_session *); /* NULL: end */
	struct profil_session *session;
	sem_t done;
	int result;
	char error[ERROR_SIZE]; /* of the work */
	bool handlers;		/* the program has had handlers for signals */
} service;

pthread_mutex_t profil__lock = PTHREAD_MUTEX_INITIALIZER;

void profil__service_set_duty(const struct service_duty *duty)
{
	service.duty = duty;
}

bool profil__service_runs(void)
{
	return service.running;
}

uint64_t profil__service_cpu_ns(void)
{
	clockid_t clock;

	if (!service.running || pthread_getcpuclockid(service.thread, &clock))
		return 0;
	return clock_ns(clock);
}

pid_t profil__service_tid(void)
{
	return service.tid;
}

/*
 * Whether a call may come in a signal handler. A handler that is removed when it is called
 * (SA_RESETHAND) may run all the same, so that the answer stays yes. By system calls: libc's
 * function takes a lock for some signals. Words of the kernel's structure: the handler comes first.
 */
bool profil__may_be_in_handler(void)
{
	unsigned long action[16];

	for (int signal = 1; signal <= 64 && !service.handlers; signal++) {
		if (signal == WAKE_SIGNAL || signal == WAKE_SIGNAL + 1) /* libc's own */
			continue;
		if (syscall(SYS_rt_sigaction, signal, NULL, action, sizeof(wake_set)) == 0)
			service.handlers = action[0] != (unsigned long)SIG_DFL &&
					   action[0] != (unsigned long)SIG_IGN;
	}
	return service.handlers;
}

/* --- The program's threads --- */

static enum first_thread first_thread;

void profil__set_first_thread(enum first_thread first)
{
	__atomic_store_n(&first_thread, first, __ATOMIC_RELAXED);
}

bool profil__first_thread_ended(void)
{
	enum first_thread first = __atomic_load_n(&first_thread, __ATOMIC_RELAXED);
	char from = 0, to;
	struct iovec local = { &to, 1 }, remote = { &from, 1 };

	/* The kernel releases the memory of a thread that ends. */
	if (first == FIRST_THREAD_UNWATCHED)
		return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0;
	return first == FIRST_THREAD_ENDS;
}

bool profil__program_ended(unsigned int own)
{
	struct stat status;

	/* The link count of the directory that has a directory for each thread. */
	if (stat("/proc/self/task", &status) == 0 && status.st_nlink > 2 &&
	    status.st_nlink - 2 != own + 1)
		return false;
	return profil__first_thread_ended();
}

/* --- The thread --- */

/* Returns whether the thread was woken before the time was over. */
static bool wait_for_signal(uint64_t ns)
{
	const struct timespec timeout = { ns / NS_PER_S, ns % NS_PER_S };

	return syscall(SYS_rt_sigtimedwait, &wake_set, NULL, &timeout, sizeof(wake_set)) ==
	       WAKE_SIGNAL;
}

static void delete_timer(void)
{
	if (service.has_timer)
		timer_delete(service.timer);
}

/* Returns the result and its message to the caller that waits. */
static void finish_call(void)
{
	snprintf(service.error, sizeof(service.error), "%s", profil__error_text());
	sem_post(&service.done);
}

/*
 * Looks after the sessions, unless another thread has the lock. Returns false if the thread is to
 * end: no session is left, nothing is kept for the next one, and no signal handler can start one.
 */
static bool look_once(struct look *seen)
{
	bool ends;

	if (pthread_mutex_trylock(&profil__lock))
		return true;
	*seen = service.duty->look();
	ends = !seen->any &&
	       (profil__program_ended(1) || (!seen->kept && !profil__may_be_in_handler()));
	if (ends) {
		service.duty->end();
		pthread_detach(service.thread);
		delete_timer();
		service.running = false;
	}
	pthread_mutex_unlock(&profil__lock);
	return !ends;
}

/* What the last look found, and since when it has been the same. */
struct pace {
	uint64_t ticks, quiet_since;
};

/*
 * Looks after the sessions once. Returns how many nanoseconds to sleep; 0: the thread is to end. As
 * long as there are ticks that go to a buffer, it looks again soon; otherwise when the process uses
 * CPU time, and once a second. If all threads of the program have ended, the sessions are stopped,
 * so that the next look ends this thread and with it the process.
 */
static uint64_t look_in_pace(struct pace *pace)
{
	uint64_t wake = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + OWN_CPU_NS, now;
	const struct itimerspec when = { .it_value = { wake / NS_PER_S, wake % NS_PER_S } };
	struct look seen = { .soon = true, .ticks = pace->ticks };

	if (!look_once(&seen))
		return 0;
	now = now_ns();
	if (seen.ticks != pace->ticks)
		*pace = (struct pace){ seen.ticks, now };
	if (now - pace->quiet_since <= QUIET_NS)
		return seen.soon ? LOOK_NS : NS_PER_S;
	if (profil__program_ended(1) && pthread_mutex_trylock(&profil__lock) == 0) {
		service.duty->stop();
		pthread_mutex_unlock(&profil__lock);
	}
	if (!seen.soon)
		return NS_PER_S;
	/* To the precision of a kernel tick. */
	if (service.has_timer && timer_settime(service.timer, TIMER_ABSTIME, &when, NULL) == 0)
		return NS_PER_S;
	return LOOK_NS;
}

static void poll_loop(void)
{
	struct pace pace = { .quiet_since = now_ns() };
	uint64_t wait;

	while ((wait = look_in_pace(&pace))) {
		if (wait_for_signal(wait))
			pace.quiet_since = now_ns();
		if (!__atomic_exchange_n(&service.called, false, __ATOMIC_ACQ_REL))
			continue;
		if (!service.work) {
			service.duty->end();
			delete_timer();
			return;
		}
		profil__error_clear();
		service.result = service.work(service.session);
		finish_call();
	}
}

/*
 * Unshares the descriptors. Blocks the wake-up signal, and tries to wait for it: a seccomp(2)
 * filter may forbid either. Returns 0 or a negative errno with profil__error() set.
 */
static int set_up_thread(void)
{
	if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, &wake_set, NULL, sizeof(wake_set)))
		return profil__system_error("rt_sigprocmask(2) for a signal of the thread's own");
	if (!wait_for_signal(0) && errno != EAGAIN && errno != EINTR)
		return profil__system_error("rt_sigtimedwait(2)");
	if (syscall(SYS_close_range, 0, ~0U, CLOSE_RANGE_UNSHARE))
		return profil__system_error("close_range(2) for a thread's own descriptors");
	/* Lest one of the library's is used as a standard stream. */
	for (int i = 0; i <= 2; i++)
		open("/dev/null", O_RDWR | O_CLOEXEC);
	return 0;
}

static void *service_main(void *unused)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = WAKE_SIGNAL };
	int err;

	(void)unused;
	prctl(PR_SET_NAME, "profil");
	prctl(PR_SET_TIMERSLACK, SLACK_NS);
	service.tid = syscall(SYS_gettid);
	err = service.result = set_up_thread();
	event.sigev_notify_thread_id = service.tid;
	if (!err)
		service.has_timer =
			timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &service.timer) == 0;
	finish_call();
	if (!err)
		poll_loop();
	return NULL;
}

/* --- In the program's threads --- */

/* Requests work; NULL: the thread's end. */
static void request_work(int (*work)(struct profil_session *), struct profil_session *s)
{
	service.work = work;
	service.session = s;
	__atomic_store_n(&service.called, true, __ATOMIC_RELEASE);
	/*
	 * If no signal can be queued (RLIMIT_SIGPENDING), the thread sees the request at its next
	 * look.
	 */
	syscall(SYS_tgkill, getpid(), service.tid, WAKE_SIGNAL);
}

/* Returns the thread's result. */
static int wait_until_done(void)
{
	while (sem_wait(&service.done) && errno == EINTR)
		;
	return service.result ? profil__error(-service.result, "%s", service.error) : 0;
}

/* Returns 0 or an errno. */
static int create_thread(pthread_t *thread, void *(*function)(void *), void *argument)
{
	pthread_attr_t attr;
	int code;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	code = pthread_create(thread, &attr, function, argument);
	pthread_attr_destroy(&attr);
	if (code == EINVAL) /* the program has more thread-local variables than that */
		code = pthread_create(thread, NULL, function, argument);
	return code;
}

/*
 * pthread_join(3) returns when the thread has left the process's memory, a moment before it is gone
 * for the kernel, too. Until then unshare(2) and setns(2) refuse what they refuse a process with
 * threads. All that this calls is called without it, too: a filter of seccomp(2) that comes while
 * profil is on may end the program for anything else. Not for ever, as a debugger may keep it.
 */
static void join_thread(pthread_t thread, const pid_t *tid)
{
	sem_t never;

	pthread_join(thread, NULL);
	sem_init(&never, 0, 0);
	for (int i = 0; i < 10000 && syscall(SYS_tgkill, getpid(), *tid, 0) == 0; i++) {
		struct timespec soon;

		clock_gettime(CLOCK_MONOTONIC, &soon);
		soon.tv_nsec += 10000;
		if (soon.tv_nsec >= (long)NS_PER_S) {
			soon.tv_nsec -= NS_PER_S;
			soon.tv_sec++;
		}
		sem_clockwait(&never, CLOCK_MONOTONIC, &soon);
	}
}

static void *note_tid(void *tid)
{
	*(pid_t *)tid = syscall(SYS_gettid);
	return NULL;
}

/*
 * pthread_create(3) calls malloc(3), which waits forever for a lock that the code has which a
 * signal handler interrupted. But it does not if it can take the stack and the thread-local memory
 * of a thread that has ended: glibc keeps these. Programs rarely have threads with so small a
 * stack, and would otherwise have to get this one first.
 */
void profil__service_reserve(void)
{
	sigset_t all, before;
	pthread_t thread;
	pid_t tid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (create_thread(&thread, note_tid, &tid) == 0)
		join_thread(thread, &tid);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int profil__service_start(void)
{
	int err;

	if (service.running)
		return 0;
	service.called = false;
	sem_init(&service.done, 0, 0);
	errno = create_thread(&service.thread, service_main, NULL);
	if (errno)
		return profil__system_error("cannot create a thread");
	err = wait_until_done();
	if (err)
		join_thread(service.thread, &service.tid);
	service.running = !err;
	return err;
}

static bool is_service_thread(void)
{
	return service.running && pthread_equal(pthread_self(), service.thread);
}

void profil__service_end(void)
{
	if (!service.running || is_service_thread())
		return;
	request_work(NULL, NULL);
	join_thread(service.thread, &service.tid);
	service.running = false;
}

int profil__service_call(int (*work)(struct profil_session *), struct profil_session *s)
{
	if (is_service_thread())
		return work(s);
	request_work(work, s);
	return wait_until_done();
}

void profil__service_forget(void)
{
	service.running = false;
}
