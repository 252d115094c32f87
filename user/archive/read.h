/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_ARCHIVE_READ_H
#define PROFIL_ARCHIVE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/archive.h"
#include "archive/coverage.h"
#include "profile/filter.h"
#include "profile/profile.h"

/* Tags that samples of an archive can get: which host, and when their window began (a number). */

/* Zero-initialised: all windows of all hosts; but until_ns must be set. */
struct archive_query {
	const char *directory;
	const char *const *hosts; /* names and shell patterns */
	size_t host_count;	  /* 0: all hosts */
	uint64_t since_ns, until_ns;
	struct profile_label_filter labels;
	bool host_tag;	  /* give samples TAG_HOST */
	bool time_tag;	  /* give samples TAG_TIME */
	uint64_t step_ns; /* with time_tag: what times are rounded down to; 0: chosen */
	bool times;	  /* keep the times of ticks */
	/* Of the windows of which a part lies in the interval, only what lies outside of it. */
	bool rest;
	bool no_code; /* without stacks, which many questions do not need: faster */
	bool fine;    /* do not read sums instead of the windows that are there */
};

/* What was read of one host. */
struct archive_host {
	char *name;
	struct coverage coverage;
	unsigned int grain_s; /* of the coarsest window */
	/* Windows of which only a part was to be read, which have no times of ticks: all of it was.
	 */
	size_t uncut;
	unsigned int untimed_s; /* the coarsest window without times of ticks; 0: all have them */
};

struct archive_result {
	struct profile *p; /* the sum; its warnings name windows that were skipped */
	struct archive_host *hosts;
	size_t host_count;
	uint64_t step_s;     /* what TAG_TIME counts in */
	const char *lacking; /* a label that query.labels wants and no sample has; or NULL */
};

/*
 * Whether a directory has hosts with windows, or is one host's: *host is then its name, and
 * *directory its parent; both to be free()d. Returns false for any other path.
 */
bool archive_find(const char *path, char **directory, char **host);

/*
 * Reads the windows of which a part lies in the interval, several at a time, and adds them up. Of
 * those at its ends, only the ticks in the interval count, if their times are known; else all.
 * Damaged ones are skipped: the sum is then salvaged. No window is an error, which says what the
 * archive holds. Returns 0 or -errno with e set. archive_result_free() is due in any case; it does
 * not free p, which is the caller's.
 */
int archive_read(const struct archive_query *query, struct archive_result *result, struct error *e);
void archive_result_free(struct archive_result *result);

#endif
