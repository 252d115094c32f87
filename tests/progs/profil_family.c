// SPDX-License-Identifier: GPL-2.0-only
/*
 * fork, vfork, spawn and exec while profiling is on: profil_row.h. Programs that it executes:
 *
 *   profil_family burn TICKS       burns them and exits 0
 *   profil_family successor FILE   exits 0 if the cells in the file do not change while it burns,
 * and it has no descriptor that it did not open
 */
#include "profil_row.h"

#include <spawn.h>

extern char **environ;

/* What a process of the family counted, for the first of them to see. */
struct counted {
	unsigned int inherited, own;
};

static struct counted *report;

static void make_report(void)
{
	report = shared_memory(4096);
}

static void tell_counted(struct counted *counted, unsigned int inherited)
{
	profil_off();
	counted->inherited = inherited;
	counted->own = sum() - inherited;
}

static void begin(void)
{
	make_report();
	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
}

/* --- fork --- */

static void fork_both(void)
{
	unsigned int before;
	pid_t child;

	begin();
	child = fork();
	before = sum();
	burn(child ? some() : long_time());
	if (child == 0) {
		tell_counted(report, before);
		_exit(wrong);
	}
	expect_well(child, "child");
	burn(some());
	tell_counted(report + 1, before);
	expect_about("at the fork", report[0].inherited, some());
	expect(report[0].inherited == before, "the child's copy has %u ticks, the parent's %u",
	       report[0].inherited, before);
	expect_about("child", report[0].own, long_time());
	expect_about("parent", report[1].own, 2 * some());
}

static void grandchildren(void)
{
	struct counted *mine;
	unsigned int before;
	pid_t child;
	int depth;

	begin();
	for (depth = 0; depth < 3; depth++) {
		child = fork();
		if (child)
			break;
	}
	before = sum();
	burn(long_time());
	mine = report + depth;
	tell_counted(mine, before);
	if (child)
		expect_well(child, "child");
	/* The one before each has not burnt anything between its birth and the next one's. */
	expect_about("inherited", mine->inherited, some());
	expect_about("child", mine->own, long_time());
	if (depth)
		_exit(wrong);
}

/* What the rows expect of it comes last: until then it may have had no CPU at all. */
static void *burn_on(void *unused)
{
	while (go_on)
		burn(1);
	burn(some());
	return unused;
}

/* Of the threads the child has but the one that forked. */
static void fork_of_threads(void)
{
	pthread_t thread;
	unsigned int before;
	pid_t child;

	begin();
	need(pthread_create(&thread, NULL, burn_on, NULL) == 0, "pthread_create");
	burn(some());
	child = fork();
	before = sum();
	burn(child ? some() : long_time());
	if (child == 0) {
		need(pthread_create(&thread, NULL, burn_on, NULL) == 0, "pthread_create");
		burn(some());
		go_on = false;
		pthread_join(thread, NULL);
		tell_counted(report, before);
		_exit(wrong);
	}
	expect_well(child, "child");
	go_on = false;
	pthread_join(thread, NULL);
	tell_counted(report + 1, before);
	expect_least("child and its thread", report[0].own, long_time() + 2 * some());
	expect_least("parent and its thread", report[1].own, 2 * some());
}

static void *fork_children(void *unused)
{
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();

		if (child == 0) {
			burn(1);
			_exit(0);
		}
		expect_well(child, "child");
	}
	return unused;
}

