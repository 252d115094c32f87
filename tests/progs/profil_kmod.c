// SPDX-License-Identifier: GPL-2.0-only
/* Properties of libprofil with /dev/profil that other back ends do not have: profil_row.h. */
#include "profil_row.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/profil.h"

/* From the library that is preloaded. */
#pragma weak profil_attach
#pragma weak profil_backend
#pragma weak profil_detach
#pragma weak profil_error
#pragma weak profil_session_free
#pragma weak profil_read
#pragma weak profil_read_totals

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

static void begin(void)
{
	expect(profil_hot(cells) == 0, "on: %m");
	burn(some());
}

/* --- Live --- */

static long context_switches(void)
{
	struct rusage used;

	getrusage(RUSAGE_THREAD, &used);
	return used.ru_nvcsw + used.ru_nivcsw;
}

/*
 * All code counts, so that each tick of the thread's clock has to be there as soon as it is due. A
 * CPU has one tick somewhere in each period: a turn on it has up to two fewer or more than it has
 * periods.
 */
static void exact_while_on(void)
{
	struct prof all = { cells, sizeof(*cells), 0, 2 };
	long switches = context_switches();
	unsigned int before;
	uint64_t start;

	expect(sprofil(&all, 1, NULL, PROF_USHORT) == 0, "on: %m");
	before = cells[0];
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < 400; i++) {
		unsigned int got;
		double due, later;
		long off;

		spin_hot(1000);
		due = ticks_in(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start);
		got = cells[0] - before;
		later = ticks_in(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start);
		off = 2 * (1 + context_switches() - switches);
		expect(got >= due - off && got <= later + off,
		       "%u ticks, due were %.1f to %.1f; off by %ld at most", got, due, later, off);
	}
	expect(cells[0] > before, "no tick at all");
	profil_off();
}

static void nothing_else(void)
{
	int descriptors = count_entries("/proc/self/fd"), now;

	begin();
	now = count_entries("/proc/self/fd");
	expect(now == descriptors, "%d descriptors became %d", descriptors, now);
	now = count_entries("/proc/self/task");
	expect(now == 1, "%d threads", now);
	profil_off();
}

static void nothing_locked(void)
{
	size_t size = 64 * PAGE; /* not a huge page, which takes long to make */
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(memory != MAP_FAILED, "mmap");
	need(setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ 0, 0 }) == 0, "setrlimit");
	need(geteuid() || setuid(65534) == 0, "setuid");
	expect(profil(memory, size, (size_t)__start_hot, 0x10000) == 0, "on: %m");
	burn(some());
	profil_off();
	expect_about("counted", sum_of(memory), some());
}

/* --- Children without fork handlers --- */

static unsigned int *report;

static void expect_on_in_child(pid_t child)
{
	unsigned int before = sum();

	burn(some());
	if (child == 0) {
		*report = sum() - before;
		expect_turned_off();
		_exit(wrong);
	}
	expect_well(child, "child");
	burn(some());
	profil_off();
	expect_about("child", *report, some());
	expect_about("parent", sum() - before, 2 * some());
}

