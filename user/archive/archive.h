/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_ARCHIVE_ARCHIVE_H
#define PROFIL_ARCHIVE_ARCHIVE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "archive/window_name.h"
#include "profile/filter.h"
#include "profile/profile.h"
#include "util/error.h"

/*
 * The archive of a profiler that never stops: a tree of profiles of a minute each, its windows.
 *
 *     DIRECTORY/HOST/YYYY-MM-DD/HHMMSS.pb.gz       in UTC, by when they began
 *     DIRECTORY/HOST/YYYY-MM-DD/HHMMSS-10m.pb.gz   the sum of those of ten minutes
 *     DIRECTORY/HOST/YYYY-MM-DD/HHMMSS-1h.pb.gz    of an hour
 *
 *     DIRECTORY/HOST/YYYY-MM-DD/HHMMSS-10m.sum.pb.gz, -1h.sum.pb.gz, -1d.sum.pb.gz
 *
 *     DIRECTORY/HOST/YYYY-MM-DD/HHMMSS-trigger-NAME.pb.gz   seconds around a time
 *     DIRECTORY/HOST/YYYY-MM-DD/HHMMSS-change-before.pb.gz, -after.pb.gz   a service, and a deploy
 *
 * All are pprof files, complete at any moment. Sums begin at whole ten minutes and hours of UTC,
 * and replace all windows that began in theirs: a window that a coarser one covers is not read. So
 * a process that is killed between writing a sum and removing its parts leaves nothing that counts
 * twice. A .sum is one whose parts are still there: readers of a long interval read it in place of
 * them. It loses that part of its name when they are old, and are removed. Files of triggers and
 * changes are copies of a part of windows, which nobody reads in place of them. Temporary files
 * begin with a dot.
 *
 * Symbolic links are not followed below DIRECTORY.
 */

#define ARCHIVE_DIRECTORY   "/var/lib/profil"
#define ARCHIVE_ENVIRONMENT "PROFIL_ARCHIVE" /* has another directory for readers */

/* Windows that ended so long ago are merged into coarser ones. Bound: pace. */
#define ARCHIVE_FINE_S	(2 * 3600)
#define ARCHIVE_10MIN_S (24 * 3600)

/* --- Writing: user/archive/archive.c --- */

struct archive;

/*
 * Opens a host's part of the tree for writing; makes its directories, locks it, and removes what a
 * killed process left under temporary names. host: any text, as gethostname(2) has it. holder: the
 * process that others who want the lock are referred to. The lock is shared with forked children,
 * and ends with the last of them. Returns 0 or -errno with e set; -EBUSY: another process has it.
 */
int archive_open(const char *directory, const char *host, pid_t holder, struct archive **a,
		 struct error *e);
void archive_close(struct archive *a);

/* Whether a process has a host's part of the tree open for writing. */
bool archive_has_writer(const char *directory, const char *host);

/*
 * Makes the bytes of a window's file, in memory: *fd, which the caller closes. The archive's disk
 * is not asked for. step() is called again and again meanwhile; NULL: it is not. Returns 0 or
 * -errno with e set.
 */
int archive_encode(const struct profile *p, void (*step)(void *context), void *context, int *fd,
		   struct error *e);

/*
 * Writes such bytes, of a window that began at time_ns, durably and whole or not at all. It never
 * replaces another: where the name is taken, because the clock was set back, it gets that of the
 * next free second. What is there already, as a process that was ended has written it, is not
 * written again. path (may be NULL) receives the file's path. Returns 0 or -errno with e set.
 */
int archive_write(struct archive *a, int fd, uint64_t time_ns, char *path, size_t size,
		  struct error *e);

/* --- Triggers and changes: user/archive/trigger.c --- */

/* Seconds that are to be kept as a file of their own. */
struct archive_trigger {
	enum window_trigger kind;
	const char *what; /* becomes a comment, "trigger=WHAT" */
	/* Since the epoch: the time that the file is named by, and the interval that it has. */
	uint64_t time_ns, since_ns, until_ns;
};

/*
 * Writes all ticks of an interval whose times windows of a minute have, with these times. Where the
 * name is taken, the file gets that of the next free second, which trigger->time_ns becomes. path
 * receives the file's path. For the process that holds the lock, or its child. Returns 0 or -errno
 * with e set; -ENOENT: there is no such tick.
 */
int archive_write_trigger(const char *directory, const char *host, struct archive_trigger *trigger,
			  char *path, size_t size, struct error *e);

/*
 * Stores when triggers came whose files are there, from since_s to until_s: of the last `most` of
 * them, in any order; and 0 in the rest of times_s. Returns 0 or -errno with e set.
 */
int archive_find_triggers(const char *directory, const char *host, uint64_t since_s,
			  uint64_t until_s, uint64_t *times_s, size_t most, struct error *e);

/* What a service did before a change, and after it. */
struct archive_change {
	const char *what; /* becomes a comment, "change=WHAT" */
	struct profile_label_filter service;
	uint64_t time_ns; /* since the epoch: the time that the files are named by */
	struct time_interval before, after;
};

/*
 * Writes two files, of what the service's samples are in the windows that lie in each interval as a
 * whole: stacks alone, without times, and shortened where there are too many. Where the name is
 * taken, both get that of the next free second. paths receives those of the files. For the process
 * that holds the lock, or its child. Returns 0 or -errno with e set.
 */
