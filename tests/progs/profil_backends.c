// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a program sees of the back end, and its file descriptors: profil_row.h. Also:
 *
 *   profil_backends which   calls profil() and prints "RESULT ERRNO BACKEND TICKS # ERROR", "-" for
 *                           missing values
 *
 *   profil_backends without CALL  the same where a filter of seccomp(2) lets this system call fail
 * with EPERM. "profil_backends without" prints the calls that it knows
 *
 *   profil_backends asked   prints "ready" and executes the lines that it reads: "on", "off",
 * "which", "end", or "burn", which prints the number of counted ticks, and whether it can be what
 * was due
 */
#include "profil_row.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* --- What there is beside profil() --- */

static const char *ask(const char *function)
{
	const char *(*f)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, function);
	const char *answer = f ? f() : NULL;

	return answer ? answer : "-";
}

static const char *const errnos[] = {
	[0] = "0",	     [EPERM] = "EPERM",	    [EAGAIN] = "EAGAIN", [ENOMEM] = "ENOMEM",
	[EINVAL] = "EINVAL", [ENOTSUP] = "ENOTSUP", [EACCES] = "EACCES"
};

static const char *errno_name(int error)
{
	size_t count = sizeof(errnos) / sizeof(*errnos);

	return (size_t)error < count && errnos[error] ? errnos[error] : strerror(error);
}

static int which(void)
{
	int result, error;
	const char *why;

	errno = 0;
	result = profil_hot(cells);
	error = errno;
	why = ask("profil_error");
	printf("%d %s ", result, errno_name(error));
	burn(some());
	profil_off();
	printf("%s %u # %s\n", ask("profil_backend"), sum(), why);
	return 0;
}

/* What libprofil calls, but for what libc cannot do without. */
static const struct {
	const char *name;
	int number;
} calls[] = {
#define CALL(name)                \
	{                         \
#name, SYS_##name \
	}
	CALL(bpf),
	CALL(clone),
	CALL(clone3),
	CALL(close_range),
	CALL(connect),
	CALL(getpid),
	CALL(gettid),
	CALL(ioctl),
	CALL(madvise),
	CALL(mmap),
	CALL(munmap),
	CALL(openat),
	CALL(perf_event_open),
	CALL(prctl),
	CALL(process_vm_readv),
	CALL(process_vm_writev),
	CALL(recvfrom),
	CALL(recvmsg),
	CALL(rt_sigaction),
	CALL(rt_sigprocmask),
	CALL(rt_sigtimedwait),
	CALL(sendmsg),
	CALL(setsockopt),
	CALL(socket),
	CALL(tgkill),
	CALL(timer_create),
	CALL(timer_settime),
};

static int without(const char *name)
{
	size_t count = sizeof(calls) / sizeof(*calls), i = 0;

	while (i < count && strcmp(calls[i].name, name) != 0)
		i++;
	if (i == count)
		return 2;

	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		     prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0,
	     "seccomp");
	return which();
}

/* Waits until what was burnt is to be seen, which takes a while on a busy machine. */
static void burn_and_look(void)
{
	unsigned int before = sum(), counted;
	double burnt;

	*uncharged_ns = 0;
	burnt = burn(some());
	for (int ms = 0; ms < 2000 && !is_about(sum() - before, burnt, burnt, 1); ms++)
		sleep_ms(1);
	counted = sum() - before;
	printf("burnt %.0f counted %u %s\n", burnt, counted,
	       is_about(counted, burnt, burnt, 1) ? "as due" : "not as due");
}

static int do_as_asked(void)
{
	char line[64];

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0) {
		if (strcmp(line, "on\n") == 0)
			printf("on %d\n", profil_hot(cells));
		else if (strcmp(line, "off\n") == 0)
			printf("off %d\n", profil_off());
		else if (strcmp(line, "which\n") == 0)
			printf("which %s\n", ask("profil_backend"));
		else
			burn_and_look();
		fflush(stdout);
	}
	return 0;
}

/* --- Descriptors --- */

#define DESCRIPTORS 256

/* What each of them is, or "". */
struct table {
	char names[DESCRIPTORS][64];
	unsigned int count;
};

static void read_table(struct table *table)
{
	char name[32];

	memset(table, 0, sizeof(*table));
	for (int i = 0; i < DESCRIPTORS; i++) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", i);
		if (readlink(name, table->names[i], sizeof(table->names[i]) - 1) > 0)
			table->count++;
	}
}

static void expect_same(const struct table *a, const struct table *b)
{
	for (int i = 0; i < DESCRIPTORS; i++)
		expect(strcmp(a->names[i], b->names[i]) == 0, "descriptor %d: \"%s\" became \"%s\"",
		       i, a->names[i], b->names[i]);
}

/* What the first call opens may stay; more calls may not add to it. */
static void table_stays(void)
{
	static struct table first, last;

	for (int i = 0; i < 10; i++) {
		expect(profil_hot(cells) == 0, "on: %m");
		burn(1);
		if (i % 2)
			expect(profil_hot(cells) == 0, "on again: %m");
		profil_off();
		read_table(i == 0 ? &first : &last);
	}
	expect_same(&first, &last);
}

static void table_as_before(void)
{
	static struct table before, after;

	read_table(&before);
	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	profil_off();
	read_table(&after);
	expect_same(&before, &after);
}