static void threads_fork(void)
{
	pthread_t threads[4];

	begin();
	for (int i = 0; i < 4; i++)
		need(pthread_create(&threads[i], NULL, fork_children, NULL) == 0, "pthread_create");
	for (int i = 0; i < 20; i++) {
		profil_off();
		profil_hot(cells);
		burn(1);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	profil_off();
}

static void child_turns_off(void)
{
	pid_t child;

	begin();
	child = fork();
	if (child == 0) {
		expect_turned_off();
		_exit(wrong);
	}
	expect_well(child, "child");
	burn(some());
	profil_off();
	expect_about("parent", sum(), 2 * some());
}

static void parent_turns_off(void)
{
	int go[2];
	char byte;
	unsigned int before;
	pid_t child;

	begin();
	need(pipe(go) == 0, "pipe");
	child = fork();
	if (child == 0) {
		close(go[1]);
		need(read(go[0], &byte, 1) == 0, "read"); /* the parent has turned it off */
		before = sum();
		burn(long_time());
		profil_off();
		expect_about("child", sum() - before, long_time());
		_exit(wrong);
	}
	profil_off();
	close(go[1]);
	expect_well(child, "child");
}

/* A child that was forked while it was off has its own. */
static void child_turns_on(void)
{
	pid_t child;

	begin();
	profil_off();
	memset(cells, 0, sizeof(cells));
	child = fork();
	if (child == 0) {
		expect(profil_hot(cells) == 0, "on: %m");
		burn(some());
		profil_off();
		expect_about("child", sum(), some());
		_exit(wrong);
	}
	expect_well(child, "child");
	burn(some());
	expect(sum() == 0, "parent: %u ticks when off", sum());
}

/* The parent ends at once, and the child counts on. */
static void parent_ends(void)
{
	pid_t parent;

	begin();
	parent = fork();
	if (parent == 0) {
		pid_t child = fork();

		if (child)
			_exit(0);
		memset(cells, 0, sizeof(cells));
		burn(long_time());
		tell_counted(report, 0);
		report->inherited = 1;
		_exit(0);
	}
	expect_well(parent, "parent");
	while (!*(volatile unsigned int *)&report->inherited)
		sleep_ms(1);
	expect_about("child", report->own, long_time());
}

/* A child that no fork handler has seen: it may be on or off there, but it can be turned off. */
static void no_handlers(void)
{
	pid_t child;

	begin();
	child = _Fork();
	if (child == 0) {
		expect_turned_off();
		memset(cells, 0, sizeof(cells));
		expect(profil_hot(cells) == 0, "on: %m");
		burn(some());
		profil_off();
		expect_about("child", sum(), some());
		_exit(wrong);
	}
	expect_well(child, "child");
	burn(some());
	profil_off();
	expect_about("parent", sum(), 2 * some());
}

/* --- vfork and spawn --- */

static volatile int answer, error;

static void vfork_child_calls(void)
{
	static unsigned short others[CELLS];
	pid_t child;

	begin();
	child = vfork();
	if (child == 0) {
		answer = profil_hot(others);
		error = errno;
		_exit(0);
	}
	expect_well(child, "child");
	expect(answer == -1 && error == EPERM, "profil() in the child: %d, errno %d", answer,
	       error);
	burn(some());
	profil_off();
	expect_about("parent", sum(), 2 * some());
	expect(sum_of(others) == 0, "%u ticks in the child's buffer", sum_of(others));
}

static void vfork_child_turns_off(void)
{
	pid_t child;

	begin();
	child = vfork();
	if (child == 0) {
		answer = profil_off();
		error = errno;
		_exit(0);
	}
	expect_well(child, "child");
	expect(answer == -1 && error == EPERM, "profil() in the child: %d, errno %d", answer,
	       error);
	burn(some());
	profil_off();
	expect_about("parent", sum(), 2 * some());
}

static char path[4096];

static char *burner[] = { path, "burn", "300", NULL };

static void vfork_and_exec(void)
{
	pid_t child;

	begin();
	child = vfork();
	if (child == 0) {
		execv(path, burner);
		_exit(1);
	}
	expect_well(child, "child");
	burn(some());
	profil_off();
	expect_about("parent", sum(), 2 * some());
}

static void spawn(void)
{
	pid_t child;

	begin();
	need(posix_spawn(&child, path, NULL, NULL, burner, environ) == 0, "posix_spawn");
	expect_well(child, "child");
	burn(some());
	profil_off();
	expect_about("parent", sum(), 2 * some());
}

static void shell(void)
{
	int status;

	begin();
	status = system("i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; exit 7");
	expect(WIFEXITED(status) && WEXITSTATUS(status) == 7, "status 0x%x", status);
	burn(some());
	profil_off();
	expect_about("parent", sum(), 2 * some());
}

/* --- exec --- */

/* Maps the file again: a page of counts, which survive exec. */
static unsigned short *map_counts(int file)
{
	unsigned short *counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	need(counts != MAP_FAILED, "mmap");
	return counts;
}

/* The program goes on as another, of which no tick may be counted any more. */
static void become_successor(void)
{
	static char counts_path[4096];
	char *successor[] = { path, "successor", counts_path, NULL };
	const char *dir = getenv("TMPDIR");
	int file;

	close_range(3, ~0U, 0);
	snprintf(counts_path, sizeof(counts_path), "%s/counts-XXXXXX", dir ? dir : "/tmp");
	file = mkostemp(counts_path, O_CLOEXEC);
	need(file >= 0 && ftruncate(file, 4096) == 0, counts_path);
	expect(profil_hot(map_counts(file)) == 0, "on: %m");
	burn(some());
	execv(path, successor);
	need(false, "execv");
}

static void *become_successor_in_thread(void *unused)
{
	become_successor();
	return unused;
}

static void exec_in_thread(void)
{
	pthread_t thread;

	need(pthread_create(&thread, NULL, become_successor_in_thread, NULL) == 0,
	     "pthread_create");
	burn(100 * some());
}

static int run_successor(const char *name)
{
	int descriptors = count_entries("/proc/self/fd") - 1, file = open(name, O_RDWR | O_CLOEXEC);
	unsigned short *counts;
	unsigned int before;

	unlink(name);
	counts = map_counts(file);
	before = sum_of(counts);
	burn(3 * some() + ticks_in(20e6));
	expect(sum_of(counts) == before, "the new program got %u ticks", sum_of(counts) - before);
	expect(descriptors == 3, "%d descriptors stayed open", descriptors - 3);
	return wrong;
}

/* A program that fails to become another counts on. */
static void exec_fails(void)
{
	begin();
	execl("/nonexistent", "nonexistent", (char *)NULL);
	burn(some());
	profil_off();
	expect_about("after that", sum(), 2 * some());
}

static const struct row rows[] = {
	{ "kernel", "fork: both count on, each in its own buffer", fork_both },
	{ "kernel", "fork: grandchildren count on", grandchildren },
	{ "kernel", "fork: of a program with threads", fork_of_threads },
	{ "kernel", "fork: in four threads while a fifth calls profil", threads_fork },
	{ "kernel", "fork: the child turns its own off", child_turns_off },
	{ "kernel", "fork: the parent turns its own off", parent_turns_off },
	{ "any", "fork: the child turns on what was off", child_turns_on },
	{ "kernel", "fork: the parent ends", parent_ends },
	{ "kernel", "_Fork: off and on again in the child", no_handlers },
	{ "any", "vfork: profil in the child is refused", vfork_child_calls },
	{ "any", "vfork: off in the child is refused", vfork_child_turns_off },
	{ "any", "vfork: the child becomes another program", vfork_and_exec },
	{ "any", "posix_spawn", spawn },
	{ "any", "system", shell },
	{ "kernel", "exec: off, no signal, no descriptor", become_successor },
	{ "kernel", "exec: in a thread", exec_in_thread },
	{ "any", "exec: that fails", exec_fails },
};

int main(int argc, char **argv)
{
	need(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0, "/proc/self/exe");
	if (argc == 3 && strcmp(argv[1], "burn") == 0) {
		burn(atof(argv[2]) * some() / 100);
		return 0;
	}
	if (argc == 3 && strcmp(argv[1], "successor") == 0)
		return run_successor(argv[2]);
	return run_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
