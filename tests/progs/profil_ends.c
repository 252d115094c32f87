// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs that do unusual things while profiling is on, and how they continue and end:
 * profil_row.h. Also, the programs that a row executes:
 *
 *   profil_ends be PART   see parts[]
 */
#include "profil_row.h"

#include <dlfcn.h>
#include <sys/syscall.h>

static char path[4096];

/* Ticks in so many milliseconds. */
static double ticks_of(double ms)
{
	return ms * ticks_in(1e6);
}

/* Runs a part of this program, which must end well when all this was written to its stdout. */
static void expect_output(const char *part, const char *due)
{
	char *argv[] = { path, "be", (char *)part, NULL }, got[4096];
	ssize_t size, all = 0;
	int ends[2];
	pid_t child;

	need(pipe2(ends, O_CLOEXEC) == 0, "pipe");
	child = fork();
	if (child == 0) {
		setpgid(0, 0);
		dup2(ends[1], STDOUT_FILENO);
		execv(path, argv);
		_exit(127);
	}
	close(ends[1]);
	expect_well(child, part);
	if (wrong)
		kill(-child, SIGKILL); /* its children, which have the pipe, too */
	while ((size = read(ends[0], got + all, sizeof(got) - 1 - all)) > 0)
		all += size;
	got[all] = '\0';
	expect(strcmp(got, due) == 0, "%s: its output is \"%s\"", part, got);
	close(ends[0]);
}

/* --- The first thread ends, the process goes on --- */

static int first_thread; /* its state in /proc, which says so after chroot(2), too */

static bool first_thread_is_there(void)
{
	char text[512];
	ssize_t size = pread(first_thread, text, sizeof(text) - 1, 0);
	const char *name_end;

	need(size > 0, "/proc/self/task/PID/stat");
	text[size] = '\0';
	name_end = strrchr(text, ')');
	return !name_end || strncmp(name_end, ") Z", 3) != 0;
}

static void wait_for_first_thread(void)
{
	while (first_thread_is_there())
		sleep_ms(1);
}

static void say_exit(void)
{
	printf("exit ");
}

/* What is said stays in the buffer until the process exits, and says that it did. */
static void begin_to_end(void)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", getpid());
	first_thread = open(name, O_RDONLY | O_CLOEXEC);
	need(first_thread >= 0, name);
	setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
	atexit(say_exit);
}

static void *turn_on(void *unused)
{
	expect(profil_hot(cells) == 0, "on: %m");
	return unused;
}

/* As profil.h has it. */
struct region {
	uint64_t offset, bufsiz;
	uint32_t scale, unused;
};

/* A session, where there are some. */
static void *attach(void *unused)
{
	struct region region = { (size_t)__start_hot, sizeof(cells), 0x10000, 0 };
	int (*f)(void **session, pid_t pid, const struct region *regions, size_t count, size_t size,
		 unsigned int hz) = dlsym(RTLD_DEFAULT, "profil_attach");
	void *session;

	if (f)
		f(&session, 0, &region, 1, sizeof(region), 0);
	return unused;
}

static void in_thread(void *(*run)(void *))
{
	pthread_t thread;

	need(pthread_create(&thread, NULL, run, NULL) == 0, "pthread_create");
	need(pthread_join(thread, NULL) == 0, "pthread_join");
}

static __attribute__((noreturn)) void leave_to(void *(*run)(void *))
{
	pthread_t thread;

	need(pthread_create(&thread, NULL, run, NULL) == 0, "pthread_create");
	pthread_detach(thread);
	pthread_exit(NULL);
}

/* The last thread is there for a while, at work and without. */
static void *last(void *unused)
{
	wait_for_first_thread();
	burn(ticks_of(50));
	sleep_ms(100);
	printf("last ");
	return unused;
}

static void *last_turns_off(void *unused)
{
	wait_for_first_thread();
	profil_off();
	return last(unused);
}

static void *last_turns_off_and_on(void *unused)
{
	last_turns_off(NULL);
	turn_on(NULL);
	return unused;
}

static void *last_attaches(void *unused)
{
	last_turns_off(NULL);
	attach(NULL);
	return unused;
}

