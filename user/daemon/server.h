/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_SERVER_H
#define PROFIL_DAEMON_SERVER_H

#include "daemon/account.h"
#include "util/error.h"

/*
 * Blocks SIGTERM and SIGINT. Returns a descriptor that they can be read from, which is the
 * caller's, or a negative errno with e set.
 */
int server_open_signals(struct error *e);

/*
 * Serves clients that connect to the listening socket until a signal comes. The descriptors and the
 * histograms stay the caller's; when it returns, no client's histogram is left. Returns 0, or a
 * negative errno with e set.
 */
int server_run(int listener, int signals, struct histograms *histograms,
	       const struct limits *limits, struct error *e);

#endif
