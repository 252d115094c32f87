// SPDX-License-Identifier: GPL-2.0-only
#include "archive/window_name.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define EXTENSION ".pb.gz"
#define SUM	  ".sum"
#define TRIGGER	  "-trigger-"
#define CHANGE	  "-change-"

const char *const window_triggers[WINDOW_KINDS] = {
	[WINDOW_TRIGGER_SIGNAL] = "signal", [WINDOW_TRIGGER_PRESSURE] = "pressure",
	[WINDOW_TRIGGER_LOAD] = "load",	    [WINDOW_TRIGGER_COMMAND] = "command",
	[WINDOW_CHANGE_BEFORE] = "before",  [WINDOW_CHANGE_AFTER] = "after",
};

static const struct {
	unsigned int grain_s;
	const char *suffix;
} grains[] = {
	{ WINDOW_FINE_S, "" },
	{ WINDOW_10MIN_S, "-10m" },
	{ WINDOW_HOUR_S, "-1h" },
	{ WINDOW_DAY_S, "-1d" },
};

#define GRAINS (sizeof(grains) / sizeof(*grains))

bool window_day_name(uint64_t time_s, char name[static WINDOW_DAY_SIZE])
{
	time_t time = (time_t)time_s;
	struct tm tm;

	return gmtime_r(&time, &tm) && strftime(name, WINDOW_DAY_SIZE, "%Y-%m-%d", &tm) > 0;
}

void window_file_name(const struct window_name *w, char name[static WINDOW_NAME_SIZE])
{
	unsigned int second = w->start_s % WINDOW_DAY_S;
	const char *prefix = w->trigger < WINDOW_TRIGGERS ? TRIGGER : CHANGE;
	size_t i = 0;

	while (i + 1 < GRAINS && grains[i].grain_s != w->grain_s)
		i++;
	snprintf(name, WINDOW_NAME_SIZE, "%02u%02u%02u%s%s%s%s" EXTENSION "%s", second / 3600 % 24,
		 second / 60 % 60, second % 60, grains[i].suffix, w->sum ? SUM : "",
		 w->trigger ? prefix : "", w->trigger ? window_triggers[w->trigger] : "",
		 w->damaged ? WINDOW_DAMAGED : "");
}

/* Parses `count` digits. */
static bool parse_digits(const char *text, unsigned int count, unsigned int *number)
{
	*number = 0;
	for (unsigned int i = 0; i < count; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		*number = *number * 10 + (text[i] - '0');
	}
	return true;
}

bool window_parse_day(const char *name, uint64_t *day_s)
{
	unsigned int year, month, day;
	char again[WINDOW_DAY_SIZE];
	struct tm tm;

	if (strlen(name) != WINDOW_DAY_SIZE - 1 || !parse_digits(name, 4, &year) ||
	    name[4] != '-' || !parse_digits(name + 5, 2, &month) || name[7] != '-' ||
	    !parse_digits(name + 8, 2, &day) || year < 1970)
		return false;
	tm = (struct tm){ .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day };
	*day_s = timegm(&tm);
	/* There is no 31st of November. */
	return window_day_name(*day_s, again) && strcmp(again, name) == 0;
}

bool window_parse_file(const char *name, uint64_t day_s, struct window_name *w)
{
	unsigned int hour, minute, second;
	char again[WINDOW_NAME_SIZE];

	if (strlen(name) < 6 || !parse_digits(name, 2, &hour) ||
	    !parse_digits(name + 2, 2, &minute) || !parse_digits(name + 4, 2, &second) ||
	    hour > 23 || minute > 59 || second > 59)
		return false;
	w->start_s = day_s + hour * 3600 + minute * 60 + second;
	w->sum = strstr(name, SUM EXTENSION);
	w->damaged = strstr(name, EXTENSION WINDOW_DAMAGED);
	w->trigger = WINDOW_NO_TRIGGER;
	for (int i = 1; i < WINDOW_KINDS; i++)
		if (strstr(name, i < WINDOW_TRIGGERS ? TRIGGER : CHANGE) &&
		    strstr(name, window_triggers[i]))
			w->trigger = i;
	for (size_t i = 0; i < GRAINS; i++) {
		w->grain_s = grains[i].grain_s;
		window_file_name(w, again);
		if (strcmp(again, name) == 0)
			return w->grain_s == WINDOW_FINE_S ? !w->sum : w->start_s % w->grain_s == 0;
	}
	return false;
}
