/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_MERGE_H
#define PROFIL_PROFILE_MERGE_H

#include "profile/profile.h"
#include "util/error.h"
#include "util/index.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The first location at each address and mapping of a profile, for all merges into it.
 * Zero-initialise it before the first merge. Between merges, the profile's locations must not
 * change.
 * Bound: size.
 */
struct merge_cache {
	struct index locations;
	size_t indexed; /* this many of the profile's locations */
};

void merge_cache_free(struct merge_cache *cache);

/*
 * Adds a profile to another one.
 *
 * Two locations are the same code when their images have the same build ID, or the same path where
 * one has none, and the offset in the file is the same (the address, for images in their own
 * numbering and memory without a file). They become one location in the first profile's mapping,
 * wherever the image was loaded; but not when the files name different functions or lines there.
 * Images with one build ID become one, also those of one profile, with the shortest of their paths.
 * Samples add up where stacks and labels are equal, arcs where their ends are.
 *
 * Values add up where type and unit are equal; what only one profile has counts 0 in the other.
 * Profiles of different events keep them apart: "samples" is then called by its event in both.
 *
 * Wall times add up where labels are equal.
 *
 * Times: the earliest start, the sum of the durations; those of ticks, where all profiles are of
 * one host. Accounts add up, and are unknown when one of them is. Event, period, host and command
 * stay when they are equal, and else become unknown, with a warning for the period. The bucket is
 * the larger. Comments, extras and warnings: each text once, the first profile's first.
 *
 * A profile without value types is empty, and becomes like the one that is added.
 *
 * Takes time in proportion to `from`, and to the images, mappings and comments of `to`; without a
 * cache also to the locations of `to`.
 * Returns 0, or -ENOMEM with e set: `to` may then be incomplete, and must be freed.
 */
int profile_merge(struct profile *to, const struct profile *from, struct merge_cache *cache,
		  struct error *e);

/* Bound: files: hosts that are named; then: further ones are "...". */
#define HOSTS_MAX 10 /* that are named; no more are kept */

/* The hosts of profiles that are merged: the samples of the sum have no host. */
struct hosts {
	char *names[HOSTS_MAX]; /* in the order in which they came */
	size_t count;
};

/* Adds profile.host, unless it is unknown ("") or there already. Returns 0 or -ENOMEM. */
int hosts_add(struct hosts *h, const char *host);

/* Writes "HOST, HOST" and returns true when there are several; otherwise returns false. */
bool hosts_are_several(const struct hosts *h, char *text, size_t size);

void hosts_free(struct hosts *h);

#endif
