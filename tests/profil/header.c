/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A client of libprofil's header, for tests/profil/header.sh: header ROW [PID]. C99 and C++11.
 */
#include <errno.h>
#include <fcntl.h>
#include <profil.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failed;

static void expect(int ok, const char *what)
{
	if (ok)
		return;
	printf("%s: errno %d, \"%s\"\n", what, errno, profil_error());
	failed = 1;
}

/* Whether a call failed with this error, and said why in words that have `reason`. */
static void expect_error(const char *what, int result, int expected, const char *reason)
{
	if (result == expected && strstr(profil_error(), reason))
		return;
	printf("%s: %d instead of %d, \"%s\" without \"%s\"\n", what, result, expected,
	       profil_error(), reason);
	failed = 1;
}

/* Two cells at this function. */
static struct profil_region some_region(void)
{
	struct profil_region r = { (size_t)some_region, 4, 0x10000, 0 };

	return r;
}

/* --- Rows --- */

static void version(pid_t unused)
{
	unsigned int number = profil_version();

	(void)unused;
	printf("header %d.%d.%d\n", PROFIL_VERSION_MAJOR, PROFIL_VERSION_MINOR,
	       PROFIL_VERSION_PATCH);
	printf("library %u.%u.%u\n", number / 1000000, number / 1000 % 1000, number % 1000);
}

static void ranges(pid_t pid)
{
	struct profil_text_range *all = NULL;
	size_t count = 0;
	int err;

	errno = 4321;
	err = profil_text_ranges(pid, &all, &count, sizeof(*all));
	expect(err == 0 && errno == 4321 && !*profil_error(), "profil_text_ranges");
	for (size_t i = 0; i < count; i++)
		printf("%llx-%llx %llx %s\n", (unsigned long long)all[i].start,
		       (unsigned long long)all[i].end, (unsigned long long)all[i].offset,
		       all[i].path);
	free(all);
}

static void ranges_of_program(pid_t unused)
{
	struct profil_text_range *all = NULL;
	size_t count = 0, at = (size_t)ranges_of_program, found = 0;

	(void)unused;
	expect(profil_text_ranges(0, &all, &count, sizeof(*all)) == 0, "profil_text_ranges");
	for (size_t i = 0; i < count; i++)
		found += all[i].start <= at && at < all[i].end && strstr(all[i].path, "/header");
	expect(found == 1, "the program's own code");
	free(all);
}

/* A PID that no process has, as its last one has been waited for. */
static pid_t dead(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	return child;
}

/* The real cause comes first: nothing else matters to a process that does not exist. */
static void no_process(pid_t kernel_thread)
{
	struct profil_region r = some_region(), bad = some_region();
	struct profil_text_range *all = NULL;
	struct profil_session *s = NULL;
	size_t count = 7;
	pid_t pid = dead();

	bad.scale = 0;
	expect_error("attach", profil_attach(&s, pid, &r, 1, sizeof(r), 0), -ESRCH, "no process");
	expect_error("a bad region", profil_attach(&s, pid, &bad, 1, sizeof(bad), 0), -ESRCH,
		     "no process");
	expect_error("no region", profil_attach(&s, pid, &r, 0, sizeof(r), 0), -ESRCH,
		     "no process");
	expect_error("a bad size", profil_attach(&s, pid, &r, 1, 1, 0), -ESRCH, "no process");
	expect_error("a bad rate", profil_attach(&s, pid, &r, 1, sizeof(r), 1000000000), -ESRCH,
		     "no process");
	expect_error("ranges", profil_text_ranges(pid, &all, &count, sizeof(*all)), -ESRCH,
		     "no process");
	expect_error("ranges and a bad size", profil_text_ranges(pid, &all, &count, 1), -ESRCH,
		     "no process");
	expect_error("a negative number", profil_attach(&s, -1, &r, 1, sizeof(r), 0), -EINVAL,
		     "not a process ID");
	if (kernel_thread)
		expect_error("a kernel thread",
			     profil_text_ranges(kernel_thread, &all, &count, sizeof(*all)), -ESRCH,
			     "kernel thread");
	expect(!s && !all && count == 7, "what was not made");
}

