// SPDX-License-Identifier: GPL-2.0-only
/*
 * fork, clone, vfork, spawn and exec while /dev/profil counts: kmod_device.h. Programs that it
 * executes:
 *
 *   kmod_family nothing           exits 0
 *   kmod_family burn              burns a few ticks, is not profiled, and exits 0
 *   kmod_family successor FILE    exits 0 if profiling is off, and the file of that descriptor does
 * not change while it burns
 */
#include "kmod_device.h"

#include <linux/sched.h>
#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>

extern char **environ;

static char program[4096];

/* --- Children with a copy of the cell --- */

static void go_on_exactly(const char *who)
{
	uint32_t begin = not_counted(cells32);

	if (!expect(is_on(), "%s: off", who))
		return;
	for (int i = 0; i < 5; i++) {
		burn_counted(1);
		expect_exact(who, cells32, begin);
	}
}

static void *go_on_in_thread(void *unused)
{
	go_on_exactly("thread");
	return unused;
}

/* Forks by a function that does as fork(2) does. Both go on, each by itself. */
static void expect_fork(pid_t (*make_child)(void))
{
	volatile uint32_t *report = shared_memory(PAGE);
	uint32_t before;
	pid_t child;

	turn_on(cells32);
	burn_counted(5);
	before = query().counted;
	child = make_child();
	if (child == 0) {
		report[0] = not_counted(cells32);
		go_on_exactly("child");
		_exit(wrong);
	}
	go_on_exactly("parent");
	expect_well(child, "child");
	expect_exact("parent", cells32, 0);
	expect(before <= report[0] && report[0] <= query().counted,
	       "the child had %u from its parent, which had %u to %llu", report[0], before,
	       query().counted);
}

static void by_fork(void)
{
	expect_fork(fork);
}

