// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "archive_fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "archive/window_sum.h"
#include "profile/tags.h"

#define START utc("2026-11-21 00:00:00")
#define HOUR  3600

/* Windows without a gap, each with one sample in work(). */
static void write_windows_at(uint64_t start_s, int count)
{
	struct archive *a = opened("one");

	for (int i = 0; i < count; i++)
		write_window(a, start_s + 60 * i, "work", 1);
	archive_close(a);
}

static void write_windows(int count)
{
	write_windows_at(START, count);
}

/* What was dropped last, by reason. */
static struct archive_dropped dropped[ARCHIVE_REASONS];
static struct archive_tidied tidied;

static void note_dropped(const struct archive_dropped *d, void *context)
{
	(void)context;
	dropped[d->reason] = *d;
}

static int try_tidy(const struct archive_limits *limits, uint64_t now_s, uint64_t keep_from_s,
		    struct error *e)
{
	static const struct archive_limits none;

	memset(dropped, 0, sizeof(dropped));
	return archive_tidy(directory, "one", limits ?: &none, NULL, now_s * NS_PER_S,
			    keep_from_s == UINT64_MAX ? UINT64_MAX : keep_from_s * NS_PER_S,
			    note_dropped, NULL, &tidied, e);
}

static void tidy(const struct archive_limits *limits, uint64_t now_s)
{
	struct error e;

	if (try_tidy(limits, now_s, UINT64_MAX, &e))
		fail_msg("%s", e.what);
}

/* Writes so many windows without a gap from START on, each with one tick, whose time is known. */
static void write_timed(int count)
{
	struct archive *a = opened("one");
	struct error e;

	tidied = (struct archive_tidied){ 0 };

	for (int i = 0; i < count; i++) {
		struct profile *p = window_of(START + 60 * i, "work", 1);

		assert_int_equal(tick_list_add(&p->ticks, 0, p->time_ns + NS_PER_MS), 0);
		assert_int_equal(write_profile(a, p, NULL, 0, &e), 0);
		profile_free(p);
	}
	archive_close(a);
}

/* Which windows have times: "." for each without, its hour for each with them. */
static const char *timed(void)
{
	static char text[4096];
	struct archive_window *windows;
	struct error e;
	size_t count;

	assert_int_equal(
		archive_list(directory, NULL, 0, UINT32_MAX * NS_PER_S, &windows, &count, &e), 0);
	assert_true(count < sizeof(text));
	for (size_t i = 0; i < count; i++) {
		struct profile *p;

		if (format_read(windows[i].path, NULL, &p, &e))
			fail_msg("%s", e.what);
		assert_int_equal(p->ticks.count,
				 p->ticks.count ? (uint64_t)profile_total(p, NULL) : 0);
		if (p->ticks.count)
			assert_int_equal(p->ticks.times[0], p->time_ns + NS_PER_MS);
		text[i] = p->ticks.count ? '0' + (windows[i].start_ns / NS_PER_S - START) / HOUR
					 : '.';
		profile_free(p);
	}
	text[count] = '\0';
	archive_list_free(windows, count);
	return text;
}

/* Whether timed() is this: so many without times, then so many of each hour. */
static bool timed_are(int without, int of_0, int of_1, int of_2)
{
	const char *text = timed();
	int hours[] = { of_0, of_1, of_2 };

	for (; without; without--)
		if (*text++ != '.')
			return false;
	for (int i = 0; i < 3; i++)
		for (; hours[i]; hours[i]--)
			if (*text++ != '0' + i)
				return false;
	return !*text;
}

static size_t count_listed(const char *text)
{
	size_t count = 0;

	while ((text = strchr(text, ' '))) {
		count++;
		text++;
	}
	return count;
}

/* The samples of all windows that are listed, all of which can be read; *count: how many. */
static uint64_t samples_of(uint64_t since_s, uint64_t until_s, unsigned int most_grain_s,
			   size_t *count)
{
	struct archive_window *windows;
	struct error e;
	uint64_t sum = 0;

	assert_int_equal(archive_list_sums(directory, NULL, since_s * NS_PER_S, until_s * NS_PER_S,
					   most_grain_s, &windows, count, &e),
			 0);
	for (size_t i = 0; i < *count; i++) {
		struct profile *p;

		if (format_read(windows[i].path, NULL, &p, &e))
			fail_msg("%s", e.what);
		sum += profile_total(p, NULL);
		profile_free(p);
	}
	archive_list_free(windows, *count);
	return sum;
}

/* Of all windows; with sums there are as many. */
static uint64_t samples(void)
{
	size_t count;
	uint64_t sum = samples_of(0, UINT32_MAX, 0, &count);

	for (unsigned int grain_s = 600; grain_s <= 86400; grain_s *= grain_s == 600 ? 6 : 24)
		assert_int_equal(samples_of(0, UINT32_MAX, grain_s, &count), sum);
	return sum;
}

