/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_TICK_H
#define PROFIL_CAPTURE_TICK_H

#include "capture/capture.h"
#include "capture/program.h"
#include "capture/sample_program.h"

#define TICK_PROGRAMS 4

/*
 * The programs that trace the scheduler's own tick, and those that follow whose ticks count.
 * Zero-initialised is none.
 */
struct tick {
	struct program program; /* first, so that it is found from there */
	uint64_t period_ns;	/* of the kernel's tick */
	/* How far two variables of each CPU lie behind hrtimer_bases: bpf/tick.bpf.c */
	int64_t timer_distance, regs_distance;
	const struct capture_options *options;
	const struct sample_program *sample; /* whose maps it counts in */
	struct tick_bpf *bpf;
	int links[TICK_PROGRAMS]; /* descriptors that keep the programs attached */
	size_t link_count;
};

/* Finds the tick and its period, and refuses what it cannot do. The options must stay. */
int tick_prepare(struct tick *tick, const struct capture_options *options, struct error *e);

/* Loads the programs, to count in what `sample`, which is loaded, shares with us. */
int tick_load(struct tick *tick, const struct sample_program *sample, struct error *e);

/* Attaches them: with CAPTURE_SYSTEM ticks are counted from now on, else those of members. */
int tick_begin(struct tick *tick, struct error *e);

/* Has the ticks of a process, or of CAPTURE_THREAD, counted; of a command from its exec on. */
int tick_add(struct tick *tick, pid_t pid, struct error *e);

/* It had ended before it was added: its number may be another's. */
void tick_remove(struct tick *tick, pid_t pid);

/* Detaches the programs: no tick is counted any more after this. */
void tick_end(struct tick *tick);

void tick_free(struct tick *tick);

#endif
