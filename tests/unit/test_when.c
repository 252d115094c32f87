// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tool/when.h"
#include "util/clock.h"

/* Now is Sunday, 2026-11-22 10:00:00 in Berlin: 09:00 UTC. */
#define ZONE "CET-1CEST,M3.5.0,M10.5.0/3"
#define NOW  (UINT64_C(1795338000) * NS_PER_S)

static int setup(void **state)
{
	(void)state;
	setenv("TZ", ZONE, 1);
	tzset();
	return 0;
}

static void is_at(const char *text, bool later, const char *expected)
{
	char found[WHEN_SIZE];
	const struct when_clock clock = { .now_ns = NOW, .end_ns = NOW };
	uint64_t time_ns;

	if (when_parse(text, &clock, later, &time_ns))
		fail_msg("\"%s\" is not understood", text);
	when_format(time_ns, found);
	if (strcmp(found, expected) != 0)
		fail_msg("\"%s\" is %s, not %s", text, found, expected);
}

static void dates(void **state)
{
	(void)state;
	is_at("now", false, "2026-11-22 10:00:00 CET");
	is_at("2026-11-21 03:00", false, "2026-11-21 03:00:00 CET");
	is_at("  2026-11-21  3:00:07 ", false, "2026-11-21 03:00:07 CET");
	is_at("2026-11-21T03:00:00", false, "2026-11-21 03:00:00 CET");
	is_at("2026-07-21 03:00", false, "2026-07-21 03:00:00 CEST");
	is_at("2026-11-21", false, "2026-11-21 00:00:00 CET");
	is_at("2026-11-21T03:00:00Z", false, "2026-11-21 04:00:00 CET");
	is_at("2026-11-21 03:00 UTC", false, "2026-11-21 04:00:00 CET");
	is_at("2026-11-21 03:00+05:30", false, "2026-11-20 22:30:00 CET");
	is_at("2026-11-21 03:00 -0800", false, "2026-11-21 12:00:00 CET");
	is_at("2027-01-01", false, "2027-01-01 00:00:00 CET");
	is_at("2024-02-29", false, "2024-02-29 00:00:00 CET");
	is_at("@1795338000", false, "2026-11-22 10:00:00 CET");
	is_at("@0", false, "1970-01-01 01:00:00 CET");
}

/* The last one that is not in the future */
static void clock_times(void **state)
{
	(void)state;
	is_at("03:00", false, "2026-11-22 03:00:00 CET");
	is_at("10:00", false, "2026-11-22 10:00:00 CET");
	is_at("10:01", false, "2026-11-21 10:01:00 CET");
	is_at("23:59:59", false, "2026-11-21 23:59:59 CET");
	is_at("today", false, "2026-11-22 00:00:00 CET");
	is_at("today 14:30", false, "2026-11-22 14:30:00 CET");
	is_at("Yesterday 14:30", false, "2026-11-21 14:30:00 CET");
	is_at("yesterday", false, "2026-11-21 00:00:00 CET");
	is_at("08:59 UTC", false, "2026-11-22 09:59:00 CET");
	is_at("09:01 UTC", false, "2026-11-21 10:01:00 CET");
	is_at("23:30 -0900", false, "2026-11-22 09:30:00 CET");
}

static void week_days(void **state)
{
	(void)state;
	is_at("Tue", false, "2026-11-17 00:00:00 CET");
	is_at("tuesday 14:30", false, "2026-11-17 14:30:00 CET");
	is_at("Sat", false, "2026-11-21 00:00:00 CET");
	is_at("Mon", false, "2026-11-16 00:00:00 CET");
	is_at("Sun", false, "2026-11-22 00:00:00 CET");
	is_at("Sun 09:59", false, "2026-11-22 09:59:00 CET");
	is_at("Sun 10:01", false, "2026-11-15 10:01:00 CET");
}

