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

#include "util/clock.h"

/* Bound: format. */
#define DAY_S 86400
/* Bound: format. */
#define DAY_NS (DAY_S * NS_PER_S)

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

/* Takes up to 9 digits of a fraction, in 10^-9, and drops more. */
static bool take_fraction(struct text *t, uint64_t *billionths)
{
	uint64_t digit = NS_PER_S / 10;

	*billionths = 0;
	if (!isdigit((unsigned char)*t->at))
		return false;
	for (; isdigit((unsigned char)*t->at); digit /= 10)
		*billionths += (*t->at++ - '0') * digit;
	return true;
}

static const struct {
	const char *word;
	uint64_t ns;
} units[] = {
	{ "ms", NS_PER_MS },
	{ "msec", NS_PER_MS },
	{ "millisecond", NS_PER_MS },
	{ "milliseconds", NS_PER_MS },
	{ "s", NS_PER_S },
	{ "sec", NS_PER_S },
	{ "secs", NS_PER_S },
	{ "second", NS_PER_S },
	{ "seconds", NS_PER_S },
	{ "m", 60 * NS_PER_S },
	{ "min", 60 * NS_PER_S },
	{ "mins", 60 * NS_PER_S },
	{ "minute", 60 * NS_PER_S },
	{ "minutes", 60 * NS_PER_S },
	{ "h", 3600 * NS_PER_S },
	{ "hour", 3600 * NS_PER_S },
	{ "hours", 3600 * NS_PER_S },
	{ "d", DAY_NS },
	{ "day", DAY_NS },
	{ "days", DAY_NS },
	{ "w", 7 * DAY_NS },
	{ "week", 7 * DAY_NS },
	{ "weeks", 7 * DAY_NS },
};

/*
 * Takes "2 hours", "a day", "2.5s" or "1h30m": units of one letter may stand before the next
 * number.
 */
static bool take_length(struct text *t, uint64_t *ns)
{
	static const char letters[] = "smhdw";
	static const uint64_t lengths[] = { NS_PER_S, 60 * NS_PER_S, 3600 * NS_PER_S, DAY_NS,
					    7 * DAY_NS };
	const size_t unit_count = sizeof(units) / sizeof(*units);
	unsigned __int128 sum = 0;
	bool any = false;

	for (; !any || isdigit((unsigned char)*t->at); skip_blanks(t)) {
		uint64_t number = 1, billionths = 0, unit;
		const char *letter;
		size_t i = 0;

		skip_blanks(t);
		if (!take_word(t, "a") && !take_word(t, "an") &&
		    (!take_number(t, 1, 9, &number) ||
		     (take_char(t, '.') && !take_fraction(t, &billionths))))
			return false;
		skip_blanks(t);
		letter = *t->at ? strchr(letters, *t->at) : NULL;
		if (letter && isdigit((unsigned char)t->at[1])) {
			unit = lengths[letter - letters];
			t->at++;
		} else {
			while (i < unit_count && !take_word(t, units[i].word))
				i++;
			if (i == unit_count)
				return false;
			unit = units[i].ns;
		}
		sum += ((unsigned __int128)number * NS_PER_S + billionths) * unit / NS_PER_S;
		if (sum > INT64_MAX)
			return false;
		any = true;
	}
	*ns = sum;
	return true;
}

struct moment {
	struct tm tm; /* the fields that were given, else 0 */
	uint64_t fraction_ns;
	bool day;     /* it has a date, which does not depend on the recording */
	int week_day; /* 0: Sunday; -1: none */
	bool offset;
	int offset_s; /* from UTC, with `offset` */
};

