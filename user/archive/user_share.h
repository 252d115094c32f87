/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_ARCHIVE_USER_SHARE_H
#define PROFIL_ARCHIVE_USER_SHARE_H

#include <stddef.h>
#include <stdint.h>

#include "archive/archive.h"
#include "profile/profile.h"
#include "util/error.h"

/*
 * Users choose how much there is to write about their processes: thousands of names in a second,
 * stacks and addresses that no other sample has. They must not take the archive's room from each
 * other and from root.
 */

/* The name of processes, and the function of stacks, that were not kept. */
#define USER_SHARE_OTHERS "[others]"

/*
 * Wall times that all users but root have together in a file: one for each name of a process, and
 * for each process that had begun before. Less in windows that are shorter than a minute.
 * Bound: as BYTES_DEFAULT.
 */
#define USER_SHARE_WALLS 8192

struct user_share {
	uint64_t bytes; /* of all users but root together, as estimated */
	size_t walls;
};

/*
 * What users other than root may have in a file of windows of this grain and length: the archive
 * keeps two hours of the finest windows in half of its room, a day of windows of ten minutes in an
 * eighth, and all others in a quarter, whatever these users do.
 */
struct user_share user_share_of(const struct archive_limits *limits, unsigned int grain_s,
				uint64_t duration_ns);

/*
 * Replaces the profile by one in which users other than root have at most so much. They share it
 * evenly: one that has less keeps all. Of the others stays what has the most samples and CPU time;
 * the rest keeps its values, user, and mostly its unit and container, and becomes one process
 * USER_SHARE_OTHERS with one function of this name. Returns 0, or -ENOMEM with e set: then the
 * profile is to be freed.
 */
int user_share_limit(struct profile **p, const struct user_share *share, struct error *e);

#endif
