/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_DCPI_H
#define PROFIL_DAEMON_DCPI_H

#include <stdint.h>

#include "daemon/state.h"
#include "profile/profile.h"

/* --dcpi DIR: the counts of all windows are also added to a DCPI database. */

/*
 * Adds a window to the database `directory`, and counts losses and failures in `state`; both are
 * logged. *epoch_ns is the caller's, 0 at first: when the epoch began that windows are added to.
 */
void dcpi_add_window(const char *directory, uint64_t *epoch_ns, struct profile *p,
		     struct state *state);

/* Removes what the host has in epochs that began before a time, and logs it. */
void dcpi_drop_old(const char *directory, const char *host, uint64_t before_ns);

#endif