/* In a user's process, which lacks the privileges as well. */
static void no_process_of_user(pid_t unused)
{
	struct profil_region r = some_region();
	struct profil_text_range *all = NULL;
	struct profil_session *s = NULL;
	size_t count = 0;

	expect(setgid(65534) == 0 && setuid(65534) == 0, "setuid");
	no_process(unused);
	expect_error("init", profil_attach(&s, 1, &r, 1, sizeof(r), 0), -EPERM, "CAP_BPF");
	expect_error("init's ranges", profil_text_ranges(1, &all, &count, sizeof(*all)), -EACCES,
		     "/proc/1/maps");
}

/* What a newer program passes, and what an older one would. */
struct newer_region {
	struct profil_region known;
	uint64_t more;
};

struct newer_totals {
	struct profil_totals known;
	uint64_t more;
};

struct newer_range {
	struct profil_text_range known;
	uint64_t more;
};

static void sizes(pid_t unused)
{
	struct newer_region r[2];
	struct newer_totals t;
	struct newer_range *all = NULL;
	struct profil_text_range *known = NULL;
	struct profil_session *s = NULL;
	size_t count = 0, known_count = 0;
	uint64_t cells[2] = { 7, 7 };

	(void)unused;
	memset(r, 0, sizeof(r));
	memset(&t, 0xff, sizeof(t));
	r[0].known = r[1].known = some_region();
	r[1].known.bufsiz = 2;
	expect(profil_attach(&s, 0, &r[0].known, 2, sizeof(*r), 0) == 0,
	       "a larger struct of zeros");
	expect(profil_read(s, 0, cells, 2) == 0, "its first region");
	cells[1] = 7;
	expect(profil_read(s, 1, cells, 2) == 0 && cells[1] == 7, "its second, of one cell");
	expect_error("a third", profil_read(s, 2, cells, 2), -EINVAL, "region 2 of 2");
	expect(profil_read_totals(s, &t.known, sizeof(t)) == 0, "larger totals");
	expect(t.more == 0 && t.known.period_ns > 0, "what is not known is 0");
	expect(profil_read_totals(s, &t.known, offsetof(struct profil_totals, target)) == 0,
	       "the totals of the first version");
	expect_error("smaller totals",
		     profil_read_totals(s, &t.known, offsetof(struct profil_totals, target) - 1),
		     -EINVAL, "sizeof(struct profil_totals)");
	profil_session_free(s);

	s = NULL;
	r[1].more = 1;
	expect_error("a larger struct", profil_attach(&s, 0, &r[0].known, 2, sizeof(*r), 0), -E2BIG,
		     "newer libprofil");
	expect_error("a smaller struct",
		     profil_attach(&s, 0, &r[0].known, 1, sizeof(r->known) - 1, 0), -EINVAL,
		     "sizeof(struct profil_region)");
	expect_error("no size", profil_attach(&s, 0, &r[0].known, 1, 0, 0), -EINVAL,
		     "sizeof(struct profil_region)");
	expect_error("a huge struct", profil_attach(&s, 0, &r[0].known, 1, 1 << 20, 0), -EINVAL,
		     "sizeof(struct profil_region)");
	r[0].known.unused = 1;
	expect_error("unused", profil_attach(&s, 0, &r[0].known, 1, sizeof(*r), 0), -EINVAL,
		     "unused");
	expect(!s, "no session");

	expect(profil_text_ranges(0, &known, &known_count, sizeof(*known)) == 0, "ranges");
	expect(profil_text_ranges(0, (struct profil_text_range **)&all, &count, sizeof(*all)) == 0,
	       "larger ranges");
	expect(count > 0 && count == known_count, "as many");
	for (size_t i = 0; i < count && i < known_count; i++)
		expect(all[i].more == 0 && all[i].known.start == known[i].start &&
			       strcmp(all[i].known.path, known[i].path) == 0,
		       "the same range");
	expect_error("smaller ranges", profil_text_ranges(0, &known, &known_count, 8), -EINVAL,
		     "sizeof(struct profil_text_range)");
	free(all);
	free(known);
}

