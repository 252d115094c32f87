/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_WAITS_H
#define PROFIL_TOOL_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "tool/target.h"

/* What a target did while no tick was counted in it. */
struct idleness {
	bool excluded;	   /* there were ticks: on the side that was not asked for, */
	bool out_of_range; /* or where the histogram has no cell */
	uint64_t cpu_ns, duration_ns;
	char waits[512]; /* waits_describe() */
};

/*
 * Describes what the threads of the targets, or of `command` if it is not 0, are doing now: "it
 * waits in futex_wait", or "7 threads wait in ep_poll, 2 are stopped". Writes "" when all have
 * ended, or memory runs out.
 */
void waits_describe(const struct tool_target *t, pid_t command, char *text, size_t size);

/* Warns that no tick fell into a target, and says what it did instead. */
void waits_warn(const char *target, const struct idleness *idle);

#endif
