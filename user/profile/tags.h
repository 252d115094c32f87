/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_TAGS_H
#define PROFIL_PROFILE_TAGS_H

#include <stdbool.h>

#include "profile/profile.h"

/*
 * The tags that profil itself gives to samples: one line each, in the order of their keys, as
 * profiles have them. Numbers, columns, rows of --by, help, completion and JSON follow from this
 * list. Where a tag's text comes from: tag_makers[] in record/from_capture.c for those of a
 * recording, archive/read.c for those of its windows. How samples are selected by one: the filters
 * below.
 *
 * X(NUMBER, key, plural, missing, shown, of_task)
 * key: also the value of --by and the title of its column, JSON's member
 * plural: for several rows; NULL: no view by this tag
 * missing: for samples without it; NULL: their value is unknown
 * shown: enum tag_shown
 * of_task: of one process or CPU; windows of an hour and longer do not have it
 */
#define PROFILE_TAGS(X)                                                                    \
	X(APPLICATION, "application", "applications", "[no application]", TAG_TEXT, false) \
	X(CGROUP, "cgroup", "control groups", "[no cgroup]", TAG_TEXT, false)              \
	X(CONTAINER, "container", "containers", "[no container]", TAG_TEXT, false)         \
	X(CONTAINER_NAME, "container_name", NULL, NULL, TAG_TEXT, false)                   \
	X(CPU, "cpu", "CPUs", NULL, TAG_NUMBER, true)                                      \
	X(DATABASE, "database", "databases", "[no database]", TAG_TEXT, false)             \
	X(HOST, "host", "hosts", NULL, TAG_TEXT, false)                                    \
	X(IN_DOUBT, "in_doubt", NULL, NULL, TAG_TEXT, false)                               \
	X(INCOMPLETE, "incomplete", NULL, NULL, TAG_TEXT, false)                           \
	X(PEER, "peer", "peers", "[no peer]", TAG_TEXT, true)                              \
	X(PROCESS, "process", NULL, NULL, TAG_TEXT, true)                                  \
	X(QUERY, "query", "queries", "[no query]", TAG_TEXT, false)                        \
	X(ROLE, "role", "roles", "[no role]", TAG_TEXT, false)                             \
	X(ROUTE, "route", "routes", "[no route]", TAG_TEXT, false)                         \
	X(THREAD, "thread", NULL, NULL, TAG_TEXT, true)                                    \
	X(TIME, "time", "times", NULL, TAG_TIME_S, false)                                  \
	X(TITLE, "title", "titles", "[no title]", TAG_TEXT, true)                          \
	X(UNIT, "unit", "units", "[no unit]", TAG_TEXT, false)                             \
	X(USER, "user", "users", NULL, TAG_TEXT, false)                                    \
	X(WAKER, "waker", "wakers", "[no waker]", TAG_TEXT, true)                          \
	X(WAKER_TID, "waker_tid", NULL, NULL, TAG_TEXT, true)

/*
 * Options that select samples by a tag, by a name or a shell pattern: X(NUMBER, option, letter,
 * metavar, help, ...). Those that commands that record do not have are apart: they have another
 * --user.
 */
#define PROFILE_TAG_FILTERS(X, ...)                                                            \
	X(QUERY, "query", 0, "PATTERN",                                                        \
	  "only samples of this query, as --by query prints it: a shell pattern", __VA_ARGS__) \
	X(UNIT, "unit", 0, "UNIT", "this systemd unit alone: a name or shell pattern",         \
	  __VA_ARGS__)                                                                         \
	X(CONTAINER, "container", 0, "NAME",                                                   \
	  "this container alone: a name, or the beginning of its ID", __VA_ARGS__)
#define PROFILE_FILE_FILTERS(X, ...)                                                            \
	X(USER, "user", 'u', "USER", "only samples of this user's processes: a name or number", \
	  __VA_ARGS__)                                                                          \
	X(WAKER, "waker", 0, "NAME",                                                            \
	  "only waits that this thread or interrupt ended, and its stacks", __VA_ARGS__)

enum tag_shown {
	TAG_TEXT,
	TAG_NUMBER, /* to the right */
	TAG_TIME_S  /* as a time; rows are in its order */
};

enum profile_tag_number {
#define TAG_ENUM(number, ...) TAG_##number,
	PROFILE_TAGS(TAG_ENUM)
#undef TAG_ENUM
	TAG_COUNT
};

struct tag_kind {
	const char *key, *plural, *missing;
	enum tag_shown shown;
	bool of_task;
};

extern const struct tag_kind tag_kinds[TAG_COUNT];

/* The tag of labels with this key, or NULL. */
const struct profile_tag *profile_find_tag(const struct profile_labels *labels, const char *key);

/* The text of this tag, or NULL. */
const char *profile_tag_text(const struct profile_labels *labels, enum profile_tag_number number);

#endif