static void merged(void **state)
{
	(void)state;
	write_windows(120);
	tidy(NULL, START + 2 * HOUR + 599);
	assert_int_equal(count_listed(listed(NULL, 0, UINT32_MAX)), 120);
	tidy(NULL, START + 2 * HOUR + 600);
	assert_int_equal(count_listed(listed(NULL, 0, UINT32_MAX)), 111);
	assert_memory_equal(listed(NULL, 0, UINT32_MAX), "one/2026-11-21/000000-10m.pb.gz ", 32);
	assert_int_equal(shell("! ls one/2026-11-21/000100.pb.gz"), 0);
	for (int i = 0; i < 20; i++)
		tidy(NULL, START + 10 * HOUR);
	assert_int_equal(count_listed(listed(NULL, 0, UINT32_MAX)), 12);
	for (int i = 0; i < 20; i++)
		tidy(NULL, START + 30 * HOUR);
	assert_string_equal(listed(NULL, 0, UINT32_MAX), "one/2026-11-21/000000-1h.pb.gz "
							 "one/2026-11-21/010000-1h.pb.gz ");
	assert_int_equal(samples(), 120);
}

static struct profile *read_window(const char *name)
{
	struct profile *p;
	struct error e;

	if (format_read(in_directory(name), NULL, &p, &e))
		fail_msg("%s", e.what);
	return p;
}

/* Ten minutes keep all labels; an hour keeps those that do not belong to a process. */
static void labels(void **state)
{
	struct profile *p;

	(void)state;
	write_windows(60);
	for (int i = 0; i < 6; i++)
		tidy(NULL, START + 10 * HOUR);
	p = read_window("one/2026-11-21/000000-10m.pb.gz");
	assert_int_equal(p->sample_count, 1);
	assert_int_equal(p->labels[p->samples->labels].pid, 17);
	assert_non_null(profile_find_tag(&p->labels[p->samples->labels], "cpu"));
	assert_string_equal(p->host, "host");
	profile_free(p);
	tidy(NULL, START + 30 * HOUR);
	p = read_window("one/2026-11-21/000000-1h.pb.gz");
	assert_int_equal(p->sample_count, 1);
	assert_int_equal(p->values[0], 60);
	assert_int_equal(p->labels[p->samples->labels].pid, 0);
	assert_string_equal(p->labels[p->samples->labels].comm, "web");
	assert_null(profile_find_tag(&p->labels[p->samples->labels], "cpu"));
	assert_string_equal(profile_find_tag(&p->labels[p->samples->labels], "unit")->text,
			    "web.service");
	assert_int_equal(p->time_ns, START * NS_PER_S);
	assert_int_equal(p->duration_ns, HOUR * NS_PER_S);
	assert_true(has_text(p->comments, p->comment_count, "windows=60"));
	profile_free(p);
}

/*
 * Sums are there before the windows are old, and are read in place of them where all lie in the
 * interval.
 */
static void summed(void **state)
{
	struct archive *a;
	size_t count;

	(void)state;
	write_windows(90);
	for (int i = 0; i < 10; i++)
		tidy(NULL, START + 95 * 60);
	assert_int_equal(count_listed(listed(NULL, 0, UINT32_MAX)), 90);
	assert_int_equal(samples(), 90);
	assert_int_equal(samples_of(START, START + 90 * 60, 86400, &count), 90);
	assert_int_equal(count, 1 + 3);
	assert_int_equal(samples_of(START, START + 90 * 60, 600, &count), 90);
	assert_int_equal(count, 9);
	/* 00:05 to 01:05 */
	assert_int_equal(samples_of(START + 300, START + 3900, 86400, &count), 60);
	assert_int_equal(count, 5 + 5 + 5);
	/* A window that comes late is in the sums, when they are made again. */
	a = opened("one");
	assert_string_equal(write_window(a, START + 61, "work", 1), "one/2026-11-21/000101.pb.gz");
	archive_close(a);
	assert_int_equal(samples(), 91);
	assert_int_equal(shell("cd one/2026-11-21 && ! ls 000000-10m.sum.pb.gz && "
			       "! ls 000000-1h.sum.pb.gz && ls 001000-10m.sum.pb.gz"),
			 0);
	for (int i = 0; i < 10; i++)
		tidy(NULL, START + 95 * 60);
	assert_int_equal(samples_of(START, START + 90 * 60, 86400, &count), 91);
	assert_int_equal(count, 1 + 3);
	/* They become the windows, and go with the first of them. */
	for (int i = 0; i < 20; i++)
		tidy(NULL, START + 30 * HOUR);
	assert_int_equal(samples(), 91);
	assert_int_equal(shell("ls one/2026-11-21 | tr '\\n' ' ' | grep -qx "
			       "'000000-1d.sum.pb.gz 000000-1h.pb.gz 010000-1h.pb.gz '"),
			 0);
	tidy(&(struct archive_limits){ .days = 1 }, START + 25 * HOUR + 61);
	assert_int_equal(dropped[ARCHIVE_OVER_DAYS].count, 1);
	assert_int_equal(shell("ls one/2026-11-21 | grep -qx 010000-1h.pb.gz"), 0);
}

/* What is not pushed yet stays fine. */
static void kept_fine(void **state)
{
	struct error e;

	(void)state;
	write_windows(30);
	for (int i = 0; i < 5; i++)
		assert_int_equal(try_tidy(NULL, START + 30 * HOUR, START + 15 * 60, &e), 0);
	assert_int_equal(count_listed(listed(NULL, 0, UINT32_MAX)), 21);
}

