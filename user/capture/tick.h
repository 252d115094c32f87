/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_TICK_H
#define PROFIL_CAPTURE_TICK_H

#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

struct bpf_program;
struct kernel_types;

/* The scheduler's own tick, and the program that traces it. */
struct tick {
	uint64_t tick_ns;
	/* The distances of two per-CPU variables from hrtimer_bases: see bpf/tick.h. */
	int64_t timer_distance, regs_distance;
	int link; /* a descriptor that keeps the program attached; 0: not attached */
};

/* Finds the tick and its period. `frequency` must match, or be 0. Returns 0 or a negative errno. */
int tick_prepare(struct tick *tick, unsigned int frequency, struct kernel_types *types,
		 struct error *e);

/* Attaches the program to the tick. Returns 0 or a negative errno. */
int tick_begin(struct tick *tick, const struct bpf_program *program, struct error *e);

/* Detaches the program: after this it does not run any more. */
void tick_end(struct tick *tick);

/*
 * Writes to `list` which CPUs have no tick while a single task runs there ("2-7"), so that this
 * clock misses that task; "": none.
 */
void tick_tickless_cpus(char *list, size_t size);

#endif
