/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_CONTINUOUS_H
#define PROFIL_DAEMON_CONTINUOUS_H

#include "daemon/continuous_options.h"
#include "util/error.h"

/* Recording of the whole machine into an archive, minute after minute. */

/*
 * Records until SIGTERM or SIGINT, after which it writes what was counted since the last window.
 * SIGUSR1 ends a window early; SIGHUP, too, and what is read from files is read again. SIGUSR2 and
 * o->triggers have the seconds around them kept. Returns 0, or a negative errno with e set.
 */
int continuous_run(const struct continuous_options *o, struct error *e);

#endif
