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

#define QUERY_HOSTS_MAX 64
#define QUERY_NAME_SIZE (2 * WHEN_SIZE + 8)

struct tool_query {
	const char *since, *until; /* times; NULL: the archive's first, now */
	const char *hosts[QUERY_HOSTS_MAX];
	size_t host_count;
	struct profile_label_filter labels;
	/* The commands' own: */
	bool by_time, by_host; /* rows need these tags */
	bool leaves;	       /* and no callers */
	bool fine; /* they need addresses, lines or processes, as far as there are any */
	/* Instead of since and until; 0 and 0: unset. */
	uint64_t since_s, until_s;
};

/* clang-format off */
#define TOOL_TAG_OPTION(number, name, metavar, help, type, member)                                \
	, { name, 0, metavar, help, option_text, offsetof(type, member.labels.tags[TAG_##number]) }

#define TOOL_INTERVAL_OPTIONS(type, member)                                                       \
	{ "since", 0, "TIME", "read the archive from TIME on: \"03:00\", \"yesterday 14:30\", -2h", \
	  option_text, offsetof(type, member.since) },                                             \
	{ "until", 0, "TIME", "up to TIME (now)", option_text, offsetof(type, member.until) },     \
	{ "host", 0, "HOST", "only this host of the archive: a name or shell pattern; repeatable", \
	  tool_option_host, offsetof(type, member) }                                               \
	PROFILE_TAG_FILTERS(TOOL_TAG_OPTION, type, member),                                        \
	{ "comm", 0, "NAME", "only samples of processes, or threads, with this name", option_text, \
	  offsetof(type, member.labels.comm) }

/* --user has another meaning where something is recorded. */
#define TOOL_QUERY_OPTIONS(type, member)                                                          \
	TOOL_INTERVAL_OPTIONS(type, member) PROFILE_USER_FILTER(TOOL_TAG_OPTION, type, member)
/* clang-format on */

/* Parser for the member `struct tool_query`, of --host. */
int tool_option_host(const char *value, void *member, struct error *e);

/* True if an option was given that needs the archive if no file is named. */
bool query_is_given(const struct tool_query *q);

/*
 * Makes query_read() give samples the tags that rows of this view (may be NULL) need. stacks:
 * something else needs call stacks.
 */
void query_set_rows(struct tool_query *q, const struct row_view *view, bool stacks);

/* The archive that is read if no file is named: PROFIL_ARCHIVE, or the default. */
const char *query_archive(void);

/* True if a path is an archive, or the directory of a host in one. */
bool query_is_archive(const char *path);

/*
 * Parses the times of since and until into seconds; until is now if it was not given. Returns 0 or
 * -EINVAL with e set.
 */
int query_interval(const struct tool_query *q, uint64_t *since_s, uint64_t *until_s,
		   struct error *e);

/* Writes the interval of since_s and until_s. */
void query_name(const struct tool_query *q, char text[static QUERY_NAME_SIZE]);

/*
 * Reads the interval from an archive. Prints gaps and skipped windows and, unless `quiet`, the
 * times that it covers. Returns 0 or -errno with e set. The caller frees *p.
 */
int query_read(const char *path, const struct tool_query *q, bool quiet, struct profile **p,
	       struct error *e);

/*
 * Keeps the selected samples of a profile that is not of an archive; prints their share, unless
 * `quiet`. Returns 0 or -errno with e set: -EINVAL if the query needs an archive.
 */
int query_filter(const char *path, const struct tool_query *q, bool quiet, struct profile *p,
		 struct error *e);

#endif
