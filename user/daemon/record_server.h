/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_RECORD_SERVER_H
#define PROFIL_DAEMON_RECORD_SERVER_H

#include "daemon/record_worker.h"
#include "util/error.h"

/*
 * Serves clients that connect to the listening socket (record/service.h), each by a process of its
 * own, until SIGTERM or SIGINT comes from `signals` (signals_open(), with SIGCHLD). The descriptors
 * stay the caller's. Returns 0, or a negative errno with e set.
 */
int record_server_run(int listener, int signals, const struct record_limits *limits,
		      struct error *e);

#endif
