/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_SERVER_H
#define PROFIL_DAEMON_SERVER_H

#include "daemon/account.h"
#include "util/error.h"

/*
 * Signals that end profild (TERM, INT) come through a descriptor from here on. Returns the
 * descriptor or a negative errno.
 */
int server_open_signals(struct error *e);

/*
 * Serves clients that connect to the listening socket until a signal comes. The descriptors and the
 * histograms, of which none is left then, stay the caller's. Returns 0 or a negative errno.
 */
int server_run(int listener, int signals, struct histograms *histograms,
	       const struct limits *limits, struct error *e);

#endif