/* Each range of another process is a region, until it has a tick. */
static void other(pid_t pid)
{
	struct profil_text_range *all = NULL;
	struct profil_session *s = NULL;
	struct profil_totals t;
	struct profil_region regions[100];
	size_t count = 0;

	memset(regions, 0, sizeof(regions));
	memset(&t, 0, sizeof(t));
	expect(profil_text_ranges(pid, &all, &count, sizeof(*all)) == 0, "profil_text_ranges");
	expect(count > 0 && count <= 100, "the number of ranges");
	for (size_t i = 0; i < count && i < 100; i++) {
		regions[i].offset = all[i].start;
		regions[i].bufsiz = all[i].end - all[i].start;
		regions[i].scale = 0x10000;
	}
	free(all);
	expect(!failed && profil_attach(&s, pid, regions, count, sizeof(*regions), 1000) == 0,
	       "profil_attach");
	for (int i = 0; !failed && i < 3000 && t.in_range < 20; i++) {
		usleep(10000);
		expect(profil_read_totals(s, &t, sizeof(t)) == 0, "profil_read_totals");
	}
	expect(t.in_range >= 20 && t.out_of_range == 0, "all ticks are in the ranges");
	profil_session_free(s);
}

/* The CPU time of a process. */
static uint64_t cpu_ns(pid_t pid)
{
	struct timespec now = { 0, 0 };
	clockid_t clock;

	expect(!clock_getcpuclockid(pid, &clock) && !clock_gettime(clock, &now), "a clock");
	return now.tv_sec * (uint64_t)1000000000 + now.tv_nsec;
}

static void wait_for_cpu(pid_t pid, uint64_t ns)
{
	while (!failed && cpu_ns(pid) < ns)
		usleep(10000);
}

/* A child that spins, and executes a program that spins when it gets a byte. */
static void target_ends(pid_t unused)
{
	struct profil_region all = some_region();
	struct profil_session *s = NULL;
	struct profil_totals t, later;
	uint64_t ns;
	int go[2];
	pid_t pid;
	char byte;

	(void)unused;
	expect(pipe(go) == 0 && fcntl(go[0], F_SETFL, O_NONBLOCK) == 0, "pipe");
	pid = fork();
	if (pid == 0) {
		while (read(go[0], &byte, 1) != 1)
			;
		execlp("sh", "sh", "-c", "while :; do :; done", (char *)NULL);
		_exit(1);
	}
	memset(&t, 0, sizeof(t));
	expect(profil_attach(&s, pid, &all, 1, sizeof(all), 1000) == 0, "attach");
	if (failed)
		return;
	wait_for_cpu(pid, 300000000);
	expect(profil_read_totals(s, &t, sizeof(t)) == 0 && t.target == PROFIL_TARGET_RUNS, "runs");
	expect(write(go[1], "", 1) == 1, "write");
	for (int i = 0; i < 3000 && t.target == PROFIL_TARGET_RUNS; i++) {
		usleep(10000);
		expect(profil_read_totals(s, &t, sizeof(t)) == 0, "totals");
	}
	expect(t.target == PROFIL_TARGET_EXECUTED, "it has executed a program");
	ns = cpu_ns(pid);
	wait_for_cpu(pid, ns + 700000000);
	expect(profil_read_totals(s, &later, sizeof(later)) == 0, "totals");
	expect(memcmp(&t, &later, sizeof(t)) == 0, "nothing changes after the exec");
	expect(later.cpu_ns <= ns, "the CPU time is the first program's");
	profil_session_free(s);

	expect(profil_attach(&s, pid, &all, 1, sizeof(all), 1000) == 0, "attach again");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	expect(profil_read_totals(s, &t, sizeof(t)) == 0 && t.target == PROFIL_TARGET_ENDED,
	       "it has ended");
	profil_session_free(s);
}

/* PROFIL_BACKEND names a back end that cannot count for another process. */
static void other_forced(pid_t pid)
{
	struct profil_region r = some_region();
	struct profil_session *s = NULL;

	expect_error("attach", profil_attach(&s, pid, &r, 1, sizeof(r), 0), -ENOTSUP,
		     "PROFIL_BACKEND");
	expect(!s, "what was not made");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(pid_t pid);
	} rows[] = {
		{ "version", version },
		{ "ranges", ranges },
		{ "ranges-of-program", ranges_of_program },
		{ "no-process", no_process },
		{ "no-process-of-user", no_process_of_user },
		{ "sizes", sizes },
		{ "other", other },
		{ "other-forced", other_forced },
		{ "target-ends", target_ends },
	};

	for (size_t i = 0; argc > 1 && i < sizeof(rows) / sizeof(*rows); i++)
		if (strcmp(argv[1], rows[i].name) == 0) {
			rows[i].run(argc > 2 ? atoi(argv[2]) : 0);
			return failed;
		}
	return 2;
}
