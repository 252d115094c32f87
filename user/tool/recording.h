/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_RECORDING_H
#define PROFIL_TOOL_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/capture.h"
#include "record/ask_runtimes.h"
#include "tool/service.h"
#include "util/error.h"

/* A capture from start to end, with a line of progress on a terminal. */
struct recording {
	struct capture *capture; /* or NULL: */
	struct service *service;
	int signals;		     /* recording_open_signals() */
	uint64_t duration_ns;	     /* 0: until something else ends it */
	const char *target;	     /* the name of the target in messages */
	struct runtime_asker *asker; /* NULL: ask no runtime for names */
	bool quiet;

	enum recording_end {
		RECORDING_ASKED,   /* by a signal */
		RECORDING_TIME,	   /* the duration is over */
		RECORDING_TARGETS, /* they have ended */
	} end;			   /* set by recording_run() */
};

/*
 * From here on, signals that end a recording (INT, TERM, HUP) are read from a descriptor, so that
 * they interrupt nothing. A hang-up that is ignored (nohup) stays ignored. Returns the
 * descriptor or a negative errno.
 */
int recording_open_signals(struct error *e);

/*
 * Lets these signals end the program again: once the file is written and only printing is left,
 * which may block.
 */
void recording_release_signals(void);

/* True if such a signal is pending; consumes it. context: int *, the descriptor. */
bool recording_signal_came(void *context);

/* Records until a signal, the time or the targets end it. */
int recording_run(struct recording *r, struct error *e);

#endif
