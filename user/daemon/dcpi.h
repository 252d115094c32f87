/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_DCPI_H
#define PROFIL_DAEMON_DCPI_H

#include <stdint.h>

#include "daemon/state.h"
#include "profile/profile.h"
#include "util/error.h"

/* --dcpi DIR: the counts of all windows are also added to a DCPI database. */

/*
 * Adds a window to the database `directory`, and counts losses and failures in `state`; both are
 * logged. *epoch_ns is the caller's, 0 at first: when the epoch began that windows are added to.
 */
void dcpi_add_window(const char *directory, uint64_t *epoch_ns, struct profile *p,
		     struct state *state);

/* Removes what the host has in epochs that began before a time, and logs it with the reason. */
void dcpi_drop(const char *directory, const char *host, uint64_t before_s, const char *why);

/*
 * It is what archive_tidy() finds beside the windows: a host's part of the database. Where it has
 * more than half of the limit in one epoch, windows begin another one.
 */
struct dcpi_part {
	const char *directory, *host;
	uint64_t most_bytes; /* half of the limit; 0: there is none */
	struct state *state;
};

int dcpi_measure(void *context, uint64_t *bytes, uint64_t *oldest_end_s, struct error *e);
void dcpi_drop_before(void *context, uint64_t end_s);

#endif
