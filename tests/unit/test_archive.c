// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "archive_fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "archive/read.h"

/* The name of a file is when its window began, in UTC wherever we are. */
static void names(void **state)
{
	struct archive *a = opened("one");
	struct profile *p;
	struct error e;

	(void)state;
	setenv("TZ", "Asia/Kolkata", 1);
	assert_string_equal(write_window(a, utc("2026-11-21 03:15:07"), "work", 5),
			    "one/2026-11-21/031507.pb.gz");
	unsetenv("TZ");
	assert_string_equal(listed(NULL, 0, UINT32_MAX), "one/2026-11-21/031507.pb.gz ");
	assert_int_equal(format_read(in_directory("one/2026-11-21/031507.pb.gz"), NULL, &p, &e), 0);
	assert_int_equal(profile_total(p, NULL), 5);
	profile_free(p);
	archive_close(a);
}

static mode_t mode_of(const char *name)
{
	struct stat status;

	assert_int_equal(stat(in_directory(name), &status), 0);
	return status.st_mode & 0777;
}

static void private(void **state)
{
	mode_t before = umask(0);
	struct archive *a = opened("one");

	(void)state;
	write_window(a, utc("2026-11-21 03:15:07"), "work", 5);
	assert_int_equal(mode_of("one"), 0700);
	assert_int_equal(mode_of("one/2026-11-21"), 0700);
	assert_int_equal(mode_of("one/2026-11-21/031507.pb.gz"), 0600);
	assert_int_equal(mode_of("one/.lock"), 0600);
	archive_close(a);
	umask(before);
}

static void one_writer(void **state)
{
	struct archive *a = opened("one"), *other = opened("two");
	struct error e;
	char words[64];

	(void)state;
	archive_close(other);
	assert_int_equal(archive_open(directory, "one", getpid(), &other, &e), -EBUSY);
	snprintf(words, sizeof(words), "/one is in use by process %d", (int)getpid());
	if (!strstr(e.what, words))
		fail_msg("%s", e.what);
	archive_close(a);
	archive_close(opened("one"));
}

/* A name with slashes stays below the directory; hosts do not begin with a dot. */
static void odd_hosts(void **state)
{
	struct archive *a = opened("../../etc");

	(void)state;
	assert_string_equal(write_window(a, utc("2026-11-21 03:15:07"), "work", 5),
			    "_._.._etc/2026-11-21/031507.pb.gz");
	archive_close(a);
	a = opened("");
	assert_string_equal(write_window(a, utc("2026-11-21 03:15:07"), "work", 5),
			    "unknown/2026-11-21/031507.pb.gz");
	archive_close(a);
}

static void clock_set_back(void **state)
{
	struct archive *a = opened("one");
	uint64_t at = utc("2026-11-21 23:59:58");

	(void)state;
	write_window(a, at, "first", 1);
	write_window(a, at, "second", 2);
	assert_string_equal(write_window(a, at, "third", 4), "one/2026-11-22/000000.pb.gz");
	assert_string_equal(listed("one", at, at + 60),
			    "one/2026-11-21/235958.pb.gz one/2026-11-21/235959.pb.gz "
			    "one/2026-11-22/000000.pb.gz ");
	/* What a sum covers is not read: it goes behind the sum. */
	assert_int_equal(shell("mkdir -p one/2026-11-20 && "
			       "cp one/2026-11-21/235958.pb.gz one/2026-11-20/030000-1h.pb.gz && "
			       "cp one/2026-11-21/235958.pb.gz one/2026-11-20/040000-10m.pb.gz"),
			 0);
	assert_string_equal(write_window(a, utc("2026-11-20 03:15:00"), "fourth", 8),
			    "one/2026-11-20/041000.pb.gz");
	archive_close(a);
}

static void selected(void **state)
{
	struct archive *a = opened("one"), *b = opened("two");

	(void)state;
	for (int minute = 0; minute < 5; minute++)
		write_window(a, utc("2026-11-21 23:57:30") + 60 * minute, "work", 1);
	write_window(b, utc("2026-11-21 23:58:00"), "work", 1);
	/* Of windows that reach into the interval, and of these alone */
	assert_string_equal(listed("one", utc("2026-11-21 23:59:00"), utc("2026-11-21 23:59:30")),
			    "one/2026-11-21/235830.pb.gz ");
	assert_string_equal(listed("one", utc("2026-11-22 00:00:00"), utc("2026-11-22 00:00:31")),
			    "one/2026-11-21/235930.pb.gz one/2026-11-22/000030.pb.gz ");
	assert_string_equal(listed(NULL, utc("2026-11-21 23:58:30"), utc("2026-11-21 23:58:40")),
			    "one/2026-11-21/235830.pb.gz two/2026-11-21/235800.pb.gz ");
	assert_string_equal(listed("t*", 0, UINT32_MAX), "two/2026-11-21/235800.pb.gz ");
	assert_string_equal(listed("three", 0, UINT32_MAX), "");
	archive_close(a);
	archive_close(b);
}