int archive_write_change(const char *directory, const char *host,
			 const struct archive_change *change, char (*paths)[PATH_MAX],
			 struct error *e);

/* --- Listing: user/archive/list.c --- */

struct archive_window {
	char *path;
	const char *host;     /* the directory's name; part of path's memory */
	uint64_t start_ns;    /* since the epoch, by its name */
	uint64_t limit_ns;    /* when it ended, if nothing interrupted it */
	unsigned int grain_s; /* 60, 600 or 3600; of sums also 86400 */
	bool sum;	      /* of windows that are still there */
	uint64_t bytes;	      /* on disk */
};

/*
 * Lists the windows of which a part lies in [since_ns, until_ns), but those that coarser ones
 * cover, ordered by host and time. host: a name or shell pattern, fnmatch(3); NULL: all. The caller
 * frees them with archive_list_free(). No window is no error: *count is 0. Returns 0 or -errno with
 * e set.
 */
int archive_list(const char *directory, const char *host, uint64_t since_ns, uint64_t until_ns,
		 struct archive_window **windows, size_t *count, struct error *e);

/*
 * The same with sums up to this grain (600, 3600 or 86400) in place of the windows that they
 * contain, where all of these lie in the interval. They have no labels of processes from hours on.
 */
int archive_list_sums(const char *directory, const char *host, uint64_t since_ns, uint64_t until_ns,
		      unsigned int most_grain_s, struct archive_window **windows, size_t *count,
		      struct error *e);
void archive_list_free(struct archive_window *windows, size_t count);

/* --- Tidying: user/archive/tidy.c --- */

/* What may stay. 0: no limit. */
struct archive_limits {
	uint64_t bytes; /* on disk, of a host's windows and what is kept beside them */
	uint64_t days;
	uint64_t free_bytes; /* of the file system, to be kept free */
	/*
	 * The newest windows, up to those of ten minutes, keep the times of their ticks: of so many
	 * bytes on disk, that began at most so long ago.
	 */
	uint64_t times_bytes;
	uint64_t times_s; /* 0: none keeps them */
};

/*
 * What is kept beside the windows, and counts in the same limits: the oldest goes first, of both;
 * and of what is beside them, what is more than half of limits->bytes.
 */
struct archive_beside {
	/*
	 * How much it has on disk, and when the oldest ended of what may go, in seconds since the
	 * epoch; UINT64_MAX: nothing may. Returns 0 or -errno with e set.
	 */
	int (*measure)(void *context, uint64_t *bytes, uint64_t *oldest_end_s, struct error *e);
	void (*drop_before)(void *context, uint64_t end_s); /* removes, and reports, the oldest */
	void *context;
	bool other_disk; /* it is on another: removing it makes no room for windows */
};

/* What tidying leaves for others, and for the next time. Zero-initialised. */
struct archive_tidied {
	uint64_t old_before_ns; /* others may remove what is older, too: it is over days; 0: no */
	uint64_t times_from_ns; /* windows that began before have no times of ticks */
};

enum archive_reason {
	ARCHIVE_OVER_BYTES,
	ARCHIVE_OVER_DAYS,
	ARCHIVE_NO_SPACE, /* less than free_bytes */
	ARCHIVE_DAMAGED,  /* not dropped, but renamed to PATH.damaged: it could not be merged */

	/*
	 * Nothing is merged, or dropped over days: the clock is days after all that was recorded
	 * (first_ns: its end; limit_ns: the clock), and less than an hour was recorded by it.
	 */
	ARCHIVE_CLOCK_JUMPED,
	/*
	 * Kept although over days: they are most of what is recorded, and days without any lie
	 * between them and now. The clock may be wrong.
	 */
	ARCHIVE_MOST_OLD,
	ARCHIVE_REASONS,
};

/* Windows that were dropped, or kept, for one reason; or one that is damaged. */
struct archive_dropped {
	enum archive_reason reason;
	uint64_t count, bytes;
	uint64_t first_ns, limit_ns; /* when the first began and the last ended */
	const char *path;	     /* of the damaged one; MOST_OLD: DIRECTORY/HOST; else NULL */
	const char *why;	     /* it is damaged; else NULL */
};

/*
 * Removes what a coarser window covers, merges old windows into coarser ones and removes the times
 * of ticks from others, some in each call (so call it after each window), then drops windows that
 * are over the limits, oldest first: over bytes, over days, and until there is enough free space.
 * The newest stays. Calls report() for what was dropped, for what is damaged, and for what stays
 * because the clock may be wrong.
 *
 * beside: NULL: nothing is. now_ns: the time, since the epoch. Windows that begin at
 * keep_fine_from_ns or later stay as they are (they are not pushed yet); UINT64_MAX: none has to.
 * For the process that holds the lock, or its child; not for two at once.
 *
 * Returns 0 or -errno with e set; limits are kept even when merging fails.
 */
int archive_tidy(const char *directory, const char *host, const struct archive_limits *limits,
		 const struct archive_beside *beside, uint64_t now_ns, uint64_t keep_fine_from_ns,
		 void (*report)(const struct archive_dropped *dropped, void *context),
		 void *context, struct archive_tidied *tidied, struct error *e);

#endif
