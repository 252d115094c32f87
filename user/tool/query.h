/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_QUERY_H
#define PROFIL_TOOL_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/filter.h"
#include "profile/profile.h"
#include "report/row_view.h"
#include "cli/options.h"
#include "tool/when.h"
#include "util/error.h"

/* Selects an interval of an archive, and samples of any profile: a member of options. */

/* Bound: caller: --host of one command; then: it is refused. */
#define QUERY_HOSTS_MAX 64
#define QUERY_NAME_SIZE (2 * WHEN_SIZE + 16)

/* Which part of the recording is asked for. */
enum query_part {
	QUERY_INTERVAL,
	QUERY_BEFORE, /* as long, and just before it */
	QUERY_REST,   /* all but it; of an archive, of the windows of which a part lies in it */
};

struct tool_query {
	const char *since, *until; /* times; NULL: the first that there is, the last or now */
	const char *around;	   /* the middle of the interval */
	uint64_t for_ns;	   /* its length; 0: not given */
	enum query_part part;
	uint64_t before_ns; /* of an archive, read also what was so long before */
	uint64_t now_ns;    /* what times are relative to; 0: the clock's */
	const char *hosts[QUERY_HOSTS_MAX];
	size_t host_count;
	struct profile_label_filter labels;
	/* The commands' own: */
	bool by_time, by_host; /* rows need these tags */
	uint64_t step_ns;      /* with by_time: the length of a row; 0: chosen */
	bool times;	       /* keep the times of ticks */
	bool no_code;	       /* without stacks */
	bool fine; /* they need addresses, lines or processes, as far as there are any */
};

/* What a query asks for: */
struct query_interval {
	struct time_interval asked;
	bool rest;		       /* what lies outside of it */
	struct time_interval recorded; /* of a profile: what it has */
};

/* clang-format off */
#define TOOL_TAG_OPTION(number, name, letter, metavar, help, type, member)                                \
	, { name, letter, metavar, help, option_text, offsetof(type, member.labels.tags[TAG_##number]) }

#define TOOL_TIME_OPTIONS(type, member)                                                           \
	{ "since", 0, "TIME", "from TIME on: \"03:00\", \"yesterday 14:30\", -2h, +2.5s",          \
	  option_text, offsetof(type, member.since) },                                             \
	{ "until", 0, "TIME", "up to TIME", option_text, offsetof(type, member.until) },           \
	{ "around", 0, "TIME", "some time around TIME: \"14:03:02.3\"", option_text,               \
	  offsetof(type, member.around) },                                                         \
	{ "for", 0, "DURATION", "how long: 200ms, 2.5s, 1h30m; around a time 1s",                  \
	  tool_option_length, offsetof(type, member.for_ns) }

#define TOOL_INTERVAL_OPTIONS(type, member)                                                       \
	TOOL_TIME_OPTIONS(type, member),                                                           \
	{ "host", 0, "HOST", "only this host of the archive: a name or shell pattern; repeatable", \
	  tool_option_host, offsetof(type, member) }                                               \
	PROFILE_TAG_FILTERS(TOOL_TAG_OPTION, type, member),                                        \
	{ "comm", 0, "NAME", "only samples of processes, or threads, with this name", option_text, \
	  offsetof(type, member.labels.comm) }

/* --user has another meaning where something is recorded; -u has the same. */
#define TOOL_QUERY_OPTIONS(type, member)                                                          \
	TOOL_INTERVAL_OPTIONS(type, member) PROFILE_FILE_FILTERS(TOOL_TAG_OPTION, type, member),   \
	{ "label", 0, "NAME=PATTERN", "only samples whose label NAME is this: a shell pattern",    \
	  tool_option_label, offsetof(type, member.labels.label) }
/* clang-format on */

/* Parsers for the members `struct tool_query`, of --host, labels.label, and `uint64_t for_ns`. */
option_parser tool_option_host, tool_option_label, tool_option_length;

/* True if an option was given that needs the archive if no file is named. */
bool query_is_given(const struct tool_query *q);

/* True if an option chooses a time. */
bool query_has_interval(const struct tool_query *q);

/* Removes the options that choose a time. */
void query_clear_interval(struct tool_query *q);

/*
 * Makes query_read() give samples the tags that rows of this view (may be NULL) need. code:
 * something else needs call stacks.
 */
void query_set_rows(struct tool_query *q, const struct row_view *view, bool code);

/* The archive that is read if no file is named: PROFIL_ARCHIVE, or the default. */
const char *query_archive(void);

/* True if a path is an archive, or the directory of a host in one. */
bool query_is_archive(const char *path);

/*
 * Finds the interval that q asks for, of a profile that was recorded in an interval, or of the
 * archive if that is NULL. Returns 0, or -EINVAL with e set.
 */
int query_interval(const struct tool_query *q, const struct time_interval *recorded,
		   struct query_interval *i, struct error *e);

/*
 * The same for what that interval is compared with, which text says: "before", "rest" or
 * TIME..TIME. option: its name, for errors.
 */
int query_find_other(const struct tool_query *q, const char *text, const char *option,
		     const struct time_interval *recorded, struct query_interval *i,
		     struct error *e);

/* Writes an interval as "TIME to TIME". */
void query_name(const struct query_interval *i, char text[static QUERY_NAME_SIZE]);

/*
 * Reads the interval from an archive. Prints gaps and skipped windows and, unless `quiet`, the
 * times that it covers. Returns 0 or -errno with e set. The caller frees *p.
 */
int query_read(const char *path, const struct tool_query *q, bool quiet, struct profile **p,
	       struct error *e);

/* The same for another interval than that of q. */
int query_read_interval(const char *path, const struct tool_query *q,
			const struct query_interval *interval, bool quiet, struct profile **p,
			struct error *e);

/*
 * Checks that ticks of a profile have times, and prints how many have none. path: its name in
 * messages; timed: how many had times when it was read. Returns 0 or -EINVAL with e set.
 */
int query_check_times(const char *path, uint64_t timed, const struct profile *p, struct error *e);

/*
 * Keeps the part of a profile that an interval has; prints when it was recorded if there is
 * nothing. Returns 0 or -ENOMEM with e set.
 */
int query_cut(const char *path, const struct query_interval *i, struct profile *p, struct error *e);

/*
 * Chooses the ticks that a query asks for while a file is read; also those of what they are
 * compared with, if `other` is not NULL (query_find_other()).
 */
struct query_choice {
	struct tick_choice ticks;
	const struct tool_query *q;
	const char *other, *option;
	struct query_interval interval, compared;
	bool chosen; /* the file has times */
	int err;
	struct error e;
};

/* Returns what readers are given for that, in input_options. */
struct tick_choice *query_choose(struct query_choice *choice, const struct tool_query *q,
				 const char *other, const char *option);

/*
 * Sets the intervals of a choice, unless a reader did, when p has been read. Returns 0, or -EINVAL
 * with e set: no tick has a time, or the query is invalid.
 */
int query_settle(const char *path, struct query_choice *choice, const struct profile *p,
		 struct error *e);

/*
 * Keeps the selected samples of a profile that is not of an archive; prints their share, unless
 * `quiet`. choice: with which it was read, if q has an interval. Returns 0 or -errno with e set:
 * -EINVAL if the query needs an archive.
 */
int query_filter(const char *path, const struct tool_query *q, struct query_choice *choice,
		 bool quiet, struct profile *p, struct error *e);

#endif