static void thread_on_and_last(void)
{
	begin_to_end();
	in_thread(turn_on);
	leave_to(last);
}

static void thread_attaches_and_last(void)
{
	begin_to_end();
	in_thread(attach);
	leave_to(last);
}

static void on_and_last_off_and_on(void)
{
	begin_to_end();
	turn_on(NULL);
	leave_to(last_turns_off_and_on);
}

static void on_and_last_attaches(void)
{
	begin_to_end();
	turn_on(NULL);
	leave_to(last_attaches);
}

static void *leave(void *unused)
{
	pthread_exit(unused);
}

/* Only root may chroot(2), and has no /proc then. libc has loaded what it needs before. */
static void on_and_last_without_proc(void)
{
	char empty[4096];
	const char *dir = getenv("TMPDIR");

	begin_to_end();
	in_thread(leave);
	turn_on(NULL);
	snprintf(empty, sizeof(empty), "%s/empty-XXXXXX", dir ? dir : "/tmp");
	need(mkdtemp(empty), empty);
	need(chdir(empty) == 0 && rmdir(empty) == 0, empty);
	need(geteuid() || chroot(".") == 0, "chroot");
	leave_to(last);
}

#define ROW_OF_LAST(function)                           \
	static void row_##function(void)                \
	{                                               \
		expect_output(#function, "last exit "); \
	}

ROW_OF_LAST(thread_on_and_last)
ROW_OF_LAST(thread_attaches_and_last)
ROW_OF_LAST(on_and_last_off_and_on)
ROW_OF_LAST(on_and_last_attaches)
ROW_OF_LAST(on_and_last_without_proc)

/* --- A filter of system calls that comes after it was turned on --- */

/* One must not read memory so, as in the programs that filter what they need not. */
static void forbid_to_read(void)
{
	forbid(SYS_process_vm_readv, SYS_process_vm_writev);
}

static void filtered_exit(void)
{
	begin_to_end();
	turn_on(NULL);
	forbid_to_read();
	burn(some());
	printf("last ");
}

static void filtered_last(void)
{
	begin_to_end();
	turn_on(NULL);
	forbid_to_read();
	leave_to(last);
}

static void *turn_on_and_forbid(void *unused)
{
	turn_on(NULL);
	forbid_to_read();
	return unused;
}

static void filtered_thread(void)
{
	begin_to_end();
	in_thread(turn_on_and_forbid);
	printf("last ");
}

ROW_OF_LAST(filtered_exit)
ROW_OF_LAST(filtered_last)
ROW_OF_LAST(filtered_thread)

/* --- A rate that is none --- */

static void off_with_bad_rate(void)
{
	unsigned int before;

	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	setenv("PROFIL_HZ", "fast", 1);
	expect(profil_off() == 0, "off: %m");
	unsetenv("PROFIL_HZ");
	before = sum();
	burn(some()); /* at 100 Hz */
	expect(sum() == before, "%u ticks after it was off", sum() - before);
}

static void off_at_once_with_bad_rate(void)
{
	struct prof off = { .pr_base = cells, .pr_size = sizeof(cells), .pr_scale = 1 };

	setenv("PROFIL_HZ", "fast", 1);
	expect(profil_off() == 0, "profil: %m");
	expect(sprofil(NULL, 0, NULL, 0) == 0, "sprofil: %m");
	expect(sprofil(&off, 1, NULL, 0) == 0, "sprofil of a region that is off: %m");
}

/* --- A library that is loaded when the program runs --- */

/* The part has this one's path, and is not preloaded with it; where there is none, it is libc's. */
static void expect_output_unloaded(const char *part, const char *due)
{
	const char *lib = getenv("LD_PRELOAD");

	if (!lib)
		return;
	setenv("PROFIL_TEST_LIB", lib, 1);
	unsetenv("LD_PRELOAD");
	expect_output(part, due);
}

static int (*loaded_profil)(unsigned short *buffer, size_t bufsiz, size_t offset,
			    unsigned int scale);

static void *load(void)
{
	void *lib = dlopen(getenv("PROFIL_TEST_LIB"), RTLD_NOW | RTLD_LOCAL);

	if (lib)
		loaded_profil = dlsym(lib, "profil");
	if (!loaded_profil) {
		expect(false, "dlopen: %s", dlerror());
		exit(wrong);
	}
	return lib;
}

static int loaded_on(void)
{
	return loaded_profil(cells, sizeof(cells), (size_t)__start_hot, 0x10000);
}

static void *turn_loaded_on(void *unused)
{
	expect(loaded_on() == 0, "on: %m");
	burn(some());
	return unused;
}

/* In a thread: in the one that calls dlclose(), what the library has of it would keep it. */
static void unload(void)
{
	void *lib = load();
	pid_t child;

	in_thread(turn_loaded_on);
	expect(dlclose(lib) == 0, "dlclose: %s", dlerror());
	burn(ticks_of(50));
	sleep_ms(50);
	child = fork();
	if (child == 0)
		_exit(0);
	expect_well(child, "child");
	printf("closed ");
}

static void row_unload(void)
{
	expect_output_unloaded("unload", "closed ");
}

static int tries;

static void try_in_handler(void)
{
	loaded_on(); /* the library may refuse it */
	tries++;
}

static void fork_with_handlers(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
	pid_t pid;

	pthread_atfork(prepare, parent, child);
	load();
	for (int i = 0; i < 2; i++) {
		expect(loaded_on() == 0, "on: %m");
		pid = fork();
		memset(cells, 0, sizeof(cells));
		burn_until_counted();
		expect(loaded_profil(cells, 0, 0, 0) == 0, "off after fork: %m");
		expect(sum() > 0, "no tick after fork");
		if (pid == 0)
			_exit(wrong);
		expect_well(pid, "child");
	}
	printf("tries %d", tries);
}

static void early_in_child(void)
{
	fork_with_handlers(NULL, NULL, try_in_handler);
}

static void early_in_parent(void)
{
	fork_with_handlers(try_in_handler, try_in_handler, NULL);
}

static void row_early_in_child(void)
{
	expect_output_unloaded("early_in_child", "tries 0");
}

static void row_early_in_parent(void)
{
	expect_output_unloaded("early_in_parent", "tries 4");
}

#define PART(function)                  \
	{                               \
		"", #function, function \
	}

static const struct row parts[] = {
	PART(thread_on_and_last),   PART(thread_attaches_and_last), PART(on_and_last_off_and_on),
	PART(on_and_last_attaches), PART(on_and_last_without_proc), PART(filtered_exit),
	PART(filtered_last),	    PART(filtered_thread),	    PART(unload),
	PART(early_in_child),	    PART(early_in_parent),
};

static const struct row rows[] = {
	{ "any", "the first thread ends, another called profil", row_thread_on_and_last },
	{ "any", "the first thread ends, another has a session", row_thread_attaches_and_last },
	{ "any", "the first thread ends, then off and on", row_on_and_last_off_and_on },
	{ "any", "the first thread ends, then off and a session", row_on_and_last_attaches },
	{ "any", "the first thread ends, and there is no /proc", row_on_and_last_without_proc },
	{ "any", "a seccomp filter, and exit", row_filtered_exit },
	{ "any", "a seccomp filter, and the first thread ends", row_filtered_last },
	{ "any", "a seccomp filter, and the thread ends that called profil", row_filtered_thread },
	{ "any", "off with a PROFIL_HZ that is no rate", off_with_bad_rate },
	{ "any", "off when it is off, with a PROFIL_HZ that is no rate",
	  off_at_once_with_bad_rate },
	{ "any", "dlclose of libprofil", row_unload },
	{ "kernel", "profil in a fork handler for the child", row_early_in_child },
	{ "kernel", "profil in fork handlers for the parent", row_early_in_parent },
};

int main(int argc, char **argv)
{
	need(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0, "/proc/self/exe");
	if (argc == 3 && strcmp(argv[1], "be") == 0)
		return run_row(argc - 1, argv + 1, parts, sizeof(parts) / sizeof(*parts));
	return run_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
