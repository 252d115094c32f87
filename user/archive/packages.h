/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_ARCHIVE_PACKAGES_H
#define PROFIL_ARCHIVE_PACKAGES_H

#include "profile/build_id.h"
#include "util/error.h"
#include "util/table.h"

/*
 * Which package each build of an image is of: windows have build IDs alone, and when a package was
 * upgraded, nobody can tell any more what was installed before. In DIRECTORY/HOST/.packages, a line
 * for each build: BUILD NAME VERSION.
 */
struct archive_package {
	char build[BUILD_ID_TEXT_SIZE];
	char *name, *version;
};

/* Zero-initialised: none. */
struct archive_packages {
	TABLE(struct archive_package) table; /* by build, the oldest first */
};

/*
 * Adds those of a host. Others may own its directory: what is no line of the file is skipped, and
 * there is a limit to what is read. Returns 0 or -ENOMEM.
 */
int packages_read(struct archive_packages *p, const char *directory, const char *host);

/* Adds a build that is not there yet; copies the texts, which are words. Returns 0 or -ENOMEM. */
int packages_add(struct archive_packages *p, const char *build, const char *name,
		 const char *version);

/* NULL: unknown. It is valid until the next one is added. */
const struct archive_package *packages_find(const struct archive_packages *p, const char *build);

/*
 * Replaces a host's file, durably, by the newest that there is room for. For the process that holds
 * the archive's lock, or its child. Returns 0 or -errno with e set.
 */
int packages_write(struct archive_packages *p, const char *directory, const char *host,
		   struct error *e);
void packages_free(struct archive_packages *p);

#endif