static void closed_at_exec(void)
{
	static struct table before, on;

	read_table(&before);
	expect(profil_hot(cells) == 0, "on: %m");
	read_table(&on);
	for (int i = 0; i < DESCRIPTORS; i++)
		if (!before.names[i][0] && on.names[i][0])
			expect(fcntl(i, F_GETFD) & FD_CLOEXEC,
			       "descriptor %d, %s, has no FD_CLOEXEC", i, on.names[i]);
	profil_off();
}

/* Programs that become daemons close all descriptors, and some get their numbers. */
static void all_closed(void)
{
	static struct table mine, after;

	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	close_range(3, ~0U, 0);
	for (int i = 0; i < 100; i++)
		need(open("/dev/null", O_RDONLY) >= 0, "/dev/null");
	read_table(&mine);
	burn(ticks_in(40e6));
	profil_off();
	read_table(&after);
	/* New ones would be no harm, the program's must stay. */
	for (int i = 0; i < DESCRIPTORS; i++)
		if (mine.names[i][0])
			expect(strcmp(mine.names[i], after.names[i]) == 0,
			       "descriptor %d: \"%s\" became \"%s\"", i, mine.names[i],
			       after.names[i]);
	memset(cells, 0, sizeof(cells));
	expect(profil_hot(cells) == 0, "on after that: %m");
	burn(some());
	profil_off();
	expect_about("on after that", sum(), some());
	read_table(&after);
	for (int i = 3; i < 103; i++)
		expect(strcmp(after.names[i], "/dev/null") == 0, "descriptor %d became \"%s\"", i,
		       after.names[i]);
}

/* The same, and then a child and the end. */
static void all_closed_and_fork(void)
{
	pid_t child;

	expect(profil_hot(cells) == 0, "on: %m");
	close_range(3, ~0U, 0);
	for (int i = 0; i < 100; i++)
		need(open("/dev/null", O_RDONLY) >= 0, "/dev/null");
	child = fork();
	burn(some());
	for (int i = 3; i < 103; i++)
		expect(fcntl(i, F_GETFD) >= 0, "descriptor %d was closed", i);
	if (child == 0)
		_exit(wrong);
	expect_well(child, "child");
}

/* No descriptor is left: an error or not, but no harm. */
static void none_left(void)
{
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 64, 64 });
	while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
		;
	if (profil_hot(cells) == 0)
		burn(some());
	else
		expect(errno == EMFILE || errno == ENOMEM || errno == EAGAIN || errno == ENOTSUP,
		       "on: %m");
	profil_off();
	close_range(3, ~0U, 0);
	expect(profil_hot(cells) == 0, "on with descriptors: %m");
	burn(some());
	profil_off();
	expect(sum() > 0, "no tick");
}

/* Whatever becomes of its descriptors and its files, a program can turn it off. */
static void expect_off(void)
{
	unsigned int before;

	expect(profil_off() == 0, "off: %m");
	before = sum();
	expect_about("while on", before, some());
	burn(some());
	sleep_ms(20);
	expect(sum() == before, "%u ticks when off", sum() - before);
}

static void off_without_descriptors(void)
{
	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	close_range(3, ~0U, 0);
	need(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, 0 }) == 0, "setrlimit");
	expect_off();
}

/* Only root may chroot(2). */
static void off_without_files(void)
{
	const char *dir = getenv("TMPDIR");
	char empty[4096];

	snprintf(empty, sizeof(empty), "%s/empty-XXXXXX", dir ? dir : "/tmp");
	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	need(mkdtemp(empty) && chdir(empty) == 0 && rmdir(empty) == 0, empty);
	need(geteuid() || chroot(".") == 0, "chroot");
	close_range(3, ~0U, 0);
	expect_off();
}

/* --- Fewer rights: what is on stays on --- */

static void drops_rights(void)
{
	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
	need(geteuid() || setuid(65534) == 0, "setuid");
	burn(some());
	profil_off();
	expect_about("before and after", sum(), 2 * some());
}

/* What the child may count depends on the back end, but it lives. */
static void drops_rights_and_forks(void)
{
	pid_t child;

	expect(profil_hot(cells) == 0, "on: %m");
	need(geteuid() || setuid(65534) == 0, "setuid");
	child = fork();
	burn(some());
	if (child == 0)
		_exit(0);
	expect_well(child, "child");
	profil_off();
	expect_about("parent", sum(), some());
}

static const struct row rows[] = {
	{ "any", "descriptors are as before when it is off", table_as_before },
	{ "any", "descriptors do not become more with calls", table_stays },
	{ "any", "descriptors are closed at exec", closed_at_exec },
	{ "any", "descriptors that the program closes and opens", all_closed },
	{ "any", "descriptors that it closes and opens before fork", all_closed_and_fork },
	{ "any", "no descriptor is left", none_left },
	{ "any", "off when no descriptor can be had", off_without_descriptors },
	{ "any", "off after chroot, with all descriptors closed", off_without_files },
	{ "any", "rights are dropped while on", drops_rights },
	{ "any", "rights are dropped before fork", drops_rights_and_forks },
};

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "which") == 0)
		return which();
	if (argc == 3 && strcmp(argv[1], "without") == 0)
		return without(argv[2]);
	for (size_t i = 0; argc == 2 && strcmp(argv[1], "without") == 0; i++) {
		if (i == sizeof(calls) / sizeof(*calls))
			return 0;
		puts(calls[i].name);
	}
	if (argc == 2 && strcmp(argv[1], "asked") == 0)
		return do_as_asked();
	return run_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