static pid_t raw_clone(void)
{
	return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void by_clone(void)
{
	expect_fork(raw_clone);
}

static pid_t raw_clone3(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	return syscall(SYS_clone3, &args, sizeof(args));
}

static void by_clone3(void)
{
	expect_fork(raw_clone3);
}

/* Its memory is copied before what it shares of files, signals and the parent's parent. */
static pid_t clone_sibling(void)
{
	return syscall(SYS_clone, SIGCHLD | CLONE_FS | CLONE_FILES | CLONE_IO, 0, 0, 0, 0);
}

static void by_clone_of_files(void)
{
	expect_fork(clone_sibling);
}

static void *fork_in_thread(void *unused)
{
	pid_t child = fork();

	if (child == 0) {
		pthread_t thread;

		go_on_exactly("child of a thread");
		start_threads(&thread, 1, go_on_in_thread);
		join_threads(&thread, 1);
		go_on_exactly("child of a thread, with one of its own");
		_exit(wrong);
	}
	expect_well(child, "child of a thread");
	return unused;
}

static void by_threads(void)
{
	pthread_t threads[4];

	turn_on(cells32);
	burn_counted(2);
	for (int i = 0; i < 5; i++) {
		start_threads(threads, 4, fork_in_thread);
		join_threads(threads, 4);
	}
	go_on_exactly("parent");
}

/* Two to the power of six of them, at once. */
static void tree(void)
{
	pid_t first = getpid();
	int status;

	turn_on(cells32);
	for (int depth = 0; depth < 6; depth++)
		need(fork() >= 0, "fork");
	go_on_exactly("one of 64");
	while (wait(&status) > 0)
		expect(status == 0, "a child ended with status 0x%x", status);
	if (getpid() != first)
		_exit(wrong);
}

static void chain(void)
{
	turn_on(cells32);
	for (int depth = 0; depth < 20; depth++) {
		pid_t child = fork();

		if (child) {
			expect_well(child, "child");
			go_on_exactly("parent of a chain");
			if (depth)
				_exit(wrong);
			return;
		}
	}
	go_on_exactly("the last of a chain");
	_exit(wrong);
}

/* It ends at once, and what it began goes on. */
/* Waits for what a process writes there in the end that is nobody's child: 1 if all was well. */
static void expect_told(volatile uint32_t *report, const char *name)
{
	for (int i = 0; i < 10000 && !*report; i++)
		sleep_ms(1);
	expect(*report == 1, "%s did not end well: %u", name, *report);
}

static void daemonised(void)
{
	volatile uint32_t *report = shared_memory(PAGE);
	pid_t parent = fork();

	if (parent == 0) {
		turn_on(cells32);
		burn_counted(2);
		if (fork())
			_exit(wrong);
		setsid();
		go_on_exactly("daemon");
		report[0] = 1 + wrong;
		_exit(wrong);
	}
	expect_well(parent, "parent");
	expect_told(report, "the daemon");
}

/* What the child maps there at once is nothing's of the parent. */
static void child_replaces(void)
{
	volatile uint32_t *cell = make_memory(PAGE);
	void *guarded = shared_memory(PAGE);

	memset(guarded, GUARD, PAGE);
	for (int i = 0; i < rounds(30); i++) {
		pid_t child;

		turn_on(cell);
		child = fork();
		if (child == 0) {
			need(mremap(guarded, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
				    (void *)cell) == cell,
			     "mremap");
			expect(!is_on(), "on in the child");
			burn(2);
			expect_guarded("in the child", cell, PAGE);
			_exit(wrong);
		}
		expect_well(child, "child");
		expect(is_on(), "off in the parent");
	}
}

/* Its parent was off when it was forked, so the child is, too. */
static void after_replaced(void)
{
	int file = memfd_create("guarded", MFD_CLOEXEC);
	volatile uint32_t *cell = make_memory(PAGE);
	char guard[PAGE];

	memset(guard, GUARD, PAGE);
	need(file >= 0 && write(file, guard, PAGE) == (ssize_t)PAGE, "memfd_create");
	for (int i = 0; i < rounds(30); i++) {
		pid_t child;

		need(mmap((void *)cell, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == cell,
		     "mmap");
		turn_on(cell);
		need(mmap((void *)cell, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file,
			  0) == cell,
		     "mmap");
		child = fork();
		if (child == 0) {
			expect(!is_on(), "on in the child");
			burn(2);
			expect_guarded("in the child", cell, PAGE);
			_exit(wrong);
		}
		expect_well(child, "child");
	}
}

static void child_off(void)
{
	pid_t child;

	turn_on(cells32);
	burn_counted(1);
	child = fork();
	if (child == 0) {
		uint32_t before;

		expect(turn_off() == 0 && !is_on(), "OFF: %m");
		before = cells32[0];
		burn(3);
		expect(cells32[0] == before, "%u ticks when it was off", cells32[0] - before);
		turn_on(cells32 + 1);
		burn_counted(2);
		expect_exact("on again", cells32 + 1, 0);
		_exit(wrong);
	}
	expect_well(child, "child");
	expect(is_on(), "off in the parent");
	go_on_exactly("parent");
}

static void parent_off(void)
{
	int gate[2];
	pid_t child;
	char byte;

	need(pipe(gate) == 0, "pipe");
	turn_on(cells32);
	child = fork();
	if (child == 0) {
		close(gate[1]);
		need(read(gate[0], &byte, 1) == 0, "read");
		go_on_exactly("child");
		_exit(wrong);
	}
	turn_off();
	close(gate[1]);
	expect_well(child, "child");
	expect(!is_on(), "on in the parent");
}

/* Their buffer is the same, but neither takes the other's place. */
static void shared_buffer(void)
{
	volatile uint32_t *cell = shared_memory(PAGE);
	pid_t child;

	turn_on(cell);
	child = fork();
	burn_counted(10);
	if (child == 0)
		_exit(wrong);
	expect_well(child, "child");
	expect(*cell >= 10, "%u ticks", *cell);
	expect(cell[1] == 0, "%u in the cell behind", cell[1]);
}

static void *fork_on(void *unused)
{
	while (go_on) {
		pid_t child = fork();

		if (child == 0) {
			query();
			_exit(wrong);
		}
		expect_well(child, "child");
	}
	return unused;
}

/* A child starts while everything else changes. */
static void while_set_and_off(void)
{
	double end = seconds(CLOCK_MONOTONIC) + 2;
	pthread_t threads[3];

	turn_on(cells32);
	start_threads(threads, 3, fork_on);
	for (int i = 0; i < rounds(300) && seconds(CLOCK_MONOTONIC) < end; i++) {
		turn_on(cells32 + i % 4);
		spin_hot(5000);
		if (i % 2)
			turn_off();
	}
	go_on = false;
	join_threads(threads, 3);
	expect_alive();
}

/* --- Children that share the memory --- */

/* Ticks of whoever runs in this memory are counted in it. */
static int burn_in_memory(void *unused)
{
	double end = seconds(CLOCK_THREAD_CPUTIME_ID) + 0.02;

	(void)unused;
	while (seconds(CLOCK_THREAD_CPUTIME_ID) < end)
		spin_hot(1000);
	return 0;
}

static char stacks[8][65536] __attribute__((aligned(16)));

static void shares_memory(void)
{
	pid_t children[8];

	turn_on(cells32);
	burn_counted(1);
	for (int i = 0; i < 8; i++)
		children[i] = clone(burn_in_memory, stacks[i] + sizeof(stacks[i]),
				    CLONE_VM | SIGCHLD, NULL);
	for (int i = 0; i < 8; i++)
		expect_well(children[i], "child");
	expect(is_on(), "off");
	expect_least("all", query().ticks, 160 - 8);
	go_on_exactly("parent");
	expect(not_counted(cells32) == 0, "%u in the cell that are not counted",
	       not_counted(cells32));
}

static volatile uint32_t *outlived;

/* The parent, which set it, has ended, but its memory is still there. */
static int outlive(void *unused)
{
	(void)unused;
	while (getppid() == (pid_t)outlived[1])
		sleep_ms(1);
	go_on_exactly("the child that has the memory now");
	outlived[0] = 1 + wrong;
	return wrong;
}

static void outlives_parent(void)
{
	pid_t parent;

	outlived = shared_memory(PAGE);
	parent = fork();
	if (parent == 0) {
		outlived[1] = getpid();
		turn_on(cells32);
		need(clone(outlive, stacks[0] + sizeof(stacks[0]), CLONE_VM | SIGCHLD, NULL) > 0,
		     "clone");
		burn_counted(1);
		_exit(wrong);
	}
	expect_well(parent, "parent");
	expect_told(outlived, "the child");
}

static void burns_after_vfork(void)
{
	pid_t child;

	turn_on(cells32);
	burn_counted(1);
	child = vfork();
	if (child == 0) {
		burn_in_memory(NULL);
		_exit(0);
	}
	expect_well(child, "child");
	expect_least("both", query().ticks, 20);
	go_on_exactly("parent");
	expect(not_counted(cells32) == 0, "%u in the cell that are not counted",
	       not_counted(cells32));
}

static int results[3], errors[3];

static void calls_after_vfork(void)
{
	struct profil_device_region region = everywhere(cells32 + 1, 4);
	struct profil_device_query now = { .size = sizeof(now) };
	pid_t child;

	turn_on(cells32);
	burn_counted(1);
	child = vfork();
	if (child == 0) {
		results[0] = set_regions(PROFIL_WIDE, &region, 1);
		errors[0] = errno;
		results[1] = turn_off();
		errors[1] = errno;
		results[2] = ioctl(device(), PROFIL_IOC_QUERY, &now);
		errors[2] = errno;
		_exit(0);
	}
	expect_well(child, "child");
	expect(results[0] == -1 && errors[0] == EPERM, "SET: %d, errno %d", results[0], errors[0]);
	expect(results[1] == -1 && errors[1] == EPERM, "OFF: %d, errno %d", results[1], errors[1]);
	expect(results[2] == 0 || errors[2] == EPERM, "QUERY: %d, errno %d", results[2], errors[2]);
	expect(is_on(), "off");
	go_on_exactly("parent");
	expect(cells32[1] == 0, "%u in the child's cell", cells32[1]);
}

/* Of the memory as it is then, which is its parent's. */
static void forks_after_vfork(void)
{
	volatile int status;
	pid_t child;

	turn_on(cells32);
	burn_counted(1);
	child = vfork();
	if (child == 0) {
		pid_t grandchild = raw_clone();
		int ended;

		if (grandchild == 0) {
			go_on_exactly("the child's child");
			turn_off();
			turn_on(cells32 + 1);
			_exit(wrong);
		}
		waitpid(grandchild, &ended, 0);
		status = ended;
		_exit(0);
	}
	expect_well(child, "child");
	expect(status == 0, "the child's child: status 0x%x", status);
	go_on_exactly("parent");
}

static void spawned(void)
{
	char *nothing[] = { program, "nothing", NULL };

	turn_on(cells32);
	for (int i = 0; i < rounds(1000); i++) {
		pid_t child;

		need(posix_spawn(&child, program, NULL, NULL, nothing, environ) == 0,
		     "posix_spawn");
		expect_well(child, "child");
	}
	go_on_exactly("parent");
	expect(not_counted(cells32) == 0, "%u in the cell that are not counted",
	       not_counted(cells32));
}

static void spawned_to_burn(void)
{
	char *burner[] = { program, "burn", NULL };
	pid_t child;

	turn_on(cells32);
	child = vfork();
	if (child == 0) {
		burn_in_memory(NULL);
		execv(program, burner);
		_exit(1);
	}
	expect_well(child, "child");
	go_on_exactly("parent");
	expect(not_counted(cells32) == 0, "%u in the cell that are not counted",
	       not_counted(cells32));
}

/* --- Another program in its place --- */

static volatile uint32_t *make_inherited(int *file)
{
	*file = memfd_create("cell", 0);
	need(*file >= 0 && ftruncate(*file, PAGE) == 0, "memfd_create");
	return mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
}

static void become_successor(void)
{
	static char name[16];
	char *successor[] = { program, "successor", name, NULL };
	int file;

	turn_on(make_inherited(&file));
	burn_counted(3);
	snprintf(name, sizeof(name), "%d", file);
	execv(program, successor);
	need(false, "execv");
}

static int run_successor(int file)
{
	volatile uint32_t *cell = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);
	uint32_t before = *cell;

	need(cell != MAP_FAILED, "mmap");
	expect(before >= 3, "%u ticks of the program before", before);
	expect(!is_on() && query().ticks == 0, "on after exec");
	burn(20);
	expect(*cell == before, "the new program got %u ticks", *cell - before);
	expect_alive();
	return wrong;
}

static void *become_successor_in_thread(void *unused)
{
	become_successor();
	return unused;
}

static void *burn_forever(void *unused)
{
	for (;;)
		spin_hot(1000);
	return unused;
}

static void exec_in_thread(void)
{
	pthread_t threads[5];

	start_threads(threads, 4, burn_forever);
	start_threads(threads + 4, 1, become_successor_in_thread);
	burn_forever(NULL);
}

static void exec_fails(void)
{
	turn_on(cells32);
	burn_counted(1);
	expect(execl("/nonexistent", "nonexistent", (char *)NULL) == -1, "execl");
	expect(execl("/proc/self/status", "status", (char *)NULL) == -1, "execl");
	expect(is_on(), "off");
	go_on_exactly("after that");
	expect(not_counted(cells32) == 0, "%u in the cell that are not counted",
	       not_counted(cells32));
}

/* One after the other, each of a process that is on. */
static void many_execs(void)
{
	char *nothing[] = { program, "nothing", NULL };

	for (int i = 0; i < rounds(100); i++) {
		pid_t child = fork();

		if (child == 0) {
			turn_on(cells32);
			spin_hot(10000);
			execv(program, nothing);
			_exit(1);
		}
		expect_well(child, "child");
	}
	expect_alive();
}

static const struct row rows[] = {
	{ "any", "fork", by_fork },
	{ "any", "clone", by_clone },
	{ "any", "clone3", by_clone3 },
	{ "any", "clone that shares files", by_clone_of_files },
	{ "any", "fork in threads", by_threads },
	{ "any", "fork: 64 at once", tree },
	{ "any", "fork: children of children of children", chain },
	{ "any", "fork: the parent ends", daemonised },
	{ "any", "fork: the child maps other memory there", child_replaces },
	{ "any", "fork: after other memory was mapped there", after_replaced },
	{ "any", "fork: the child turns its own off", child_off },
	{ "any", "fork: the parent turns its own off", parent_off },
	{ "any", "fork: both count in shared memory", shared_buffer },
	{ "any", "fork: while it is set and turned off", while_set_and_off },
	{ "any", "CLONE_VM: counted in the memory that they share", shares_memory },
	{ "any", "CLONE_VM: the parent ends", outlives_parent },
	{ "any", "vfork: what the child burns", burns_after_vfork },
	{ "any", "vfork: calls of the child", calls_after_vfork },
	{ "any", "vfork: the child forks", forks_after_vfork },
	{ "any", "vfork: the child burns and becomes another program", spawned_to_burn },
	{ "any", "posix_spawn, again and again", spawned },
	{ "any", "exec", become_successor },
	{ "any", "exec in a thread", exec_in_thread },
	{ "any", "exec that fails", exec_fails },
	{ "any", "exec, again and again", many_execs },
};

int main(int argc, char **argv)
{
	need(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0, "/proc/self/exe");
	if (argc == 2 && strcmp(argv[1], "nothing") == 0)
		return 0;
	if (argc == 2 && strcmp(argv[1], "burn") == 0) {
		burn_in_memory(NULL);
		return is_on() || wrong;
	}
	if (argc == 3 && strcmp(argv[1], "successor") == 0)
		return run_successor(atoi(argv[2]));
	return run_kmod_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
