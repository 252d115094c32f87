// SPDX-License-Identifier: GPL-2.0-only
#include "tool/when.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define DAY_S 86400

/* The rest of a text that is being parsed. Case is ignored; blanks separate words. */
struct text {
	const char *at;
};

static void skip_blanks(struct text *t)
{
	while (isblank((unsigned char)*t->at))
		t->at++;
}

static bool at_end(struct text *t)
{
	skip_blanks(t);
	return !*t->at;
}

/* Takes this word, unless a letter follows it. */
static bool take_word(struct text *t, const char *word)
{
	size_t size = strlen(word);

	skip_blanks(t);
	if (strncasecmp(t->at, word, size) != 0 || isalpha((unsigned char)t->at[size]))
		return false;
	t->at += size;
	return true;
}

/* Takes from `least` to `most` digits. */
static bool take_number(struct text *t, int least, int most, uint64_t *number)
{
	int digits = 0;

	*number = 0;
	for (; digits < most && isdigit((unsigned char)*t->at); digits++)
		*number = *number * 10 + (*t->at++ - '0');
	return digits >= least && !isdigit((unsigned char)*t->at);
}

static bool take_char(struct text *t, char c)
{
	if (*t->at != c)
		return false;
	t->at++;
	return true;
}

static const struct {
	const char *word;
	uint64_t seconds;
} units[] = {
	{ "s", 1 },	    { "sec", 1 },	   { "secs", 1 },	   { "second", 1 },
	{ "seconds", 1 },   { "m", 60 },	   { "min", 60 },	   { "mins", 60 },
	{ "minute", 60 },   { "minutes", 60 },	   { "h", 3600 },	   { "hour", 3600 },
	{ "hours", 3600 },  { "d", DAY_S },	   { "day", DAY_S },	   { "days", DAY_S },
	{ "w", 7 * DAY_S }, { "week", 7 * DAY_S }, { "weeks", 7 * DAY_S },
};

/* Takes "2 hours", "a day" or "1h30m": units of one letter may stand before the next number. */
static bool take_length(struct text *t, uint64_t *seconds)
{
	static const char letters[] = "smhdw";
	static const uint64_t lengths[] = { 1, 60, 3600, DAY_S, 7 * DAY_S };
	const size_t unit_count = sizeof(units) / sizeof(*units);
	bool any = false;

	*seconds = 0;
	for (; !any || isdigit((unsigned char)*t->at); skip_blanks(t)) {
		uint64_t number = 1;
		const char *letter;
		size_t i = 0;

		skip_blanks(t);
		if (!take_word(t, "a") && !take_word(t, "an") && !take_number(t, 1, 9, &number))
			return false;
		skip_blanks(t);
		letter = *t->at ? strchr(letters, *t->at) : NULL;
		if (letter && isdigit((unsigned char)t->at[1])) {
			*seconds += number * lengths[letter - letters];
			t->at++;
		} else {
			while (i < unit_count && !take_word(t, units[i].word))
				i++;
			if (i == unit_count)
				return false;
			*seconds += number * units[i].seconds;
		}
		any = true;
	}
	return true;
}

struct moment {
	struct tm tm; /* the fields that were given, else 0 */
	bool day;     /* it has a date, and is not relative to today */
	int week_day; /* 0: Sunday; -1: none */
	bool offset;
	int offset_s; /* from UTC, with `offset` */
};

/* "03:00", "03:00:30", "T03:00" */
static bool take_time_of_day(struct text *t, struct tm *tm)
{
	uint64_t hour, minute, second = 0;

	skip_blanks(t);
	if (!take_number(t, 1, 2, &hour) || !take_char(t, ':') || !take_number(t, 2, 2, &minute))
		return false;
	if (take_char(t, ':') && !take_number(t, 2, 2, &second))
		return false;
	tm->tm_hour = hour;
	tm->tm_min = minute;
	tm->tm_sec = second;
	return hour < 24 && minute < 60 && second < 60;
}

/* Z, UTC, +01:00, -0530. */
static bool take_zone(struct text *t, struct moment *m)
{
	uint64_t hours, minutes = 0;
	bool minus;

	skip_blanks(t);
	if (take_word(t, "Z") || take_word(t, "UTC")) {
		m->offset = true;
		return true;
	}
	minus = *t->at == '-';
	if (!minus && *t->at != '+')
		return true;
	t->at++;
	if (isdigit((unsigned char)t->at[0]) && isdigit((unsigned char)t->at[1]) &&
	    isdigit((unsigned char)t->at[2])) {
		if (!take_number(t, 4, 4, &minutes))
			return false;
		hours = minutes / 100;
		minutes %= 100;
	} else if (!take_number(t, 2, 2, &hours) ||
		   (take_char(t, ':') && !take_number(t, 2, 2, &minutes))) {
		return false;
	}
	m->offset = true;
	m->offset_s = (int)(hours * 3600 + minutes * 60) * (minus ? -1 : 1);
	return hours <= 14 && minutes < 60;
}

/*
 * Takes "2026-11-21", "today", "yesterday" or a day of the week, and sets it in m, where tm has
 * today's date. Returns false if there is no day.
 */