static void relative(void **state)
{
	(void)state;
	is_at("-2h", false, "2026-11-22 08:00:00 CET");
	is_at("-1h30m", false, "2026-11-22 08:30:00 CET");
	is_at("-90 min", false, "2026-11-22 08:30:00 CET");
	is_at("2 hours ago", false, "2026-11-22 08:00:00 CET");
	is_at("2 hours 5 minutes ago", false, "2026-11-22 07:55:00 CET");
	is_at("an hour ago", false, "2026-11-22 09:00:00 CET");
	is_at("1 day ago", false, "2026-11-21 10:00:00 CET");
	is_at("-1w", false, "2026-11-15 10:00:00 CET");
	is_at("-45s", false, "2026-11-22 09:59:15 CET");
}

/* 02:30 was twice on 2026-10-25, and was not on 2026-03-29. */
static void summer_time(void **state)
{
	(void)state;
	is_at("2026-10-25 02:30", false, "2026-10-25 02:30:00 CEST");
	is_at("2026-10-25 02:30", true, "2026-10-25 02:30:00 CET");
	is_at("2026-10-25 02:30 UTC", false, "2026-10-25 03:30:00 CET");
	is_at("2026-10-25 03:00", false, "2026-10-25 03:00:00 CET");
	is_at("2026-03-29 02:30", false, "2026-03-29 03:30:00 CEST");
	is_at("2026-10-25", true, "2026-10-25 00:00:00 CEST");
}

static void not_understood(void **state)
{
	static const char *const texts[] = {
		"",
		"3",
		"03",
		"3pm",
		"03:60",
		"24:00",
		"03/11/2026",
		"11-21",
		"2026-11-31",
		"2026-13-01",
		"tomorrow",
		"2h",
		"+2s",
		"03:00:00.",
		"03:00.5",
		"@1.",
		"-2",
		"-h",
		"2 hours",
		"-2h ago",
		"2 fortnights ago",
		"Tues",
		"Tue Wed",
		"now now",
		"@",
		"@1x",
		"03:00 PST",
		"03:00+15:00",
		"2026-11-21 03:00 03:00",
		"ago",
		"-99999999w",
		"1795338000",
		"last week",
	};
	const struct when_clock clock = { .now_ns = NOW, .end_ns = NOW };
	uint64_t time_ns;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (when_parse(texts[i], &clock, false, &time_ns) == 0)
			fail_msg("\"%s\" is understood", texts[i]);
}

static void milliseconds(void **state)
{
	(void)state;
	is_at("2026-11-21 03:00:00.25", false, "2026-11-21 03:00:00.250 CET");
	is_at("2026-11-21T03:00:00.0019Z", false, "2026-11-21 04:00:00.001 CET");
	is_at("09:59:59.9999999999", false, "2026-11-22 09:59:59.999 CET");
	is_at("10:00:00.001", false, "2026-11-21 10:00:00.001 CET");
	is_at("@1795338000.5", false, "2026-11-22 10:00:00.500 CET");
	is_at("-200ms", false, "2026-11-22 09:59:59.800 CET");
	is_at("-1m2s5ms", false, "2026-11-22 09:58:57.995 CET");
	is_at("2.5 minutes ago", false, "2026-11-22 09:57:30 CET");
}

/* Times of a file of this time. */
static void is_of_file_at(const char *text, uint64_t start, uint64_t length, const char *expected)
{
	const struct when_clock clock = { NOW, start, start + length };
	char found[WHEN_SIZE];
	uint64_t time_ns;

	if (when_parse(text, &clock, false, &time_ns))
		fail_msg("\"%s\" is not understood", text);
	when_format(time_ns, found);
	if (strcmp(found, expected) != 0)
		fail_msg("\"%s\" is %s, not %s", text, found, expected);
}

/* Times of a file of 2026-11-17, 23:58:30 to 00:01:29.5, which is a Tuesday and a Wednesday. */
static void is_in_file_at(const char *text, const char *expected)
{
	is_of_file_at(text, UINT64_C(1794956310) * NS_PER_S, 179 * NS_PER_S + NS_PER_S / 2,
		      expected);
}

/* Of a file of this Sunday, from 09:50 to 09:55: five minutes ago. */
static void is_of_today_at(const char *text, const char *expected)
{
	is_of_file_at(text, NOW - 600 * NS_PER_S, 300 * NS_PER_S, expected);
}