/* What a coarser window covers is not listed; what is no window is ignored. */
static void covered(void **state)
{
	struct archive *a = opened("one");

	(void)state;
	write_window(a, utc("2026-11-21 03:09:59"), "work", 1);
	write_window(a, utc("2026-11-21 03:10:00"), "work", 1);
	write_window(a, utc("2026-11-21 03:19:59"), "work", 1);
	write_window(a, utc("2026-11-21 03:20:00"), "work", 1);
	assert_int_equal(shell("cd one/2026-11-21 && cp 030959.pb.gz 031000-10m.pb.gz && touch "
			       "031500-10m.pb.gz "
			       "246060.pb.gz 031000-2h.pb.gz notes 031000.pb.gz.damaged && mkdir "
			       "-p ../2026-02-30 "
			       "../../.hidden/2026-11-21 && cp 030959.pb.gz ../2026-02-30 && touch "
			       "../../file && "
			       "cp 030959.pb.gz ../../.hidden/2026-11-21 && ln -s one ../../link"),
			 0);
	assert_string_equal(listed(NULL, 0, UINT32_MAX),
			    "one/2026-11-21/030959.pb.gz one/2026-11-21/031000-10m.pb.gz "
			    "one/2026-11-21/032000.pb.gz ");
	assert_int_equal(shell("cp one/2026-11-21/030959.pb.gz one/2026-11-21/030000-1h.pb.gz"), 0);
	assert_string_equal(listed(NULL, 0, UINT32_MAX), "one/2026-11-21/030000-1h.pb.gz ");
	archive_close(a);
}

/* Writes windows until it is killed; says after each one that it is there. */
static void write_forever(int out)
{
	struct archive *a = opened("one");
	uint64_t at = utc("2026-11-21 03:00:00");

	for (;; at += 60) {
		write_window(a, at, "work", 1);
		if (write(out, "w", 1) != 1)
			_exit(1);
	}
}