/* The gaps of windows are those of their sum. */
static void gaps(void **state)
{
	struct archive *a = opened("one");
	struct profile *p;
	char gap[64];

	(void)state;
	write_window(a, START, "work", 1);
	write_window(a, START + 60, "work", 1);
	write_window(a, START + 300, "work", 1);
	archive_close(a);
	tidy(NULL, START + 10 * HOUR);
	tidy(NULL, START + 30 * HOUR);
	p = read_window("one/2026-11-21/000000-1h.pb.gz");
	snprintf(gap, sizeof(gap), "gap=%llu+180", (unsigned long long)START + 120);
	assert_true(has_text(p->comments, p->comment_count, gap));
	assert_int_equal(p->duration_ns, 180 * NS_PER_S);
	profile_free(p);
}

static void damaged(void **state)
{
	(void)state;
	write_windows(11);
	assert_int_equal(
		shell("cd one/2026-11-21 && truncate -s 100 000300.pb.gz && "
		      ": >000400.pb.gz && rm 000500.pb.gz && ln -s 000600.pb.gz 000500.pb.gz"),
		0);
	tidy(NULL, START + 10 * HOUR);
	assert_int_equal(dropped[ARCHIVE_DAMAGED].count, 1);
	assert_int_equal(shell("cd one/2026-11-21 && ls 000300.pb.gz.damaged 000400.pb.gz.damaged "
			       "000500.pb.gz.damaged && ! ls 000600.pb.gz"),
			 0);
	assert_int_equal(samples(), 8);
	/* They are dropped like the others, and none keeps a directory. */
	tidy(&(struct archive_limits){ .bytes = 1 }, START + 10 * HOUR);
	assert_int_equal(count_listed(listed(NULL, 0, UINT32_MAX)), 1);
	assert_int_equal(shell("! ls one/*/*.damaged"), 0);
}

static uint64_t bytes(void)
{
	struct archive_window *windows;
	struct error e;
	size_t count;
	uint64_t sum = 0;

	assert_int_equal(archive_list(directory, NULL, 0, UINT64_MAX, &windows, &count, &e), 0);
	for (size_t i = 0; i < count; i++)
		sum += windows[i].bytes;
	archive_list_free(windows, count);
	return sum;
}

static void over_bytes(void **state)
{
	uint64_t all, one;

	(void)state;
	write_windows(10);
	all = bytes();
	one = all / 10;
	assert_true(one > 0);
	tidy(&(struct archive_limits){ .bytes = all }, START + 700);
	assert_int_equal(bytes(), all);
	tidy(&(struct archive_limits){ .bytes = 3 * one + 1 }, START + 700);
	assert_int_equal(bytes(), 3 * one);
	assert_int_equal(dropped[ARCHIVE_OVER_BYTES].count, 7);
	assert_int_equal(dropped[ARCHIVE_OVER_BYTES].bytes, 7 * one);
	assert_int_equal(dropped[ARCHIVE_OVER_BYTES].first_ns, START * NS_PER_S);
	assert_int_equal(dropped[ARCHIVE_OVER_BYTES].limit_ns, (START + 420) * NS_PER_S);
	assert_string_equal(listed(NULL, 0, UINT32_MAX),
			    "one/2026-11-21/000700.pb.gz one/2026-11-21/000800.pb.gz "
			    "one/2026-11-21/000900.pb.gz ");
	tidy(&(struct archive_limits){ .bytes = 1 }, START + 700);
	assert_string_equal(listed(NULL, 0, UINT32_MAX), "one/2026-11-21/000900.pb.gz ");
}

/* What a wrong clock has dated years ahead makes room before what is real. */
static void dated_ahead(void **state)
{
	struct archive *a;
	uint64_t all;

	(void)state;
	write_windows(3);
	a = opened("one");
	for (int i = 0; i < 3; i++)
		write_window(a, START + 1000 * 24 * HOUR + i * 60, "work", 1);
	archive_close(a);
	all = bytes();
	tidy(&(struct archive_limits){ .bytes = all }, START + 700);
	assert_int_equal(bytes(), all);
	tidy(&(struct archive_limits){ .bytes = all / 2 + 1 }, START + 700);
	assert_int_equal(dropped[ARCHIVE_OVER_BYTES].count, 3);
	assert_int_equal(dropped[ARCHIVE_OVER_BYTES].first_ns,
			 (START + 1000 * 24 * HOUR) * NS_PER_S);
	assert_int_equal(dropped[ARCHIVE_OVER_BYTES].limit_ns,
			 (START + 1000 * 24 * HOUR + 180) * NS_PER_S);
	assert_string_equal(listed(NULL, 0, UINT32_MAX),
			    "one/2026-11-21/000000.pb.gz one/2026-11-21/000100.pb.gz "
			    "one/2026-11-21/000200.pb.gz ");
	assert_int_equal(shell("test $(ls one | wc -l) = 1"), 0); /* no directory without windows */
}

