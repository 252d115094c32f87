/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TESTS_ARCHIVE_FIXTURE_H
#define PROFIL_TESTS_ARCHIVE_FIXTURE_H

/* Archives in the directory of directory_fixture.h, with windows of one sample each. */

#include "directory_fixture.h"
#include "format_fixture.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "archive/archive.h"
#include "util/clock.h"

/* Seconds since the epoch of a time in UTC: "2026-11-21 03:15:00". */
static inline uint64_t utc(const char *text)
{
	struct tm tm = { 0 };

	assert_non_null(strptime(text, "%Y-%m-%d %H:%M:%S", &tm));
	return timegm(&tm);
}

/* A window of a minute with so many samples in a function of this name, by a command in a unit. */
static inline struct profile *window_of(uint64_t time_s, const char *function, int64_t count)
{
	struct profile *p = empty_profile(10000000);
	struct profile_function f = { function, function, "", 0 };
	struct profile_line line = { 0 };
	struct profile_tag tags[] = { { "cpu", NULL, 1, "" }, { "unit", "web.service", 0, "" } };
	struct profile_labels labels = { .pid = 17, .comm = "web", .tags = tags, .tag_count = 2 };
	uint32_t frame, id;

	assert_int_equal(profile_add_function(p, &f, &line.function), 0);
	assert_int_equal(profile_add_line_location(p, 0x1010,
						   add_mapping(p, 0x1000, 0x2000, 0, "/bin/web"),
						   &line, 1, &frame),
			 0);
	assert_int_equal(profile_add_labels(p, &labels, &id), 0);
	add_sample(p, &frame, 1, id, count);
	p->time_ns = time_s * NS_PER_S;
	p->duration_ns = 60 * NS_PER_S;
	assert_int_equal(profile_string(p, "host", &p->host), 0);
	return p;
}

static inline struct archive *opened(const char *host)
{
	struct archive *a;
	struct error e;

	if (archive_open(directory, host, getpid(), &a, &e))
		fail_msg("%s", e.what);
	return a;
}

/* archive_encode() and archive_write() in one. */
static inline int write_profile(struct archive *a, const struct profile *p, char *path, size_t size,
				struct error *e)
{
	int fd, err = archive_encode(p, NULL, NULL, &fd, e);

	if (err)
		return err;
	err = archive_write(a, fd, p->time_ns, path, size, e);
	close(fd);
	return err;
}

/* Writes a window and returns its path below the directory, valid until the next call. */
static inline const char *write_window(struct archive *a, uint64_t time_s, const char *function,
				       int64_t count)
{
	static char path[4096];
	struct profile *p = window_of(time_s, function, count);
	struct error e;

	if (write_profile(a, p, path, sizeof(path), &e))
		fail_msg("%s", e.what);
	profile_free(p);
	return path + strlen(directory) + 1;
}

/* The windows of a host, or of all, as paths below the directory, each followed by a blank. */
static inline char *listed(const char *host, uint64_t since_s, uint64_t until_s)
{
	static char text[65536];
	struct archive_window *windows;
	struct error e;
	size_t count;

	if (archive_list(directory, host, since_s * NS_PER_S, until_s * NS_PER_S, &windows, &count,
			 &e))
		fail_msg("%s", e.what);
	text[0] = '\0';
	for (size_t i = 0; i < count; i++)
		strcat(strcat(text, windows[i].path + strlen(directory) + 1), " ");
	archive_list_free(windows, count);
	return text;
}

#endif