/* "03:00", "03:00:30", "03:00:30.25", "T03:00" */
static bool take_time_of_day(struct text *t, struct moment *m)
{
	uint64_t hour, minute, second = 0;

	skip_blanks(t);
	if (!take_number(t, 1, 2, &hour) || !take_char(t, ':') || !take_number(t, 2, 2, &minute))
		return false;
	if (take_char(t, ':') && (!take_number(t, 2, 2, &second) ||
				  (take_char(t, '.') && !take_fraction(t, &m->fraction_ns))))
		return false;
	m->tm.tm_hour = hour;
	m->tm.tm_min = minute;
	m->tm.tm_sec = second;
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

static void set_date(struct tm *tm, const struct tm *date)
{
	tm->tm_year = date->tm_year;
	tm->tm_mon = date->tm_mon;
	tm->tm_mday = date->tm_mday;
}

/* How far a time is from the recording: 0 inside of it. */
static uint64_t distance_ns(const struct when_clock *clock, uint64_t time_ns)
{
	if (time_ns < clock->start_ns)
		return clock->start_ns - time_ns;
	return time_ns > clock->end_ns ? time_ns - clock->end_ns : 0;
}

static bool parse_moment(struct text t, const struct when_clock *clock, bool later,
			 uint64_t *time_ns)
{
	time_t now = clock->now_ns / NS_PER_S, end = clock->end_ns / NS_PER_S, time;
	struct moment m = { .week_day = -1 };
	struct tm today, last, date;
	bool has_day, has_clock, found = false;
	int step;

	localtime_r(&now, &today);
	localtime_r(&end, &last);
	set_date(&m.tm, &today);
	has_day = take_day(&t, &m);
	if (!m.day)
		set_date(&m.tm, &last);
	has_clock = !at_end(&t);
	if ((!has_day && !has_clock) ||
	    (has_clock && (!take_time_of_day(&t, &m) || !take_zone(&t, &m))) || !at_end(&t))
		return false;
	/* There is no 31st of November. */
	date = m.tm;
	date.tm_isdst = 0;
	if (timegm(&date) == (time_t)-1 ||
	    (m.tm.tm_mday >= 1 && (date.tm_year != m.tm.tm_year || date.tm_mon != m.tm.tm_mon ||
				   date.tm_mday != m.tm.tm_mday)))
		return false;
	if (m.offset && !m.day) {
		/* The day that it is in that time zone. */
		end += m.offset_s;
		gmtime_r(&end, &last);
		set_date(&m.tm, &last);
	}
	if (m.week_day >= 0)
		m.tm.tm_mday -= (last.tm_wday - m.week_day + 7) % 7;
	/*
	 * Without a date: of these times, the one nearest to the recording; the last one in it. No
	 * day of the week that begins after it, and none that is yet to come.
	 */
	step = m.week_day >= 0 ? 7 : 1;
	m.tm.tm_mday += m.day || m.week_day >= 0 ? 0 : step;
	for (int i = 0; i < (m.day ? 1 : 3); i++, m.tm.tm_mday -= step) {
		uint64_t ns;

		time = time_of(&m, later);
		if (time < 0 || (uint64_t)time >= INT64_MAX / NS_PER_S)
			continue;
		ns = time * NS_PER_S + m.fraction_ns;
		if (!m.day && ns > clock->now_ns && ns > clock->end_ns)
			continue;
		if (found && distance_ns(clock, ns) >= distance_ns(clock, *time_ns))
			continue;
		*time_ns = ns;
		found = true;
	}
	return found;
}

int when_parse(const char *text, const struct when_clock *clock, bool later, uint64_t *time_ns)
{
	struct text t = { text };
	uint64_t number, billionths = 0, length_ns;
	bool minus;

	*time_ns = clock->now_ns;
	if (take_word(&t, "now") && at_end(&t))
		return 0;
	t.at = text;
	skip_blanks(&t);
	if (take_char(&t, '@')) {
		if (!take_number(&t, 1, 12, &number) ||
		    (take_char(&t, '.') && !take_fraction(&t, &billionths)) || !at_end(&t) ||
		    number >= INT64_MAX / NS_PER_S)
			return -EINVAL;
		*time_ns = number * NS_PER_S + billionths;
		return 0;
	}
	if (clock->start_ns && take_char(&t, '+')) {
		if (!take_length(&t, &length_ns) || !at_end(&t))
			return -EINVAL;
		*time_ns = clock->start_ns + length_ns;
		return 0;
	}
	/* "-2h", "2 hours ago" */
	minus = take_char(&t, '-');
	if (take_length(&t, &length_ns) && take_word(&t, "ago") != minus && at_end(&t) &&
	    length_ns <= clock->now_ns) {
		*time_ns = clock->now_ns - length_ns;
		return 0;
	}
	t.at = text;
	return parse_moment(t, clock, later, time_ns) ? 0 : -EINVAL;
}

int when_parse_length(const char *text, uint64_t *ns)
{
	struct text t = { text };

	return take_length(&t, ns) && at_end(&t) && *ns ? 0 : -EINVAL;
}

void when_format(uint64_t time_ns, char text[static WHEN_SIZE])
{
	uint64_t seconds = time_ns / NS_PER_S;
	unsigned int ms = time_ns % NS_PER_S / NS_PER_MS;
	char fraction[8] = "";

	if (ms)
		snprintf(fraction, sizeof(fraction), ".%03u", ms);
	snprintf(text, WHEN_SIZE, "%.24s%s%.24s", time_text(seconds, false, "%F %T").text, fraction,
		 time_text(seconds, false, " %Z").text);
}

void when_format_length(uint64_t ns, char text[static WHEN_SIZE])
{
	static const struct {
		uint64_t seconds;
		const char *name;
	} parts[] = { { DAY_S, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
	uint64_t seconds = ns / NS_PER_S;
	unsigned int ms = ns % NS_PER_S / NS_PER_MS;
	size_t i = 0;

	if (ms && seconds < 60) {
		if (seconds)
			snprintf(text, WHEN_SIZE, "%" PRIu64 ".%03u s", seconds, ms);
		else
			snprintf(text, WHEN_SIZE, "%u ms", ms);
		return;
	}
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