static void over_days(void **state)
{
	struct archive *a = opened("one");

	(void)state;
	write_window(a, START, "work", 1);
	write_window(a, START + 26 * HOUR, "work", 1);
	archive_close(a);
	tidy(&(struct archive_limits){ .days = 2 }, START + 47 * HOUR);
	assert_int_equal(dropped[ARCHIVE_OVER_DAYS].count, 0);
	tidy(&(struct archive_limits){ .days = 2 }, START + 50 * HOUR);
	assert_int_equal(dropped[ARCHIVE_OVER_DAYS].count, 1);
	assert_int_equal(shell("! ls -d one/2026-11-21"), 0);
	/* The newest stays, whatever its age. */
	tidy(&(struct archive_limits){ .days = 2 }, START + 500 * HOUR);
	assert_int_equal(samples(), 1);
}

#define DAY (24 * HOUR)

/* One window while the clock is a year ahead: nothing is dropped, merged or summed by it. */
static void clock_jumps(void **state)
{
	const struct archive_limits month = { .days = 30 };
	struct archive *a;
	char *before;

	(void)state;
	write_windows(90);
	tidy(&month, START + 90 * 60);
	before = strdup(listed(NULL, 0, START + DAY));
	assert_non_null(before);
	a = opened("one");
	write_window(a, START + 365 * DAY, "work", 1);
	for (int i = 0; i < 5; i++)
		tidy(&month, START + 365 * DAY + 60);
	assert_int_equal(dropped[ARCHIVE_CLOCK_JUMPED].first_ns, (START + 90 * 60) * NS_PER_S);
	assert_int_equal(dropped[ARCHIVE_CLOCK_JUMPED].limit_ns,
			 (START + 365 * DAY + 60) * NS_PER_S);
	assert_int_equal(dropped[ARCHIVE_OVER_DAYS].count, 0);
	assert_int_equal(tidied.old_before_ns, (START + 90 * 60 - 30 * DAY) * NS_PER_S);
	assert_string_equal(listed(NULL, 0, START + DAY), before);
	free(before);
	/* It is right again: the window of the wrong time does not count. */
	for (int i = 90; i < 95; i++)
		write_window(a, START + 60 * i, "work", 1);
	archive_close(a);
	tidy(&month, START + 95 * 60);
	assert_int_equal(dropped[ARCHIVE_CLOCK_JUMPED].limit_ns, 0);
	assert_int_equal(samples(), 96);
	assert_int_equal(shell("cd one/2026-11-21 && ls 010000.pb.gz && ! ls 013000-10m.sum.pb.gz"),
			 0);
}

/* The same when the keeper starts, before a window of the new time is there. */
static void clock_jumps_first(void **state)
{
	(void)state;
	write_windows(3);
	tidy(&(struct archive_limits){ .days = 30 }, START + 365 * DAY);
	assert_int_equal(samples(), 3);
	assert_int_equal(dropped[ARCHIVE_CLOCK_JUMPED].first_ns, (START + 180) * NS_PER_S);
}

/* A jump by less than the days to retain would not drop most. */
static void clock_jumps_days(void **state)
{
	struct archive *a = opened("one");

	(void)state;
	for (int i = 0; i < 40; i++)
		write_window(a, START + i * DAY, "work", 1);
	write_window(a, START + 55 * DAY, "work", 1);
	archive_close(a);
	tidy(&(struct archive_limits){ .days = 45 }, START + 55 * DAY + 60);
	assert_int_equal(samples(), 41);
}

/* A clock that stays where it has jumped to is believed, but most is not dropped at once. */
static void most_old(void **state)
{
	const struct archive_limits month = { .days = 30 };
	struct archive *a;

	(void)state;
	write_windows(100);
	a = opened("one");
	for (int i = 0; i < 61; i++)
		write_window(a, START + 365 * DAY + 60 * i, "work", 1);
	tidy(&month, START + 365 * DAY + 61 * 60);
	assert_int_equal(samples(), 161);
	assert_int_equal(dropped[ARCHIVE_CLOCK_JUMPED].limit_ns, 0);
	assert_int_equal(dropped[ARCHIVE_OVER_DAYS].count, 0);
	assert_true(dropped[ARCHIVE_MOST_OLD].count > 0);
	assert_int_equal(dropped[ARCHIVE_MOST_OLD].first_ns, START * NS_PER_S);
	assert_int_equal(dropped[ARCHIVE_MOST_OLD].limit_ns, (START + 2 * HOUR) * NS_PER_S);
	assert_int_equal(tidied.old_before_ns, 0);
	/* The machine was off for a year, and has recorded as much since. */
	for (int i = 61; i < 130; i++)
		write_window(a, START + 365 * DAY + 60 * i, "work", 1);
	archive_close(a);
	tidy(&month, START + 365 * DAY + 130 * 60);
	assert_true(dropped[ARCHIVE_OVER_DAYS].count > 0);
	assert_int_equal(dropped[ARCHIVE_MOST_OLD].count, 0);
	assert_int_equal(tidied.old_before_ns, (START + 335 * DAY + 130 * 60) * NS_PER_S);
	assert_int_equal(samples(), 130);
}