static void clone_child(void)
{
	report = shared_memory(PAGE);
	begin();
	expect_on_in_child(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

static void fork_child(void)
{
	report = shared_memory(PAGE);
	begin();
	expect_on_in_child(_Fork());
}

/* It shares the memory, and so the buffer. */
static void vfork_child(void)
{
	pid_t child;

	begin();
	child = vfork();
	if (child == 0) {
		burn(2 * some());
		_exit(0);
	}
	expect_well(child, "child");
	profil_off();
	expect_about("parent and child", sum(), 3 * some());
}

/* --- A buffer that goes away, and something else is there at once --- */

static unsigned short *make_pages(void)
{
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(memory != MAP_FAILED, "mmap");
	return memory;
}

static void expect_alive(void)
{
	expect(profil_off() == 0, "off: %m");
	begin();
	profil_off();
	expect_about("on again", sum(), some());
}

static void replaced(void)
{
	unsigned short *buffer = make_pages();

	expect(profil_hot(buffer) == 0, "on: %m");
	burn(some());
	expect(sum_of(buffer) > 0, "no tick while it was good");
	need(mmap(buffer, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		  0) == buffer,
	     "mmap");
	burn(some());
	expect(sum_of(buffer) == 0, "%u ticks in what took its place", sum_of(buffer));
	expect_alive();
}

static void moved(void)
{
	unsigned short *buffer = make_pages(), *place = make_pages();
	unsigned int before;

	expect(profil_hot(buffer) == 0, "on: %m");
	burn(some());
	need(mremap(buffer, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place, "mremap");
	need(mmap(buffer, PAGE, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == buffer,
	     "mmap");
	before = sum_of(place);
	expect(before > 0, "its counts did not go with it");
	burn(some());
	expect(sum_of(place) == before, "%u ticks where it is now", sum_of(place) - before);
	expect(sum_of(buffer) == 0, "%u ticks where it was", sum_of(buffer));
	expect_alive();
}

/* --- Sessions --- */

static struct profil_session *attach(void)
{
	const struct profil_region region = { (size_t)__start_hot, sizeof(cells), 0x10000, 0 };
	struct profil_session *session;
	int err = profil_attach(&session, 0, &region, 1, sizeof(region), 0);

	expect(err == 0, "profil_attach: %s", profil_error());
	if (err)
		exit(wrong);
	return session;
}

static void expect_counts(const char *what, struct profil_session *session, double due)
{
	uint64_t counts[CELLS] = { 0 }, all = 0;
	struct profil_totals totals;

	expect(profil_read_totals(session, &totals, sizeof(totals)) == 0, "profil_read_totals: %s",
	       profil_error());
	expect(profil_read(session, 0, counts, CELLS) == 0, "profil_read: %s", profil_error());
	for (int i = 0; i < CELLS; i++)
		all += counts[i];
	expect_about(what, all, due);
	expect(totals.ticks == totals.in_range + totals.out_of_range + totals.lost,
	       "%s: the totals do not add up", what);
	expect(all >= totals.in_range && all <= totals.in_range + 1,
	       "%s: the cells have %lu ticks, the totals %lu", what, (unsigned long)all,
	       (unsigned long)totals.in_range);
	expect(totals.period_ns == tick_ns(), "%s: a period of %lu ns", what,
	       (unsigned long)totals.period_ns);
}

static void burn_elsewhere(void)
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start < some() * tick_ns())
		;
}

static void session_counts(void)
{
	struct profil_session *session = attach();
	struct profil_totals totals;

	burn(some());
	expect_counts("while on", session, some());
	burn_elsewhere();
	burn(some());
	profil_detach(session);
	expect_counts("detached", session, 2 * some());
	burn(some());
	expect_counts("later", session, 2 * some());
	profil_read_totals(session, &totals, sizeof(totals));
	expect_about("elsewhere", totals.out_of_range, some());
	profil_session_free(session);
}

static void session_forks(void)
{
	struct profil_session *session = attach();
	struct profil_totals totals;
	pid_t child;

	burn(some());
	burn_elsewhere();
	child = fork();
	burn(some());
	expect_counts(child ? "parent" : "child", session, 2 * some());
	profil_read_totals(session, &totals, sizeof(totals));
	expect_about("elsewhere", totals.out_of_range, some());
	profil_session_free(session);
	if (child == 0)
		_exit(wrong);
	expect_well(child, "child");
}

/* Who ends may not ask the device any more. */
static void forbid_to_ask(void)
{
	forbid(SYS_ioctl, SYS_ioctl);
}

static void *attach_and_end(void *session)
{
	*(struct profil_session **)session = attach();
	burn(some());
	forbid_to_ask();
	return NULL;
}

static void session_ends(void)
{
	struct profil_session *session;
	pthread_t thread;

	need(pthread_create(&thread, NULL, attach_and_end, &session) == 0, "pthread_create");
	pthread_join(thread, NULL);
	expect_counts("of a thread that ended", session, some());
	forbid_to_ask();
	exit(wrong);
}

static void session_after_buffer(void)
{
	unsigned short *buffer = make_pages();
	struct profil_session *session;

	expect(profil_hot(buffer) == 0, "on: %m");
	need(munmap(buffer, PAGE) == 0, "munmap");
	session = attach();
	burn(some());
	expect(profil_off() == 0, "off: %m");
	burn(4 * some());
	expect_counts("after profil is off", session, 5 * some());
	profil_session_free(session);
}

static void expect_refused(int result, const char *what)
{
	expect(result, "%s: not refused", what);
	expect(strstr(profil_error(), "at a time"), "%s: \"%s\"", what, profil_error());
}

static void one_at_a_time(void)
{
	const struct profil_region region = { (size_t)__start_hot, sizeof(cells), 0x10000, 0 };
	struct profil_session *session = attach(), *other;

	expect_refused(profil_attach(&other, 0, &region, 1, sizeof(region), 0), "a second session");
	expect_refused(profil_hot(cells), "profil beside a session");
	burn(some());
	expect_counts("after that", session, some());
	profil_session_free(session);
	begin();
	expect_refused(profil_attach(&other, 0, &region, 1, sizeof(region), 0),
		       "a session beside profil");
	burn(some());
	profil_off();
	expect_about("profil", sum(), 2 * some());
	profil_session_free(attach());
}

/* Whichever is next: the C library's has 100 ticks per second. */
static void another_beside(void)
{
	struct profil_session *session;
	double ticks = ticks_in(200e6);

	unsetenv("PROFIL_BACKEND");
	session = attach();
	expect(profil_hot(cells) == 0, "on: %m: %s", profil_error());
	expect(strcmp(profil_backend(), "kmod") == 0, "back end %s", profil_backend());
	burn(ticks);
	profil_off();
	expect_counts("the session", session, ticks);
	expect(sum() > 0, "no tick by another back end");
	profil_session_free(session);
	begin();
	profil_off();
	expect(strcmp(profil_backend(), "kmod") == 0, "later: back end %s", profil_backend());
}

/* --- What is refused --- */

static void expect_reason(int error, const char *reason)
{
	errno = 0;
	expect(profil_hot(cells) == -1 && errno == error, "%m instead of %s", strerror(error));
	expect(strstr(profil_error(), reason), "\"%s\" does not name %s", profil_error(), reason);
}

static void too_fast(void)
{
	static const char parameter[] = "/sys/module/profil/parameters/max_hz";

	setenv("PROFIL_HZ", "100000", 1);
	expect_reason(EINVAL, parameter);
	setenv("PROFIL_HZ", "1000", 1);
	begin();
	setenv("PROFIL_HZ", "100000", 1);
	expect_reason(EINVAL, parameter);
}

/*
 * In a root directory without the device, with another file in its place, and with root's device.
 */
static void other_device(void)
{
	const char *dir = getenv("TMPDIR");
	char root[4096];

	snprintf(root, sizeof(root), "%s/root-XXXXXX", dir ? dir : "/tmp");
	need(mkdtemp(root) && chdir(root) == 0, root);
	need(geteuid() == 0 || unshare(CLONE_NEWUSER) == 0, "CLONE_NEWUSER");
	need(chroot(".") == 0, "chroot");
	expect_reason(ENOTSUP, "modprobe profil");
	need(mkdir("dev", 0755) == 0 && close(creat("dev/profil", 0666)) == 0, "dev/profil");
	expect_reason(ENOTSUP, "one release");
	need(chmod("dev/profil", 0) == 0, "chmod");
	need(geteuid() || setuid(65534) == 0, "setuid");
	expect_reason(ENOTSUP, "0666");
}

static const struct row rows[] = {
	{ "kmod", "exact at each moment", exact_while_on },
	{ "kmod", "no thread and no descriptor more", nothing_else },
	{ "kmod", "no memory is locked", nothing_locked },
	{ "kmod", "clone: the child counts on, and turns its own off", clone_child },
	{ "kmod", "_Fork: the child counts on, and turns its own off", fork_child },
	{ "kmod", "vfork: the child is counted in its parent's buffer", vfork_child },
	{ "kmod", "what takes the place of a buffer stays untouched", replaced },
	{ "kmod", "a buffer that is moved", moved },
	{ "kmod", "a session", session_counts },
	{ "kmod", "a session: fork", session_forks },
	{ "kmod", "a session: who ends asks nothing", session_ends },
	{ "kmod", "a session, when the buffer of profil is gone", session_after_buffer },
	{ "kmod", "a session, or profil", one_at_a_time },
	{ "kmod", "a session, and profil by another back end", another_beside },
	{ "kmod", "a rate that root does not allow", too_fast },
	{ "kmod", "no device, or another", other_device },
};

int main(int argc, char **argv)
{
	return run_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