static bool take_day(struct text *t, struct moment *m)
{
	static const char *const days[] = { "Sunday",	"Monday", "Tuesday", "Wednesday",
					    "Thursday", "Friday", "Saturday" };
	uint64_t year, month, day;
	char abbreviated[4];
	struct text start;

	skip_blanks(t);
	start = *t;
	if (take_number(t, 4, 4, &year) && take_char(t, '-') && take_number(t, 2, 2, &month) &&
	    take_char(t, '-') && take_number(t, 2, 2, &day)) {
		m->tm.tm_year = (int)year - 1900;
		m->tm.tm_mon = (int)month - 1;
		m->tm.tm_mday = (int)day;
		m->day = true;
		if (!take_char(t, 'T') && !take_char(t, 't'))
			skip_blanks(t);
		return true;
	}
	*t = start;
	m->day = take_word(t, "today");
	if (!m->day && take_word(t, "yesterday")) {
		m->day = true;
		m->tm.tm_mday--;
	}
	if (m->day)
		return true;
	for (int i = 0; i < 7; i++) {
		snprintf(abbreviated, sizeof(abbreviated), "%s", days[i]);
		if (take_word(t, days[i]) || take_word(t, abbreviated)) {
			m->week_day = i;
			return true;
		}
	}
	return false;
}

/*
 * Returns the time at which the clock of m's offset, else of the time zone, shows m->tm; -1: none.
 * later: the later of two, when summer time ends.
 */
static time_t time_of(const struct moment *m, bool later)
{
	struct tm tm = m->tm, shown;
	time_t best = -1, time;

	if (m->offset)
		return timegm(&tm) - m->offset_s;
	for (int summer = -1; summer <= 1; summer++) {
		tm = m->tm;
		tm.tm_isdst = summer;
		time = mktime(&tm);
		if (time == (time_t)-1 || !localtime_r(&time, &shown))
			continue;
		/* A time that was skipped is as mktime(3) takes it. */
		if (summer >= 0 && (shown.tm_hour != m->tm.tm_hour || shown.tm_min != m->tm.tm_min))
			continue;
		if (best == -1 || (later ? time > best : time < best))
			best = time;
	}
	return best;
}

static bool parse_moment(struct text t, uint64_t now_s, bool later, uint64_t *time_s)
{
	time_t now = (time_t)now_s, time;
	struct moment m = { .week_day = -1 };
	struct tm today, date;
	bool has_day, clock;

	localtime_r(&now, &today);
	m.tm = (struct tm){ .tm_year = today.tm_year,
			    .tm_mon = today.tm_mon,
			    .tm_mday = today.tm_mday };
	has_day = take_day(&t, &m);
	clock = !at_end(&t);
	if ((!has_day && !clock) ||
	    (clock && (!take_time_of_day(&t, &m.tm) || !take_zone(&t, &m))) || !at_end(&t))
		return false;
	/* There is no 31st of November. */
	date = m.tm;
	date.tm_isdst = 0;
	if (timegm(&date) == (time_t)-1 ||
	    (m.tm.tm_mday >= 1 && (date.tm_year != m.tm.tm_year || date.tm_mon != m.tm.tm_mon ||
				   date.tm_mday != m.tm.tm_mday)))
		return false;
	if (m.offset && !m.day) {
		/* Today, as that time zone has it. */
		now += m.offset_s;
		gmtime_r(&now, &today);
		now -= m.offset_s;
		m.tm.tm_year = today.tm_year;
		m.tm.tm_mon = today.tm_mon;
		m.tm.tm_mday = today.tm_mday;
	}
	if (m.week_day >= 0)
		m.tm.tm_mday -= (today.tm_wday - m.week_day + 7) % 7;
	time = time_of(&m, later);
	if (!m.day && time > now) {
		m.tm.tm_mday -= m.week_day >= 0 ? 7 : 1;
		time = time_of(&m, later);
	}
	if (time < 0)
		return false;
	*time_s = time;
	return true;
}

int when_parse(const char *text, uint64_t now_s, bool later, uint64_t *time_s)
{
	struct text t = { text };
	uint64_t seconds;
	bool minus;

	*time_s = now_s;
	if (take_word(&t, "now") && at_end(&t))
		return 0;
	t.at = text;
	skip_blanks(&t);
	if (take_char(&t, '@'))
		return take_number(&t, 1, 12, time_s) && at_end(&t) ? 0 : -EINVAL;
	/* "-2h", "2 hours ago" */
	minus = take_char(&t, '-');
	if (take_length(&t, &seconds) && take_word(&t, "ago") != minus && at_end(&t) &&
	    seconds <= now_s) {
		*time_s = now_s - seconds;
		return 0;
	}
	t.at = text;
	return parse_moment(t, now_s, later, time_s) ? 0 : -EINVAL;
}

void when_format(uint64_t time_s, char text[static WHEN_SIZE])
{
	time_t time = (time_t)time_s;
	struct tm tm;

	if (!localtime_r(&time, &tm) || !strftime(text, WHEN_SIZE, "%Y-%m-%d %H:%M:%S %Z", &tm))
		snprintf(text, WHEN_SIZE, "@%" PRIu64, time_s);
}

void when_format_length(uint64_t seconds, char text[static WHEN_SIZE])
{
	static const struct {
		uint64_t seconds;
		const char *name;
	} parts[] = { { DAY_S, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
	size_t i = 0;

	while (i < 3 && seconds < parts[i].seconds)
		i++;
	if (i < 3 && seconds % parts[i].seconds / parts[i + 1].seconds)
		snprintf(text, WHEN_SIZE, "%" PRIu64 " %s %" PRIu64 " %s",
			 seconds / parts[i].seconds, parts[i].name,
			 seconds % parts[i].seconds / parts[i + 1].seconds, parts[i + 1].name);
	else
		snprintf(text, WHEN_SIZE, "%" PRIu64 " %s", seconds / parts[i].seconds,
			 parts[i].name);
}
