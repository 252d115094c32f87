// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads, the ends of threads and processes, concurrent calls, and who may make them, with
 * /dev/profil: kmod_device.h.
 */
#include "kmod_device.h"

#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>

static void *burn_on(void *unused)
{
	while (go_on)
		spin_hot(1000);
	return unused;
}

static void *burn_forever(void *unused)
{
	for (;;)
		spin_hot(1000);
	return unused;
}

static void stop_threads(pthread_t *threads, int count)
{
	go_on = false;
	join_threads(threads, count);
	go_on = true;
}

/* --- Threads --- */

/* Those that there are, and those to come. */
static void many_threads(void)
{
	pthread_t threads[64];

	start_threads(threads, 32, burn_on);
	turn_on(cells32);
	start_threads(threads + 32, 32, burn_on);
	for (int i = 0; i < rounds(20); i++) {
		burn_counted(1);
		expect_exact("with 64 threads", cells32, 0);
	}
	stop_threads(threads, 64);
	expect_exact("without them", cells32, 0);
}

static void *burn_little(void *unused)
{
	spin_hot(10000);
	return unused;
}

static void threads_come_and_go(void)
{
	pthread_t threads[8];

	turn_on(cells32);
	for (int i = 0; i < rounds(100); i++) {
		start_threads(threads, 8, burn_little);
		join_threads(threads, 8);
		expect_exact("when eight ended", cells32, 0);
	}
	expect(is_on(), "off");
	burn_counted(1);
}

static volatile uint32_t *report;

static void *go_on_alone(void *unused)
{
	for (int i = 0; i < 10; i++) {
		burn_counted(1);
		expect_exact("without the first thread", cells32, 0);
	}
	report[0] = 1 + wrong;
	return unused;
}

static void end_first_thread(void)
{
	pthread_t thread;

	turn_on(cells32);
	start_threads(&thread, 1, go_on_alone);
	burn(2);
	pthread_exit(NULL);
}

static void first_thread_ends(void)
{
	report = shared_memory(PAGE);
	expect_in_child(end_first_thread, "child");
	expect(report[0] == 1, "the other thread did not end well: %u", report[0]);
}

static void *turn_off_here(void *unused)
{
	expect(turn_off() == 0, "OFF: %m");
	return unused;
}

static void *turn_on_here(void *unused)
{
	turn_on(cells32);
	return unused;
}

/* The one that set it on has ended when another turns it off. */
static void other_threads_call(void)
{
	pthread_t thread;

	start_threads(&thread, 1, turn_on_here);
	join_threads(&thread, 1);
	burn_counted(3);
	expect_exact("set by a thread", cells32, 0);
	start_threads(&thread, 1, turn_off_here);
	join_threads(&thread, 1);
	expect(!is_on(), "on");
}

/* --- Several calls at once --- */

#define CALLERS 4

static volatile uint32_t their_cells[CALLERS][16];

static void *set_and_off(void *unused)
{
	static _Atomic int next;
	volatile uint32_t *cell = their_cells[next++ % CALLERS];

	for (int i = 0; i < rounds(200); i++) {
		expect(set_cell(cell) == 0, "SET: %m");
		spin_hot(1000);
		if (i % 5 == 0)
			expect(turn_off() == 0, "OFF: %m");
		query();
	}
	return unused;
}

static void several_set(void)
{
	pthread_t threads[CALLERS];

	start_threads(threads, CALLERS, set_and_off);
	join_threads(threads, CALLERS);
	expect_alive();
}

static void *query_on(void *unused)
{
	while (go_on)
		query();
	return unused;
}

/* Once it was on, none of the threads sees it off. */
static void *see_it_on(void *unused)
{
	while (go_on)
		if (!expect(is_on(), "off while another buffer is set"))
			break;
	return unused;
}

static void replaced_at_once(void)
{
	pthread_t threads[3];

	turn_on(cells32);
	start_threads(threads, 3, see_it_on);
	for (int i = 0; i < rounds(300); i++) {
		turn_on(cells32 + i % 4);
		spin_hot(1000);
	}
	stop_threads(threads, 3);
}

