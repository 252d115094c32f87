// SPDX-License-Identifier: GPL-2.0-only
/*
 * Signals, timers and blocking system calls, which must all remain the program's: profil_row.h.
 */
#include "profil_row.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>

static _Atomic unsigned int signals;

static void count_signal(int signal)
{
	(void)signal;
	signals++;
}

static struct sigaction own;

/* `own` is what it reads back as. */
static void set_handler(void (*handler)(int signal))
{
	struct sigaction action = { .sa_handler = handler };

	need(sigaction(SIGPROF, &action, NULL) == 0 && sigaction(SIGPROF, NULL, &own) == 0,
	     "sigaction");
}

static void expect_own(const char *when)
{
	struct sigaction action;

	sigaction(SIGPROF, NULL, &action);
	expect(action.sa_handler == own.sa_handler && action.sa_flags == own.sa_flags,
	       "%s: SIGPROF has another handler", when);
}

static void on_and_off(void (*handler)(int signal))
{
	set_handler(handler);
	expect(profil_hot(cells) == 0, "on: %m");
	expect_own("on");
	burn(some());
	expect_own("while on");
	profil_off();
	expect_own("off");
	expect_about("counted", sum(), some());
}

static void keeps_handler(void)
{
	on_and_off(count_signal);
	expect(signals == 0, "it was called %u times", signals);
}

static void keeps_default(void)
{
	on_and_off(SIG_DFL);
}

static void keeps_ignored(void)
{
	on_and_off(SIG_IGN);
}

static void keeps_mask(void)
{
	sigset_t mask, now;

	sigemptyset(&mask);
	sigaddset(&mask, SIGPROF);
	sigaddset(&mask, SIGUSR1);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	profil_off();
	sigprocmask(SIG_SETMASK, NULL, &now);
	for (int i = 1; i < NSIG; i++)
		expect(sigismember(&now, i) == sigismember(&mask, i), "mask of signal %d", i);
	sigpending(&now);
	for (int i = 1; i < NSIG; i++)
		expect(sigismember(&now, i) != 1, "signal %d is pending", i);
	expect_about("with SIGPROF blocked", sum(), some());
}

/* Any signal whatever, while it runs, forks and ends threads. */
static void gets_none(void)
{
	struct sigaction action = { .sa_handler = count_signal };

	for (int i = 1; i < NSIG; i++)
		if (i != SIGKILL && i != SIGSTOP && i != SIGCHLD)
			sigaction(i, &action, NULL);
	for (int i = 0; i < 3; i++) {
		expect(profil_hot(cells) == 0, "on: %m");
		burn(some());
		profil_off();
	}
	expect(signals == 0, "%u signals", signals);
}

/* A signal to the process is for the program's threads: no other may take it. */
static void takes_none(void)
{
	sigset_t mask;
	int got;
	const struct timespec second = { .tv_sec = 1 };

	expect(profil_hot(cells) == 0, "on: %m");
	set_handler(count_signal);
	sigfillset(&mask);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	kill(getpid(), SIGPROF);
	burn(some());
	expect(signals == 0, "another thread got the signal");
	got = sigtimedwait(&mask, NULL, &second);
	expect(got == SIGPROF, "sigtimedwait: %d", got);
	profil_off();
}

#define REQUESTS 10

/* Takes what the process was sent: a value with each, in order, or one without. */
static void expect_requests(int signal, const sigset_t *mask, int count)
{
	const struct timespec second = { .tv_sec = 1 };
	siginfo_t got;

	for (int i = 0; i < count; i++) {
		int number = sigtimedwait(mask, &got, &second);

		expect(number == signal, "signal %d: got %d", signal, number);
		expect(count == 1 || got.si_value.sival_int == i, "signal %d: %d instead of %d",
		       signal, got.si_value.sival_int, i);
		if (number != signal)
			return;
	}
}

/* All that the program sends itself comes to it. */
static void takes_requests(void)
{
	sigset_t mask;

	sigfillset(&mask);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	for (int i = 1; i <= SIGRTMAX; i++) {
		int count = i >= SIGRTMIN ? REQUESTS : 1;

		if (sigismember(&mask, i) != 1 || i == SIGKILL || i == SIGSTOP)
			continue;
		for (int j = 0; j < count; j++) {
			need((count == 1 ? kill(getpid(), i)
					 : sigqueue(getpid(), i, (union sigval){ j })) == 0,
			     "kill");
		}
		sleep_ms(10); /* another thread that waits for it would take it meanwhile */
		expect_requests(i, &mask, count);
	}
	profil_off();
}

/* With RLIMIT_SIGPENDING no signal that has data can be sent. */
static void none_can_be_queued(void)
{
	need(setrlimit(RLIMIT_SIGPENDING, &(struct rlimit){ 0, 0 }) == 0, "setrlimit");
	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	expect(profil_off() == 0, "off: %m");
	expect_about("counted", sum(), some());
}

