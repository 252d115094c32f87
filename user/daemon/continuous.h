/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_CONTINUOUS_H
#define PROFIL_DAEMON_CONTINUOUS_H

#include <stdbool.h>

#include "daemon/continuous_options.h"
#include "daemon/state.h"
#include "util/error.h"

/* Recording of the whole machine into an archive, minute after minute. */

/*
 * Records until SIGTERM or SIGINT, after which it writes what was counted since the last window.
 * SIGUSR1 ends a window early; SIGHUP, too, and what is read from files is read again. SIGUSR2 and
 * o->triggers have the seconds around them kept. Returns 0, or a negative errno with e set.
 */
int continuous_run(const struct continuous_options *o, struct error *e);

/*
 * Prints what the process that records into this directory has done so far. *health: whether it
 * does so still. Returns as above.
 */
int continuous_status(const char *directory, bool json, enum state_health *health, struct error *e);

#endif