/* Who lowers the limit drops most at once: there is no gap, so the clock did not jump. */
static void fewer_days(void **state)
{
	struct archive *a = opened("one");

	(void)state;
	for (int i = 0; i < 20; i++)
		write_window(a, START + i * DAY, "work", 1);
	archive_close(a);
	tidy(&(struct archive_limits){ .days = 5 }, START + 20 * DAY);
	assert_int_equal(samples(), 5);
}

/* Names in the future, as a clock or a user has made them, make nothing old. */
static void forged_future(void **state)
{
	struct archive *a;

	(void)state;
	write_windows(90);
	a = opened("one");
	write_window(a, START + 300 * DAY, "work", 1);
	archive_close(a);
	assert_int_equal(shell("cd one && mkdir 2099-01-01 && cp 2026-11-21/000000.pb.gz "
			       "2099-01-01/000000-1h.pb.gz"),
			 0);
	tidy(&(struct archive_limits){ .days = 30 }, START + 90 * 60);
	assert_int_equal(samples(), 92);
	/* The time of one of them has come, but not that of a clock: it is one file. */
	tidy(&(struct archive_limits){ .days = 30 }, utc("2099-01-01 01:00:00"));
	assert_int_equal(samples(), 92);
}

/* A clock that is set back drops nothing. */
static void clock_back(void **state)
{
	struct archive *a;

	(void)state;
	write_windows(90);
	a = opened("one");
	write_window(a, START - 365 * DAY, "work", 1);
	archive_close(a);
	tidy(&(struct archive_limits){ .days = 30 }, START - 365 * DAY + 60);
	assert_int_equal(samples(), 91);
}

static void no_space(void **state)
{
	(void)state;
	write_windows(3);
	tidy(&(struct archive_limits){ .free_bytes = 1 }, START + 700);
	assert_int_equal(samples(), 3);
	tidy(&(struct archive_limits){ .free_bytes = UINT64_MAX }, START + 700);
	assert_int_equal(dropped[ARCHIVE_NO_SPACE].count, 2);
	assert_int_equal(samples(), 1);
}

/* A process that is killed at any time while it merges loses nothing and counts nothing twice. */
static void killed(void **state)
{
	static const int hours[] = { 2, 10, 30 };

	(void)state;
	for (int i = 0; i < 40; i++) {
		pid_t pid;
		int status;

		write_windows(60);
		pid = fork();
		if (pid == 0) {
			for (;;)
				tidy(NULL, START + hours[i % 3] * HOUR);
		}
		usleep(700 * i);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(samples(), 60);
		archive_close(opened("one"));
		assert_int_equal(shell("! find one -name '.new-*' | grep ."), 0);
		for (int j = 0; j < 5; j++)
			tidy(NULL, START + 30 * HOUR);
		assert_string_equal(listed(NULL, 0, UINT32_MAX), "one/2026-11-21/000000-1h.pb.gz ");
		assert_int_equal(shell("ls one/2026-11-21 | grep -v sum | wc -l | grep -qx 1"), 0);
		assert_int_equal(samples(), 60);
		assert_int_equal(shell("rm -r one"), 0);
	}
}

/* --- Shortened stacks --- */

/* A frame at this address, in a function of its own. */
static uint32_t frame_in(struct profile *p, uint64_t address, const char *name)
{
	struct profile_function f = { name, name, "", 0 };
	struct profile_line line = { 0 };
	uint32_t frame;

	assert_int_equal(profile_add_function(p, &f, &line.function), 0);
	assert_int_equal(profile_add_line_location(p, address, 0, &line, 1, &frame), 0);
	return frame;
}

/* Samples of `leaves` functions, each below its own callers and main(). */
static struct profile *many_stacks(uint64_t time_s, uint32_t leaves)
{
	struct profile *p = window_of(time_s, "work", 1000);
	uint32_t frames[3], id = p->samples->labels;

	for (uint32_t i = 0; i < leaves; i++) {
		char names[3][32];

		snprintf(names[0], 32, "leaf_%u", i % 10);
		snprintf(names[1], 32, "caller_%u", i);
		snprintf(names[2], 32, "main");
		for (int j = 0; j < 3; j++)
			frames[j] = frame_in(p, 0x1000 + 16 * (i % 100) + j, names[j]);
		add_sample(p, frames, 3, id, 1);
	}
	return p;
}

static uint64_t total_of(const struct profile *p, const char *name, bool leaf)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *s = &p->samples[i];

		for (uint32_t j = 0; j < (leaf ? 1 : s->depth); j++) {
			const struct profile_location *l =
				&p->locations[p->frames[s->first_frame + j]];

			if (l->line_count &&
			    strcmp(p->functions[p->lines[l->first_line].function].name, name) == 0)
				sum += p->values[i * p->value_type_count];
		}
	}
	return sum;
}