static void of_file(void **state)
{
	(void)state;
	is_in_file_at("+0s", "2026-11-17 23:58:30 CET");
	is_in_file_at("+2.5s", "2026-11-17 23:58:32.500 CET");
	is_in_file_at("+1m", "2026-11-17 23:59:30 CET");
	is_in_file_at("+ 1m 500ms", "2026-11-17 23:59:30.500 CET");
	is_in_file_at("23:59:02.3", "2026-11-17 23:59:02.300 CET");
	is_in_file_at("00:00", "2026-11-18 00:00:00 CET");
	is_in_file_at("00:01:30", "2026-11-18 00:01:30 CET"); /* half a second after its end */
	is_in_file_at("23:58", "2026-11-17 23:58:00 CET");
	is_in_file_at("22:59 UTC", "2026-11-17 23:59:00 CET");
	is_in_file_at("Tue 23:59", "2026-11-17 23:59:00 CET");
	is_in_file_at("Wed", "2026-11-18 00:00:00 CET");
	is_in_file_at("Thu", "2026-11-12 00:00:00 CET");
	is_in_file_at("Wed 00:02", "2026-11-18 00:02:00 CET"); /* half a minute after its end */
	is_of_today_at("Tue", "2026-11-17 00:00:00 CET");
	is_of_today_at("Mon 12:00", "2026-11-16 12:00:00 CET");
	is_of_today_at("Sun", "2026-11-22 00:00:00 CET");
	is_of_today_at("Sun 09:52", "2026-11-22 09:52:00 CET");
	is_of_today_at("Sun 09:59", "2026-11-22 09:59:00 CET");
	is_of_today_at("Sun 10:01", "2026-11-15 10:01:00 CET");
	is_of_today_at("Sun 23:00 -0800", "2026-11-16 08:00:00 CET"); /* it is Sunday there, too */
	is_of_today_at("12:00", "2026-11-21 12:00:00 CET");
	is_of_today_at("09:58", "2026-11-22 09:58:00 CET");
	is_in_file_at("yesterday 03:00", "2026-11-21 03:00:00 CET");
	is_in_file_at("-2h", "2026-11-22 08:00:00 CET");
	is_in_file_at("2026-11-21 03:00", "2026-11-21 03:00:00 CET");
}

static void lengths_understood(void **state)
{
	static const char *const wrong[] = { "", "5", "0s", "ms", "-1s", "1.s", "1 fortnight" };
	uint64_t ns;

	(void)state;
	assert_int_equal(when_parse_length("200ms", &ns), 0);
	assert_int_equal(ns, 200 * NS_PER_MS);
	assert_int_equal(when_parse_length("2.5s", &ns), 0);
	assert_int_equal(ns, 2500 * NS_PER_MS);
	assert_int_equal(when_parse_length("1h30m", &ns), 0);
	assert_int_equal(ns, 5400 * NS_PER_S);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (when_parse_length(wrong[i], &ns) == 0)
			fail_msg("\"%s\" is understood", wrong[i]);
}

static void has_length_ns(uint64_t ns, const char *expected)
{
	char text[WHEN_SIZE];

	when_format_length(ns, text);
	assert_string_equal(text, expected);
}

static void has_length(uint64_t seconds, const char *expected)
{
	has_length_ns(seconds * NS_PER_S, expected);
}

static void lengths(void **state)
{
	(void)state;
	has_length(0, "0 s");
	has_length(59, "59 s");
	has_length(60, "1 min");
	has_length(200, "3 min 20 s");
	has_length(7200, "2 h");
	has_length(7260, "2 h 1 min");
	has_length(100800, "1 d 4 h");
	has_length_ns(200 * NS_PER_MS, "200 ms");
	has_length_ns(2500 * NS_PER_MS, "2.500 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(dates, setup),
		cmocka_unit_test_setup(clock_times, setup),
		cmocka_unit_test_setup(week_days, setup),
		cmocka_unit_test_setup(relative, setup),
		cmocka_unit_test_setup(summer_time, setup),
		cmocka_unit_test_setup(not_understood, setup),
		cmocka_unit_test_setup(milliseconds, setup),
		cmocka_unit_test_setup(of_file, setup),
		cmocka_unit_test_setup(lengths_understood, setup),
		cmocka_unit_test_setup(lengths, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