/* It does not end when it goes wrong. */
static void no_queue(void)
{
	pid_t child = fork();

	if (child == 0) {
		none_can_be_queued();
		exit(wrong);
	}
	expect_well(child, "child");
}

static void own_timer(void)
{
	struct itimerval timer = { { 0, 20000 }, { 0, 20000 } }, now;
	double most, burnt;
	uint64_t begin;

	set_handler(count_signal);
	begin = clock_ns(CLOCK_MONOTONIC);
	setitimer(ITIMER_PROF, &timer, NULL);
	expect(profil_hot(cells) == 0, "on: %m");
	burnt = burn(ticks_in(200e6));
	/*
	 * It goes by what the kernel accounts at the scheduler's ticks, all to whoever runs then:
	 * on a busy machine that may be little.
	 */
	for (int i = 0; i < 100 && !signals; i++)
		burnt += burn(ticks_in(200e6));
	profil_off();
	most = (clock_ns(CLOCK_MONOTONIC) - begin) / 20e6;
	expect_own("off");
	expect(signals >= 1 && signals <= most + 2, "its timer fired %u times in %.1f intervals",
	       signals, most);
	getitimer(ITIMER_PROF, &now);
	expect(now.it_interval.tv_usec == 20000, "its interval became %ld us",
	       (long)now.it_interval.tv_usec);
	setitimer(ITIMER_PROF, &(struct itimerval){ 0 }, NULL);
	expect_about("beside it", sum(), burnt);
}

static void no_timer(void)
{
	static const char *const names[] = { "ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF" };
	struct itimerval now;

	expect(profil_hot(cells) == 0, "on: %m");
	for (int i = 0; i < 3; i++) {
		getitimer(i, &now);
		expect(!now.it_interval.tv_sec && !now.it_interval.tv_usec &&
			       !now.it_value.tv_sec && !now.it_value.tv_usec,
		       "%s runs", names[i]);
	}
	profil_off();
}

/* --- Calls that wait --- */

static void *burn_on(void *unused)
{
	while (go_on)
		burn(1);
	return unused;
}

static int ends[2];

static void *write_late(void *unused)
{
	sleep_ms(60);
	need(write(ends[1], "", 1) == 1, "write");
	return unused;
}

static long wait_poll(void)
{
	struct pollfd fd = { .fd = ends[0], .events = POLLIN };

	return poll(&fd, 1, 60);
}

static long wait_nanosleep(void)
{
	struct timespec interval = { .tv_nsec = 60000000 };

	return nanosleep(&interval, NULL);
}

static long wait_select(void)
{
	struct timeval interval = { .tv_usec = 60000 };

	return select(0, NULL, NULL, NULL, &interval);
}

static long wait_epoll(void)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;
	long got = epoll_wait(fd, &event, 1, 60);
	int error = errno;

	close(fd);
	errno = error;
	return got;
}

static long wait_read(void)
{
	pthread_t thread;
	char byte;
	long got;

	need(pthread_create(&thread, NULL, write_late, NULL) == 0, "pthread_create");
	got = read(ends[0], &byte, 1);
	pthread_join(thread, NULL);
	return got;
}

/* Each of them with a thread beside it that is ticked. */
static void waits(void)
{
	static const struct {
		const char *name;
		long (*run)(void);
		long expected;
	} calls[] = {
		{ "poll", wait_poll, 0 },     { "nanosleep", wait_nanosleep, 0 },
		{ "select", wait_select, 0 }, { "epoll_wait", wait_epoll, 0 },
		{ "read", wait_read, 1 },
	};
	pthread_t thread;

	need(pipe(ends) == 0, "pipe");
	expect(profil_hot(cells) == 0, "on: %m");
	need(pthread_create(&thread, NULL, burn_on, NULL) == 0, "pthread_create");
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		long got = calls[i].run();

		expect(got == calls[i].expected, "%s: %ld, %m", calls[i].name, got);
	}
	for (int i = 0; i < 100 && !sum(); i++) /* the machine may be busy */
		wait_nanosleep();
	go_on = false;
	pthread_join(thread, NULL);
	profil_off();
	expect(sum() > 0, "no tick meanwhile");
}

/* For strace: what there is to see of signals in a program with threads and children. */
static void much(void)
{
	pthread_t thread;
	pid_t child;

	need(pthread_create(&thread, NULL, burn_on, NULL) == 0, "pthread_create");
	for (int i = 0; i < 3; i++) {
		expect(profil_hot(cells) == 0, "on: %m");
		burn(some());
		child = fork();
		burn(some());
		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
		sleep_ms(20);
		profil_off();
	}
	go_on = false;
	pthread_join(thread, NULL);
}

/* --- profil() in a handler --- */

/* forbid_malloc.c; NULL: not preloaded. */
extern void forbid_malloc(int whose) __attribute__((weak));