/* Rare callers go, but no sample, leaf or frequent caller does; and the sum says so. */
static void shortened(void **state)
{
	struct archive *a = opened("one");
	struct profile *p = many_stacks(START, 20000);
	struct error e;

	(void)state;
	assert_int_equal(write_profile(a, p, NULL, 0, &e), 0);
	profile_free(p);
	archive_close(a);
	tidy(NULL, START + 30 * HOUR);
	p = read_window("one/2026-11-21/000000-1h.pb.gz");
	assert_true(p->sample_count < 5000);
	assert_int_equal(profile_total(p, NULL), 21000);
	assert_int_equal(total_of(p, "leaf_7", true), 2000);
	assert_int_equal(total_of(p, "main", false), 20000);
	assert_int_equal(total_of(p, "caller_7", false), 0);
	assert_true(has_text(p->comments, p->comment_count, "stacks_without=0.95"));
	profile_free(p);
}

/* A service with few stacks keeps all its callers beside one with many, however small its share is.
 */
static void shortened_beside(void **state)
{
	static const char *const names[] = { "own_leaf", "own_caller", "own_main" };
	struct archive *a = opened("one");
	struct profile *p = many_stacks(START, 20000);
	struct profile_labels small = { 0 };
	uint32_t frames[3], id;
	struct error e;

	(void)state;
	assert_int_equal(profile_string(p, "small", &small.comm), 0);
	assert_int_equal(profile_add_labels(p, &small, &id), 0);
	for (int j = 0; j < 3; j++)
		frames[j] = frame_in(p, 0x9000 + j, names[j]);
	add_sample(p, frames, 3, id, 2);
	assert_int_equal(write_profile(a, p, NULL, 0, &e), 0);
	profile_free(p);
	archive_close(a);
	tidy(NULL, START + 30 * HOUR);
	p = read_window("one/2026-11-21/000000-1h.pb.gz");
	assert_true(p->sample_count < 7000);
	assert_int_equal(total_of(p, "own_leaf", true), 2);
	assert_int_equal(total_of(p, "own_caller", false), 2);
	assert_int_equal(total_of(p, "own_main", false), 2);
	profile_free(p);
}

/* Those of minutes and of ten minutes have times, those of an hour never. */
static void times_by_age(void **state)
{
	struct archive_limits limits = { .times_s = 3 * HOUR };

	(void)state;
	write_timed(180);
	for (int i = 0; i < 20; i++)
		tidy(&limits, START + 3 * HOUR);
	assert_true(timed_are(0, 6, 60, 60));
	for (int i = 0; i < 20; i++)
		tidy(&limits, START + 4 * HOUR);
	assert_true(timed_are(6, 0, 6, 60));
	limits.times_s = HOUR + HOUR / 2;
	for (int i = 0; i < 40; i++)
		tidy(&limits, START + 4 * HOUR);
	assert_true(timed_are(12 + 30, 0, 0, 30));
	limits.times_s = 100 * HOUR;
	for (int i = 0; i < 20; i++)
		tidy(&limits, START + 27 * HOUR);
	assert_true(timed_are(3, 0, 0, 0));
	assert_int_equal(samples(), 180);
}

static void times_by_bytes(void **state)
{
	struct archive_limits limits = { .times_s = 24 * HOUR };
	struct archive_window *windows;
	struct error e;
	size_t count;

	(void)state;
	write_timed(60);
	assert_int_equal(
		archive_list(directory, NULL, 0, UINT32_MAX * NS_PER_S, &windows, &count, &e), 0);
	for (size_t i = count - 25; i < count; i++)
		limits.times_bytes += windows[i].bytes;
	archive_list_free(windows, count);
	/* The sum of the last ten minutes that are complete is one of the 25 files. */
	for (int i = 0; i < 20; i++)
		tidy(&limits, START + HOUR);
	assert_true(timed_are(36, 24, 0, 0));
	limits.times_bytes = 1;
	for (int i = 0; i < 20; i++)
		tidy(&limits, START + HOUR);
	assert_true(timed_are(59, 1, 0, 0));
	limits.times_s = 0;
	tidy(&limits, START + HOUR);
	assert_true(timed_are(60, 0, 0, 0));
	assert_int_equal(samples(), 60);
}

/* Writes the file of a trigger at START + at_s; returns its name, or "" if it is -ENOENT. */
static const char *write_trigger(enum window_trigger kind, int at_s, int before_s, int after_s)
{
	struct archive_trigger trigger = { kind, "load:x:1", (START + at_s) * NS_PER_S,
					   (START + at_s - before_s) * NS_PER_S,
					   (START + at_s + after_s) * NS_PER_S };
	static char path[4096];
	struct error e;
	int err = archive_write_trigger(directory, "one", &trigger, path, sizeof(path), &e);

	if (err == -ENOENT)
		return "";
	if (err)
		fail_msg("%s", e.what);
	assert_true(trigger.time_ns >= (START + at_s) * NS_PER_S);
	return strrchr(path, '/') + 1;
}

