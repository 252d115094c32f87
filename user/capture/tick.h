/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_TICK_H
#define PROFIL_CAPTURE_TICK_H

#include "capture/capture.h"
#include "capture/members.h"

struct bpf_program;

/* The scheduler's own tick, and the program that traces it. */
struct tick {
	uint64_t period_ns;
	/* How far two variables of each CPU lie behind hrtimer_bases: bpf/tick.h */
	int64_t timer_distance, regs_distance;
	int link; /* a descriptor that keeps the program attached; 0: it is not */
};

/* Finds the tick and its period; frequency is that, or 0. */
int tick_prepare(struct tick *tick, unsigned int frequency, struct error *e);

/* Attaches a program to it, which counts from then on. */
int tick_begin(struct tick *tick, const struct bpf_program *program, struct error *e);

/* Detaches it: when this returns, it runs no more. */
void tick_end(struct tick *tick);

#endif
