/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_SERVER_H
#define PROFIL_DAEMON_SERVER_H

#include "daemon/account.h"
#include "util/error.h"

/*
 * Serves clients that connect to the listening socket until one of the signals comes, of which
 * `signals` is a descriptor (signals_open()). The descriptors and the
 * histograms stay the caller's; when it returns, no client's histogram is left. Returns 0, or a
 * negative errno with e set.
 */
int server_run(int listener, int signals, struct histograms *histograms,
	       const struct limits *limits, struct error *e);

#endif
