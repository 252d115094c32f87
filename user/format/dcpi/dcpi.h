/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_DCPI_H
#define PROFIL_FORMAT_DCPI_H

#include "format/format.h"

/* dcpiformat(4), major version 0: one file for each image and event, in a database directory. */
extern const struct format format_dcpi;

#define DCPI_NAME "dcpi"

/* dcpi_write.c */
int dcpi_write_directory(const struct profile *p, const struct format_options *options,
			 const char *path, struct error *e);

void dcpi_dropped_images(const struct profile *p, struct format_dropped *dropped);

/* dcpi_epochs.c */
/*
 * Removes what a host has in the epochs of the database `path` that began before a time, in seconds
 * since 1970; *dropped: in how many. Other hosts' files stay. Returns 0, also if there is no such
 * database, or -errno with *e set, after all that can be removed.
 */
int dcpi_drop_epochs(const char *path, const char *host, uint64_t before_s, size_t *dropped,
		     struct error *e);

/*
 * How much the host's files have on disk. *oldest_end_s: when its oldest epoch ended, which is when
 * the next one began; UINT64_MAX: it has one at most. Returns as above.
 */
int dcpi_measure_epochs(const char *path, const char *host, uint64_t *bytes, uint64_t *oldest_end_s,
			struct error *e);

#endif
