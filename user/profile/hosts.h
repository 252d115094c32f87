/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_HOSTS_H
#define PROFIL_PROFILE_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

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