/* Returns how many windows were complete when it was killed after some time. */
static size_t killed_after(useconds_t time)
{
	size_t count = 0;
	int ends[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		write_forever(ends[1]);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	usleep(time);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (count = 1; read(ends[0], &byte, 1) == 1; count++)
		;
	close(ends[0]);
	return count;
}

/* Of a writer that is killed at any time, all windows are whole, and the next one cleans up. */
static void killed(void **state)
{
	char command[256];

	(void)state;
	for (int i = 0; i < 30; i++) {
		size_t written = killed_after(500 * i), count;
		struct archive_window *windows;
		struct error e;

		archive_close(opened("one"));
		assert_int_equal(shell("! find one -name '.new-*' | grep ."), 0);
		assert_int_equal(archive_list(directory, NULL, 0, UINT64_MAX, &windows, &count, &e),
				 0);
		/* The last may be there without having been reported. */
		assert_in_range(count, written, written + 1);
		archive_list_free(windows, count);
		snprintf(command, sizeof(command), "cat $(find one -name '*.pb.gz') | gzip -t");
		assert_int_equal(shell("%s", command), 0);
		assert_int_equal(shell("rm -r one"), 0);
	}
}

/* An error leaves neither a part of a window nor a temporary file. */
static void full(void **state)
{
	struct rlimit before, small = { 10, RLIM_INFINITY };
	struct archive *a = opened("one");
	const uint64_t time_ns = utc("2026-11-21 03:15:07") * NS_PER_S;
	struct profile *p = window_of(time_ns / NS_PER_S, "work", 5);
	struct error e;
	int fd;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	small.rlim_max = before.rlim_max;
	assert_int_equal(archive_encode(p, NULL, NULL, &fd, &e), 0);
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(archive_write(a, fd, time_ns, NULL, 0, &e), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &before);
	if (!strstr(e.what, "one/2026-11-21/031507.pb.gz: File too large"))
		fail_msg("%s", e.what);
	assert_int_equal(shell("! find one/2026-11-21 -type f | grep ."), 0);
	assert_int_equal(archive_write(a, fd, time_ns, NULL, 0, &e), 0);
	/* One that was ended before it could report that comes again. */
	assert_int_equal(archive_write(a, fd, time_ns, NULL, 0, &e), 0);
	assert_int_equal(shell("[ $(find one/2026-11-21 -type f | wc -l) -eq 1 ]"), 0);
	close(fd);
	/* Another one of this second does not. */
	profile_free(p);
	p = window_of(time_ns / NS_PER_S, "work", 6);
	assert_int_equal(write_profile(a, p, NULL, 0, &e), 0);
	assert_int_equal(shell("[ $(find one/2026-11-21 -type f | wc -l) -eq 2 ]"), 0);
	profile_free(p);
	archive_close(a);
}

static void not_ours(void **state)
{
	struct archive *a;
	struct archive_window *windows;
	struct error e;
	size_t count;

	(void)state;
	assert_int_equal(shell("mkdir other && ln -s other one && touch file"), 0);
	assert_true(archive_open(directory, "one", getpid(), &a, &e) < 0);
	assert_true(archive_open(in_directory("file"), "one", getpid(), &a, &e) < 0);
	assert_true(archive_open(in_directory("no/such"), "one", getpid(), &a, &e) < 0);
	assert_string_equal(e.hint, "its parent directory does not exist: make it first, with "
				    "mkdir -p");
	assert_true(archive_list(in_directory("none"), NULL, 0, 1, &windows, &count, &e) < 0);
	assert_true(strstr(e.what, "none: No such file or directory"));
}

/* Of 2 s, in the first of which others waited for 0.5 s, the last second. */
static uint64_t delay_of_part(bool no_code, int64_t *ticks)
{
	const uint64_t start_s = utc("2026-11-21 03:15:00");
	const struct archive_query query = {
		.directory = directory,
		.since_ns = (start_s + 1) * NS_PER_S,
		.until_ns = (start_s + 60) * NS_PER_S,
		.no_code = no_code,
	};
	struct archive_result result;
	uint64_t delay;
	struct error e;

	if (archive_read(&query, &result, &e))
		fail_msg("%s", e.what);
	delay = profile_total(result.p, PROFILE_DELAY_TYPE);
	*ticks = profile_total(result.p, "samples");
	for (size_t i = 0; i < result.p->sample_count; i++)
		assert_int_equal(result.p->samples[i].depth, !no_code);
	profile_free(result.p);
	archive_result_free(&result);
	return delay;
}

/* What threads waited while a part of a window ran does not depend on whether its code is asked. */
static void part_without_code(void **state)
{
	const uint64_t start_s = utc("2026-11-21 03:15:00");
	struct archive *a = opened("one");
	struct profile *p = empty_profile(10000000);
	uint32_t mapping = add_mapping(p, 0x1000, 0x2000, 0, "/bin/web"), labels;
	struct error e;
	int64_t ticks;

	(void)state;
	assert_int_equal(profile_add_sum(p, PROFILE_SUM_DELAY), 0);
	assert_int_equal(profile_add_labels(p, &(struct profile_labels){ .comm = "web" }, &labels),
			 0);
	for (uint32_t second = 0; second < 2; second++) {
		const int64_t values[] = { 100, NS_PER_S, second ? 0 : NS_PER_S / 2 };
		uint32_t frame = add_location(p, 0x1010 + second, mapping);

		assert_int_equal(profile_add_sample(p, &frame, 1, labels, values), 0);
		for (uint64_t i = 0; i < 100; i++)
			assert_int_equal(
				tick_list_add(&p->ticks, second,
					      (start_s + second) * NS_PER_S + i * 10 * NS_PER_MS),
				0);
	}
	p->time_ns = start_s * NS_PER_S;
	p->duration_ns = 2 * NS_PER_S;
	p->totals.known = true;
	p->totals.ticks = p->totals.counted = 200;
	if (write_profile(a, p, NULL, 0, &e))
		fail_msg("%s", e.what);
	profile_free(p);
	archive_close(a);
	assert_int_equal(delay_of_part(false, &ticks), 0);
	assert_int_equal(ticks, 100);
	assert_int_equal(delay_of_part(true, &ticks), 0);
	assert_int_equal(ticks, 100);
}

#define test(function) \
	cmocka_unit_test_setup_teardown(function, directory_setup, directory_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(names),	      test(private),  test(one_writer),	       test(odd_hosts),
		test(clock_set_back), test(selected), test(covered),	       test(killed),
		test(full),	      test(not_ours), test(part_without_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
