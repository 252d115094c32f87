/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_CONTINUOUS_OPTIONS_H
#define PROFIL_DAEMON_CONTINUOUS_OPTIONS_H

#include <stdint.h>

#include "archive/archive.h"
#include "capture/capture.h"
#include "daemon/trigger.h"
#include "push/push.h"

/* What to record all the time, and what to do with it. */
struct continuous_options {
	const char *directory; /* of the archive */
	enum capture_event event;
	unsigned int frequency;	 /* Hz; 0 with CAPTURE_TICK */
	unsigned int unwind_mib; /* as in struct capture_options */
	uint64_t window_ns;
	struct archive_limits limits;
	struct trigger_options triggers;
	bool chains;		      /* keep each wait, for profiltool why */
	struct context_wishes wishes; /* for whom programs work */
	uint64_t watch_ns;	      /* between two looks for changes since deploys; 0: none */
	const char *metrics;	      /* a file for node_exporter; NULL: none */
	const char *dcpi;	      /* a DCPI database to write, too; NULL: none */
	/*
	 * The server to send windows to; url NULL: none. The keeper sets the members that it
	 * provides.
	 */
	struct push_options push;
};

#endif
