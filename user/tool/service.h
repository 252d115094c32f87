/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_SERVICE_H
#define PROFIL_TOOL_SERVICE_H

#include <stdbool.h>

#include "capture/capture.h"
#include "profile/profile.h"
#include "record/service.h"
#include "tool/target.h"
#include "util/error.h"

/*
 * A recording that profild --record makes for a user who may not record: record/service.h. It knows
 * processes by their pidfds, and hands over addresses; their names are found here, with the rights
 * that the user has.
 */
struct service {
	int socket;
	uint32_t version; /* of the protocol, that both speak */
	int signals;	  /* one that comes there ends a wait for profild; -1: none does */
	char no_waits[RECORD_MESSAGE_SIZE]; /* why waits are not recorded, if they were asked for */
	enum record_end end;		    /* of the last result */
};

/*
 * Where profild listens, if it is to record: this process lacks the privileges, and the socket is
 * there. Else NULL.
 */
const char *service_path(void);

/* Checks that profild records this for users. Returns 0, or -ENOTSUP with e set. */
int service_check(const struct tool_target *target, bool command, struct error *e);

/*
 * Has profild record options->pids, which have been checked, or `command`, not 0: a process that is
 * to execute the program. Other members of the options are as for capture_start(). signals: of
 * recording_open_signals(), or -1 where none are blocked. Returns 0 when ticks are counted, with *s
 * to be closed by service_close(), or a negative errno with e set.
 */
int service_start(struct service *s, const char *path, const struct capture_options *options,
		  pid_t command, int signals, struct error *e);

/* True if profild has ended the recording, or the connection. */
bool service_has_ended(const struct service *s);

/*
 * Takes what was counted since the last time; `last`: and ends the recording, for which signals
 * that have come by then are dropped. s->end says whether it has ended. *p is the caller's. Returns
 * 0, or a negative errno with e set.
 */
int service_take(struct service *s, bool last, struct profile **p, struct error *e);

/* Ends the recording, if it runs. */
void service_close(struct service *s);

#endif