/* The file of a trigger has the ticks of its seconds, whatever windows they are in. */
static void triggers(void **state)
{
	struct profile *p;

	(void)state;
	write_timed(3);
	assert_string_equal(write_trigger(WINDOW_TRIGGER_LOAD, 60, 50, 30),
			    "000100-trigger-load.pb.gz");
	p = read_window("one/2026-11-21/000100-trigger-load.pb.gz");
	assert_int_equal(profile_total(p, NULL), 1);
	assert_int_equal(p->ticks.count, 1);
	assert_int_equal(p->ticks.times[0], (START + 60) * NS_PER_S + NS_PER_MS);
	assert_int_equal(p->time_ns, (START + 10) * NS_PER_S);
	assert_int_equal(p->duration_ns, 80 * NS_PER_S);
	assert_false(p->totals.known);
	assert_int_equal(p->all_samples, 0);
	assert_true(has_text(p->comments, p->comment_count, "trigger=load:x:1"));
	profile_free(p);
	/* A name that is taken, another trigger, and seconds that were idle or not recorded */
	assert_string_equal(write_trigger(WINDOW_TRIGGER_LOAD, 60, 60, 120),
			    "000101-trigger-load.pb.gz");
	p = read_window("one/2026-11-21/000101-trigger-load.pb.gz");
	assert_int_equal(profile_total(p, NULL), 3);
	assert_int_equal(p->duration_ns, 180 * NS_PER_S);
	profile_free(p);
	assert_string_equal(write_trigger(WINDOW_TRIGGER_SIGNAL, 60, 60, 120),
			    "000100-trigger-signal.pb.gz");
	assert_string_equal(write_trigger(WINDOW_TRIGGER_SIGNAL, 100, 10, 10), "");
	assert_string_equal(write_trigger(WINDOW_TRIGGER_SIGNAL, 1000, 10, 10), "");
}

/* They are no windows: not listed, not merged, and no part of sums; but limits hold for them. */
static void triggers_stay(void **state)
{
	const struct archive_limits limits = { .days = 5 }, few = { .bytes = 1 };

	(void)state;
	write_timed(60);
	assert_string_equal(write_trigger(WINDOW_TRIGGER_COMMAND, 0, 0, 120),
			    "000000-trigger-command.pb.gz");
	assert_string_equal(write_trigger(WINDOW_TRIGGER_PRESSURE, 1800, 60, 60),
			    "003000-trigger-pressure.pb.gz");
	assert_int_equal(count_listed(listed(NULL, 0, UINT32_MAX)), 60);
	for (int i = 0; i < 20; i++)
		tidy(&limits, START + 30 * HOUR);
	assert_string_equal(listed(NULL, 0, UINT32_MAX), "one/2026-11-21/000000-1h.pb.gz ");
	assert_int_equal(samples(), 60);
	assert_int_equal(shell("ls one/2026-11-21/000000-trigger-command.pb.gz"), 0);
	assert_int_equal(shell("ls one/2026-11-21/003000-trigger-pressure.pb.gz"), 0);
	write_windows_at(START + 6 * 24 * HOUR, 60);
	tidy(&limits, START + 6 * 24 * HOUR + HOUR);
	assert_int_equal(shell("! ls one/2026-11-21"), 0);
	write_timed(1);
	assert_string_equal(write_trigger(WINDOW_TRIGGER_SIGNAL, 0, 0, 60),
			    "000000-trigger-signal.pb.gz");
	tidy(&few, START + 6 * 24 * HOUR + HOUR);
	assert_int_equal(shell("! ls one/2026-11-21"), 0);
}

/* Each window is read once, and no more than four in a call; none that waits to be pushed. */
static void times_by_call(void **state)
{
	const struct archive_limits limits = { 0 };
	struct error e;

	(void)state;
	write_timed(20);
	assert_int_equal(try_tidy(&limits, START + HOUR, START + 300, &e), 0);
	assert_true(timed_are(3, 17, 0, 0));
	for (int i = 0; i < 3; i++)
		assert_int_equal(try_tidy(&limits, START + HOUR, START + 300, &e), 0);
	assert_true(timed_are(5, 15, 0, 0));
	assert_int_equal(tidied.times_from_ns, (START + 4 * 60 + 1) * NS_PER_S);
	/* What is known to have none is not read again. */
	assert_int_equal(shell("echo damaged >one/2026-11-21/000100.pb.gz"), 0);
	tidy(&limits, START + HOUR);
	assert_int_equal(shell("grep damaged one/2026-11-21/000100.pb.gz"), 0);
	assert_int_equal(tidied.times_from_ns, (START + 8 * 60 + 1) * NS_PER_S);
}

/* What another process keeps beside the windows: two parts, the newer of which stays. */
struct beside_part {
	uint64_t bytes, end_s, newer_bytes;
	int drops;
};

static int measure_part(void *context, uint64_t *bytes, uint64_t *oldest_end_s, struct error *e)
{
	const struct beside_part *part = context;

	(void)e;
	*bytes = part->bytes + part->newer_bytes;
	*oldest_end_s = part->bytes ? part->end_s : UINT64_MAX;
	return 0;
}

static void drop_part(void *context, uint64_t end_s)
{
	struct beside_part *part = context;

	assert_int_equal(end_s, part->end_s);
	part->bytes = 0;
	part->drops++;
}

