/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_ARCHIVE_WINDOW_NAME_H
#define PROFIL_ARCHIVE_WINDOW_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* The names of windows: 2026-11-21/031500.pb.gz. Times are seconds since the epoch. */

/* Bound: format. */
#define WINDOW_FINE_S  60
#define WINDOW_10MIN_S 600
#define WINDOW_HOUR_S  3600
#define WINDOW_DAY_S   86400

/* Includes the NUL. */
#define WINDOW_DAY_SIZE	 sizeof("2026-11-21")
#define WINDOW_NAME_SIZE sizeof("031500-trigger-pressure.pb.gz.damaged")

/* Behind the name of a window that could not be read when it was to be merged. */
#define WINDOW_DAMAGED ".damaged"

/* Writes the name of the day's directory. False: the year has more than four digits. */
bool window_day_name(uint64_t time_s, char name[static WINDOW_DAY_SIZE]);

/* What had some seconds kept as a file of their own: 031502-trigger-load.pb.gz. */
enum window_trigger {
	WINDOW_NO_TRIGGER, /* it is a window, or a sum of windows */
	WINDOW_TRIGGER_SIGNAL,
	WINDOW_TRIGGER_PRESSURE,
	WINDOW_TRIGGER_LOAD,
	WINDOW_TRIGGER_COMMAND,
	WINDOW_TRIGGERS,

	/* No triggers: a service before and after a deploy, 031500-change-before.pb.gz. */
	WINDOW_CHANGE_BEFORE = WINDOW_TRIGGERS,
	WINDOW_CHANGE_AFTER,
	WINDOW_KINDS
};

extern const char *const window_triggers[WINDOW_KINDS]; /* their names */

/* What the name of a file says. */
struct window_name {
	uint64_t start_s;
	unsigned int grain_s;
	bool sum;     /* its parts are there, too: 031000-10m.sum.pb.gz */
	bool damaged; /* has WINDOW_DAMAGED behind its name */
	enum window_trigger trigger;
};

/* Whether a file is neither read nor merged with others: damaged, or a copy of what they have. */
static inline bool window_is_apart(const struct window_name *w)
{
	return w->damaged || w->trigger;
}

/* Writes the name in the day's directory. */
void window_file_name(const struct window_name *w, char name[static WINDOW_NAME_SIZE]);

/* Parses the name of a day's directory: sets when it begins. Returns whether it is one. */
bool window_parse_day(const char *name, uint64_t *day_s);

/* Parses the name of a file in there. */
bool window_parse_file(const char *name, uint64_t day_s, struct window_name *w);

#endif
