/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_TOP_RECORDED_H
#define PROFIL_TOOL_TOP_RECORDED_H

#include "report/live/live.h"
#include "tool/tool.h"
#include "tool/top_watch.h"

/* Profiles on the screen of top: what of them is shown first. */
struct recorded {
	struct tool_reading reading;
	struct profile_filter filter;
	const char *value;
	const struct row_view *view;
	struct row_view label; /* --by NAME: what view points to */
	bool any_label;	       /* it was given as label:NAME */
	enum live_sort sort;
	bool states;
	bool over_time; /* of browse: slots of time first */

	struct profile_filtered filtered; /* private */
};

/* Parser for --sort, a struct recorded: the order of rows, or by perf's keys what they are. */
option_parser recorded_option_sort;

/* clang-format off */
#define RECORDED_SORT_OPTION(offset)                                                              \
	{ "sort", 's', "KEY",                                                                      \
	  "order rows by self (default), total, name, image, wait or delay; or what rows are, by " \
	  "perf's keys: " TOOL_SORT_KEYS, recorded_option_sort, offset }
/* clang-format on */

/*
 * Reads profiles, or without any the archive, and collects the rows of the view. Returns 0, or a
 * negative errno with e set; call watch_free(), then recorded_free(), in any case.
 */
int recorded_open(struct recorded *r, struct watch *w, char *const *paths, int count,
		  struct error *e);
void recorded_free(struct recorded *r);

/* The exit code after they were shown; prints why there was nothing to show. */
int recorded_end(const struct recorded *r, const struct watch *w, char *const *paths, int count);

#endif