static void *map_again(void *place)
{
	while (go_on)
		need(mmap(place, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == place,
		     "mmap");
	return NULL;
}

static void mapped_while_set(void)
{
	volatile uint32_t *cell = make_memory(PAGE);
	double end = seconds(CLOCK_MONOTONIC) + 2;
	pthread_t threads[2];

	need(pthread_create(&threads[0], NULL, map_again, (void *)cell) == 0, "pthread_create");
	start_threads(threads + 1, 1, query_on);
	for (int i = 0; i < rounds(1000) && seconds(CLOCK_MONOTONIC) < end; i++) {
		expect(set_cell(cell) == 0, "SET: %m");
		if (i % 3 == 0)
			turn_off();
	}
	stop_threads(threads, 2);
	expect_alive();
}

/*
 * While threads tick, the buffer is replaced by guarded memory, which was made before: whatever is
 * written there was written too late.
 */
static void replaced_under_ticks(void)
{
	int file = memfd_create("guarded", MFD_CLOEXEC);
	unsigned char *guarded, *buffer = make_memory(PAGE);
	double end = seconds(CLOCK_MONOTONIC) + 2;
	pthread_t threads[3];

	need(file >= 0 && ftruncate(file, PAGE) == 0, "memfd_create");
	guarded = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	need(guarded != MAP_FAILED, "mmap");
	memset(guarded, GUARD, PAGE);
	setenv("PROFIL_HZ", "10000", 1);
	start_threads(threads, 3, burn_on);
	for (int i = 0; i < rounds(200) && seconds(CLOCK_MONOTONIC) < end; i++) {
		need(mmap(buffer, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == buffer,
		     "mmap");
		turn_on((uint32_t *)buffer);
		burn_counted(2);
		need(mmap(buffer, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) ==
			     buffer,
		     "mmap");
		spin_hot(20000);
		if (!expect_guarded("what replaced the buffer", guarded, PAGE))
			break;
	}
	stop_threads(threads, 3);
	expect_alive();
}

/* Signals come all the time: no call fails or waits because of them. */
static void ignore(int signal)
{
	(void)signal;
}

static void *send_signals(void *to)
{
	while (go_on) {
		pthread_kill(*(pthread_t *)to, SIGUSR1);
		sched_yield();
	}
	return NULL;
}

static void under_signals(void)
{
	pthread_t thread, self = pthread_self();

	signal(SIGUSR1, ignore);
	need(pthread_create(&thread, NULL, send_signals, &self) == 0, "pthread_create");
	for (int i = 0; i < rounds(200); i++) {
		expect(set_cell(cells32) == 0, "SET: %m");
		expect(turn_off() == 0, "OFF: %m");
		query();
	}
	stop_threads(&thread, 1);
	expect_alive();
}

/* --- Pages that come late --- */

static int open_faults(int flags)
{
	struct uffdio_api api = { .api = UFFD_API };
	int faults = syscall(SYS_userfaultfd, O_CLOEXEC | flags);

	if (faults >= 0)
		need(ioctl(faults, UFFDIO_API, &api) == 0, "UFFDIO_API");
	return faults;
}

/* A page that somebody must bring when it is touched. */
static void *make_missing(int faults)
{
	void *memory = make_memory(PAGE);
	struct uffdio_register missing = {
		.range = { .start = address(memory), .len = PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	need(ioctl(faults, UFFDIO_REGISTER, &missing) == 0, "UFFDIO_REGISTER");
	return memory;
}

/* Another process brings what is missing: threads of this one wait for it as soon as they tick. */
static pid_t bring_late(int faults, void *memory)
{
	struct uffdio_zeropage zero = { .range = { .start = address(memory), .len = PAGE } };
	struct pollfd event = { .fd = faults, .events = POLLIN };
	pid_t child = fork();

	if (child)
		return child;
	expect(poll(&event, 1, 5000) == 1, "no fault in 5 s");
	sleep_ms(20);
	expect(ioctl(faults, UFFDIO_ZEROPAGE, &zero) == 0, "UFFDIO_ZEROPAGE: %m");
	_exit(wrong);
}

/* What came meanwhile is counted, too. */
static void page_comes_late(void)
{
	int faults = open_faults(0);
	volatile uint32_t *cell;
	pthread_t threads[3];
	pid_t child;

	need(faults >= 0, "userfaultfd");
	cell = make_missing(faults);
	child = bring_late(faults, (void *)cell);
	start_threads(threads, 3, burn_on);
	turn_on(cell);
	burn_counted(20);
	expect_exact("in a page that came late", cell, 0);
	expect(query().lost == 0, "%llu were lost", query().lost);
	expect_well(child, "child");
	stop_threads(threads, 3);
}

static void wait_for_page(void)
{
	volatile uint32_t *cell = make_missing(open_faults(0));
	pthread_t thread;

	start_threads(&thread, 1, burn_forever);
	report[0] = 1;
	turn_on(cell);
	burn_forever(NULL);
}

static void killed_waiting_for_page(void)
{
	pid_t child;

	report = shared_memory(PAGE);
	for (int i = 0; i < rounds(10); i++) {
		report[0] = 0;
		child = fork();
		if (child == 0)
			wait_for_page();
		while (!report[0])
			sleep_ms(1);
		sleep_ms(10);
		kill(child, SIGKILL);
		expect(WIFSIGNALED(wait_for_child(child, "child")), "not killed");
	}
	expect_alive();
}

static int burn_in_memory(void *unused)
{
	burn_forever(unused);
	return 0;
}

/*
 * Kills the child when it waits for the page, which comes afterwards; or before, if it is the
 * parent that waits, and there is no child yet.
 */
static pid_t kill_and_bring(int faults, void *memory, volatile pid_t *child)
{
	struct uffdio_zeropage zero = { .range = { .start = address(memory), .len = PAGE } };
	struct pollfd event = { .fd = faults, .events = POLLIN };
	pid_t killer = fork();
	bool early;

	if (killer)
		return killer;
	expect(poll(&event, 1, 5000) == 1, "no fault in 5 s");
	sleep_ms(20);
	early = *child == 0;
	if (early)
		expect(ioctl(faults, UFFDIO_ZEROPAGE, &zero) == 0, "UFFDIO_ZEROPAGE: %m");
	while (*child == 0)
		sleep_ms(1);
	kill(*child, SIGKILL);
	sleep_ms(20);
	if (!early)
		expect(ioctl(faults, UFFDIO_ZEROPAGE, &zero) == 0, "UFFDIO_ZEROPAGE: %m");
	_exit(wrong);
}

/* The parent, whose memory it was, goes on. */
static void sharer_killed_waiting(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	int faults = open_faults(0);
	volatile pid_t *child = shared_memory(PAGE);
	volatile uint32_t *cell;
	pid_t killer;

	need(faults >= 0, "userfaultfd");
	setenv("PROFIL_HZ", "100", 1); /* so that it is the child, mostly, that ticks first */
	cell = make_missing(faults);
	killer = kill_and_bring(faults, (void *)cell, child);
	turn_on(cell);
	*child = clone(burn_in_memory, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	expect(WIFSIGNALED(wait_for_child(*child, "child")), "not killed");
	expect_well(killer, "killer");
	expect(is_on(), "off, as a child that shared the memory was killed");
	burn_counted(2);
	expect_exact("after that", cell, 0);
}

/* The kernel hides faults from processes that may not see them: then it cannot be written. */
static void page_never_comes(void)
{
	int faults = open_faults(UFFD_USER_MODE_ONLY);
	volatile uint32_t *cell;

	need(faults >= 0, "userfaultfd");
	cell = make_missing(faults);
	turn_on(cell);
	burn_to_off();
	expect_alive();
}

/* --- The end of processes --- */

static void run_busy(int threads)
{
	pthread_t thread;

	turn_on(cells32);
	for (int i = 0; i < threads; i++)
		start_threads(&thread, 1, burn_forever);
	burn_counted(1);
	report[0] = 1;
}

static void end_busy(int end_signal)
{
	pid_t child;
	int status;

	report = shared_memory(PAGE);
	for (int i = 0; i < rounds(40); i++) {
		report[0] = 0;
		child = fork();
		if (child == 0) {
			run_busy(i * 3 % 8);
			if (end_signal == 0)
				_exit(0);
			burn_forever(NULL);
		}
		while (!report[0])
			sleep_ms(1);
		kill(child, end_signal);
		status = wait_for_child(child, "child");
		expect(end_signal ? WIFSIGNALED(status) && WTERMSIG(status) == end_signal
				  : status == 0,
		       "status 0x%x", status);
	}
	expect_alive();
}

static void killed(void)
{
	end_busy(SIGKILL);
}

static void crashed(void)
{
	end_busy(SIGSEGV);
}

static void exits_with_threads(void)
{
	end_busy(0);
}

static void stopped(void)
{
	pid_t child;

	report = shared_memory(PAGE);
	child = fork();
	if (child == 0) {
		run_busy(3);
		burn_forever(NULL);
	}
	while (!report[0])
		sleep_ms(1);
	for (int i = 0; i < 20; i++) {
		kill(child, SIGSTOP);
		need(waitpid(child, NULL, WUNTRACED) == child, "waitpid");
		kill(child, SIGCONT);
		sleep_ms(1);
	}
	kill(child, SIGKILL);
	wait_for_child(child, "child");
}

/* At once, each with the device open, and none in another's way. */
static void many_processes(void)
{
	unsigned int processes = rounds(1000);
	_Atomic unsigned int *ready = shared_memory(PAGE);
	int gate[2], status;
	unsigned int ended = 0;
	pid_t child;
	char byte;

	need(pipe(gate) == 0, "pipe");
	for (unsigned int i = 0; i < processes; i++) {
		child = fork();
		need(child >= 0, "fork");
		if (child == 0) {
			open_device();
			close(gate[1]);
			turn_on(cells32);
			ready[0]++;
			need(read(gate[0], &byte, 1) == 0, "read");
			burn_counted(2);
			expect_exact("one of many", cells32, 0);
			_exit(wrong);
		}
	}
	while (ready[0] < processes && waitpid(-1, &status, WNOHANG) == 0)
		sleep_ms(1);
	expect(ready[0] == processes, "only %u processes are on", ready[0]);
	close(gate[1]);
	while (wait(&status) > 0)
		ended += status == 0;
	expect(ended == processes, "only %u ended well", ended);
}

/* --- The descriptor --- */

static void closed(void)
{
	turn_on(cells32);
	close(device());
	need(open_device() == device(), "the same descriptor");
	expect(is_on(), "off as it was closed");
	burn_counted(2);
	expect_exact("closed and opened", cells32, 0);
}

/* It reports about the caller, not about the process that opened it. */
static void passed_on(void)
{
	pid_t child;

	device();
	child = fork();
	if (child == 0) {
		expect(!is_on(), "on in a child that did not set it");
		turn_on(cells32);
		burn_counted(2);
		_exit(wrong);
	}
	expect_well(child, "child");
	expect(!is_on(), "on in the parent");
	turn_on(cells32);
	child = fork();
	if (child == 0) {
		turn_off();
		_exit(wrong);
	}
	expect_well(child, "child");
	expect(is_on(), "off in the parent");
}

/* --- Who it is --- */

static void goes_on_as(const char *who)
{
	uint32_t begin;

	expect(is_on(), "%s: off", who);
	begin = not_counted(cells32);
	burn_counted(3);
	expect_exact(who, cells32, begin);
	expect_alive();
}

static void other_user(void)
{
	turn_on(cells32);
	become_nobody();
	goes_on_as("uid nobody");
}

static void write_file(const char *name, const char *text)
{
	int file = open(name, O_WRONLY | O_CLOEXEC);

	need(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text), name);
	close(file);
}

static void in_namespaces(void)
{
	pid_t child;

	turn_on(cells32);
	need(unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) == 0, "unshare");
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/uid_map", "0 0 1");
	child = fork();
	if (child == 0) {
		expect(getpid() == 1, "PID %d", getpid());
		goes_on_as("the first of a namespace");
		_exit(wrong);
	}
	expect_well(child, "child");
	goes_on_as("in a user namespace");
}

/* A child of that user, which is on, or is refused, until it is killed. */
static pid_t start_one(uid_t uid, bool refused)
{
	volatile int *state = shared_memory(PAGE);
	pid_t child = fork();

	need(child >= 0, "fork");
	if (child == 0) {
		static volatile uint32_t cell;

		need(setuid(uid) == 0, "setuid");
		*state = set_cell(&cell) == 0 ? 1 : errno;
		for (;;)
			pause();
	}
	while (!*state)
		sleep_ms(1);
	expect(*state == (refused ? EDQUOT : 1), "user %u: state %d", uid, *state);
	return child;
}

static void end_one(pid_t child)
{
	kill(child, SIGKILL);
	wait_for_child(child, "child");
}

/* Each user has a number of processes, and what others have is no matter. */
static void processes_of_user(void)
{
	static const char parameter[] = "/sys/module/profil/parameters/max_processes";
	pid_t children[5];
	int tries = 0;

	write_file(parameter, "2");
	turn_on(cells32); /* root's, whose children are on by this */
	turn_on(cells32);
	expect(turn_off() == 0, "OFF: %m");
	children[0] = start_one(NOBODY, false);
	children[1] = start_one(NOBODY, false);
	children[2] = start_one(NOBODY, true);
	children[3] = start_one(NOBODY - 1, false);
	end_one(children[0]);
	/* It is given back a moment after the end. */
	do {
		volatile int *state = shared_memory(PAGE);

		children[4] = fork();
		if (children[4] == 0) {
			need(setuid(NOBODY) == 0, "setuid");
			*state = set_cell(cells32) == 0 ? 1 : errno;
			_exit(0);
		}
		wait_for_child(children[4], "child");
		if (*state == 1)
			break;
		sleep_ms(10);
	} while (++tries < 500);
	expect(tries < 500, "none after the end of one");
	for (int i = 1; i < 4; i++)
		end_one(children[i]);
	write_file(parameter, "1024");
}

static void in_chroot(void)
{
	turn_on(cells32);
	need(chroot("/proc/self/fdinfo") == 0 && chdir("/") == 0, "chroot");
	goes_on_as("in a chroot");
}

static const struct row rows[] = {
	{ "any", "threads: 64", many_threads },
	{ "any", "threads: come and go", threads_come_and_go },
	{ "any", "threads: the first ends", first_thread_ends },
	{ "any", "threads: set by one, off by another", other_threads_call },
	{ "any", "at once: SET and OFF", several_set },
	{ "any", "at once: SET of another buffer, and QUERY", replaced_at_once },
	{ "any", "at once: SET, and the buffer is mapped anew", mapped_while_set },
	{ "any", "at once: ticks, and the buffer is replaced", replaced_under_ticks },
	{ "any", "at once: SET, and signals", under_signals },
	{ "root", "late: a page that another process brings", page_comes_late },
	{ "root", "late: killed while it waits for a page", killed_waiting_for_page },
	{ "root", "late: a child is killed while it waits for a page", sharer_killed_waiting },
	{ "any", "late: a page that nobody brings", page_never_comes },
	{ "any", "end: killed", killed },
	{ "any", "end: crashed", crashed },
	{ "any", "end: exit while threads run", exits_with_threads },
	{ "any", "end: stopped and continued", stopped },
	{ "any", "many processes at once", many_processes },
	{ "any", "descriptor: closed", closed },
	{ "any", "descriptor: used by parent and child", passed_on },
	{ "root", "who: after setuid", other_user },
	{ "root", "who: so many processes of a user", processes_of_user },
	{ "root", "who: in namespaces", in_namespaces },
	{ "root", "who: in a chroot", in_chroot },
};

int main(int argc, char **argv)
{
	return run_kmod_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