/* Returns how many windows of ten are left when all that is kept may have so much. */
static uint64_t left_beside(struct beside_part *part, uint64_t limit)
{
	const struct archive_beside beside = {
		.measure = measure_part,
		.drop_before = drop_part,
		.context = part,
	};
	const struct archive_limits limits = { .bytes = limit };
	struct error e;
	uint64_t dropped_windows;

	assert_int_equal(shell("rm -rf one"), 0);
	write_windows(10);
	memset(dropped, 0, sizeof(dropped));
	if (archive_tidy(directory, "one", &limits, &beside, (START + 700) * NS_PER_S, UINT64_MAX,
			 note_dropped, NULL, &tidied, &e))
		fail_msg("%s", e.what);
	dropped_windows = dropped[ARCHIVE_OVER_BYTES].count;
	return 10 - dropped_windows;
}

static void beside_windows(void **state)
{
	const uint64_t mib = 1024 * 1024;
	struct beside_part old = { .bytes = mib, .end_s = START - HOUR };
	struct beside_part recent = { .end_s = START + HOUR };
	struct beside_part large = { .bytes = 4 * mib, .end_s = START + HOUR };
	struct beside_part newest = { .newer_bytes = 4 * mib };

	(void)state;
	/* It counts; what is older than the windows goes before them. */
	assert_int_equal(left_beside(&old, mib), 10);
	assert_int_equal(old.drops, 1);
	/* What is newer goes after all but the last, unless it has more than half. */
	recent.bytes = bytes() / 2;
	assert_int_equal(left_beside(&recent, bytes() * 3 / 2 - 1), 9);
	assert_int_equal(recent.drops, 0);
	assert_int_equal(left_beside(&large, 4 * mib), 10);
	assert_int_equal(large.drops, 1);
	/* What may not go does not end the loop, nor the last window. */
	assert_int_equal(left_beside(&newest, 4 * mib), 1);
}

/* A window with so many routes of a service, from this number on. The first has most samples. */
static struct profile *window_with_routes(const char *unit, unsigned int first, unsigned int count)
{
	struct profile *p = window_of(START, "work", 1);
	const uint32_t frame = p->frames[p->samples[0].first_frame];

	p->totals.known = true;
	for (unsigned int i = first; i < first + count; i++) {
		char route[32];
		struct profile_tag tags[] = { { "route", route, 0, "" }, { "unit", unit, 0, "" } };
		struct profile_labels labels = { .comm = "web", .tags = tags, .tag_count = 2 };
		uint32_t id;

		snprintf(route, sizeof(route), "/%x", i);
		assert_int_equal(profile_add_labels(p, &labels, &id), 0);
		add_sample(p, &frame, 1, id, i == first ? 5 : 2);
	}
	return p;
}

/* How many routes of the service a profile has. *others: samples without theirs. */
static size_t count_routes(const struct profile *p, const char *unit, int64_t *others)
{
	size_t count = 0;

	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_labels *labels = &p->labels[p->samples[i].labels];
		const char *route = profile_tag_text(labels, TAG_ROUTE);

		if (!route || strcmp(profile_tag_text(labels, TAG_UNIT), unit) != 0)
			continue;
		if (strcmp(route, "[others]") == 0)
			*others += p->values[i * p->value_type_count];
		else
			count++;
	}
	return count;
}

/* Whoever makes up routes gets as many as others leave, and others keep theirs. */
static void many_labels(void **state)
{
	struct window_sum sum = { .most = 100000, .tasks = true };
	const struct profile *p;
	int64_t of_attacker = 0, of_shop = 0;
	struct error e;

	(void)state;
	assert_int_equal(window_sum_add(&sum, window_with_routes("shop.service", 0, 100), &e), 0);
	for (unsigned int i = 0; i < 20; i++) {
		assert_int_equal(
			window_sum_add(&sum, window_with_routes("web.service", i * 2000, 2000), &e),
			0);
		/* Nor does it take more memory meanwhile than a multiple of that. */
		assert_true(sum.p->sample_count <= 4 * 4064 + 2 * 1 + 2);
	}
	assert_int_equal(window_sum_finish(&sum, &p, &e), 0);
	assert_int_equal(count_routes(p, "shop.service", &of_shop), 100);
	assert_int_equal(of_shop, 0);
	assert_int_equal(count_routes(p, "web.service", &of_attacker), 4064 - 100);
	assert_int_equal(of_attacker, 20 * (5 + 1999 * 2) - 20 * 5 - 2 * (4064 - 100 - 20));
	assert_int_equal(p->totals.context_others, of_attacker);
	assert_int_equal(profile_total(p, NULL), 21 + 5 + 99 * 2 + 20 * (5 + 1999 * 2));
	window_sum_free(&sum);
}

#define test(function) \
	cmocka_unit_test_setup_teardown(function, directory_setup, directory_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(merged),
		test(summed),
		test(labels),
		test(kept_fine),
		test(gaps),
		test(damaged),
		test(over_bytes),
		test(dated_ahead),
		test(over_days),
		test(clock_jumps),
		test(clock_jumps_first),
		test(clock_jumps_days),
		test(most_old),
		test(fewer_days),
		test(forged_future),
		test(clock_back),
		test(no_space),
		test(killed),
		test(shortened),
		test(shortened_beside),
		test(times_by_age),
		test(times_by_bytes),
		test(times_by_call),
		test(triggers),
		test(triggers_stay),
		test(beside_windows),
		test(many_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
