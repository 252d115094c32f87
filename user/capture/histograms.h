/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_HISTOGRAMS_H
#define PROFIL_CAPTURE_HISTOGRAMS_H

/* What histogram.c, and histogram_share.c, know of struct histograms. */

#include "capture/events.h"
#include "capture/histogram.h"
#include "capture/members.h"
#include "capture/profil_program.h"
#include "capture/tick.h"

/* A rate that is in use. */
struct histogram_clock {
	size_t histograms;  /* of this process that have it */
	uint64_t period_ns; /* 0: it is not open */
	struct event_set events;
	int kept; /* a map that keeps the events open for other processes, too; 0: none */
};

struct histograms {
	struct profil_program profil;
	struct members members;
	int program; /* that is on the tick */
	unsigned int most;
	struct histogram_clock clocks[HISTOGRAM_CLOCKS];
	struct tick tick;
	bool has_tick;		    /* it is the only clock, the first of them */
	struct error without;	    /* why */
	uint32_t lowest;	    /* no client's number below it is free */
	bool threads;		    /* may be made */
	bool is_adopted;	    /* another process loaded the program */
	_Atomic unsigned int waits; /* threads that wait for the kernel */
	_Atomic int publish_err;    /* why one of them could not publish */
};

void histograms_close_clock(struct histogram_clock *clock);

#endif