static void turn_in_handler(int signal)
{
	const char *backend = getenv("PROFIL_BACKEND");
	struct prof region = { cells, sizeof(cells), (size_t)__start_hot, 0x10000 };
	bool sprofil_too = signal == SIGUSR2;
	struct timeval period;

	/*
	 * The module of "bpf" has memory of its own, in a thread of its own. SIGALRM interrupts a
	 * program whose threads call malloc() all the time.
	 */
	if (forbid_malloc)
		forbid_malloc(signal == SIGALRM || (backend && strcmp(backend, "bpf") == 0) ? 1
											    : 2);
	if (signals++ % 2)
		profil_off();
	else if (sprofil_too)
		expect(sprofil(&region, 1, &period, PROF_USHORT) == 0, "sprofil: %m");
	else
		expect(profil_hot(cells) == 0, "on: %m");
	if (forbid_malloc)
		forbid_malloc(0);
}

/* The first call of the process, too. */
static void on_and_off_in_handler(void)
{
	signal(SIGUSR1, turn_in_handler);
	for (int i = 0; i < 3; i++) {
		raise(SIGUSR1);
		burn(some());
		raise(SIGUSR1);
	}
	expect_about("counted", sum(), 3 * some());
}

static void sprofil_in_handler(void)
{
	signal(SIGUSR2, turn_in_handler);
	raise(SIGUSR2);
	burn(some());
	raise(SIGUSR2);
	expect_about("counted", sum(), some());
}

/* A child that is on from the beginning, or not, turns itself off and on. */
static void in_handler_of_child(void)
{
	signal(SIGUSR1, turn_in_handler);
	for (int i = 0; i < 2; i++) {
		pid_t child;

		raise(SIGUSR1);
		child = fork();
		if (child == 0) {
			raise(SIGUSR1);
			raise(SIGUSR1);
			_exit(wrong);
		}
		expect_well(child, i ? "child that is off" : "child that is on");
	}
}

static void *allocate(void *unused)
{
	void *blocks[64] = { 0 };

	for (unsigned int r = 1; go_on; r = r * 1664525 + 1013904223) {
		free(blocks[r >> 26]);
		blocks[r >> 26] = malloc(r >> 20);
	}
	for (size_t i = 0; i < 64; i++)
		free(blocks[i]);
	return unused;
}

/* Wherever malloc() is interrupted, in this thread and while another calls it, too. */
static void interrupts_malloc(void)
{
	const struct itimerval often = { { .tv_usec = 3000 }, { .tv_usec = 3000 } };
	void *blocks[64] = { 0 };
	pthread_t thread;
	sigset_t alarm;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	signal(SIGALRM, turn_in_handler);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	need(pthread_create(&thread, NULL, allocate, NULL) == 0, "pthread_create");
	pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
	need(setitimer(ITIMER_REAL, &often, NULL) == 0, "setitimer");
	for (unsigned int r = 1; signals < 100; r = r * 1664525 + 1013904223) {
		free(blocks[r >> 26]);
		blocks[r >> 26] = malloc(r >> 20);
	}
	need(setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL) == 0, "setitimer");
	go_on = false;
	pthread_join(thread, NULL);
}

/* --- A program whose own malloc() serves one thread --- */

/* The library's thread looks once a second. */
static void thread_allocates_nothing(void)
{
	expect(profil_hot(cells) == 0, "on: %m");
	if (forbid_malloc)
		forbid_malloc(2);
	for (int i = 0; i < 25; i++) {
		burn(some() / 4);
		sleep_ms(100);
	}
	if (forbid_malloc)
		forbid_malloc(0);
	profil_off();
}

static const struct row rows[] = {
	{ "kernel", "SIGPROF's handler stays", keeps_handler },
	{ "kernel", "SIGPROF's default stays", keeps_default },
	{ "kernel", "SIGPROF stays ignored", keeps_ignored },
	{ "kernel", "the mask stays", keeps_mask },
	{ "kernel", "the program gets no signal", gets_none },
	{ "kernel", "no other thread takes the program's signals", takes_none },
	{ "kernel", "the program takes all signals that it sends itself", takes_requests },
	{ "any", "no signal can be queued", no_queue },
	{ "kernel", "ITIMER_PROF is the program's", own_timer },
	{ "kernel", "no timer is set", no_timer },
	{ "any", "no call that waits is interrupted", waits },
	{ "kernel", "threads, children and pauses", much },
	{ "any", "profil: on and off in a handler, the first call of all", on_and_off_in_handler },
	{ "kernel", "sprofil: on and off in a handler", sprofil_in_handler },
	{ "kernel", "off and on in a handler of a child", in_handler_of_child },
	{ "any", "on and off in a handler that interrupts malloc", interrupts_malloc },
	{ "any", "while the program runs, the library's thread calls no malloc",
	  thread_allocates_nothing },
};

int main(int argc, char **argv)
{
	return run_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
