/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_WAITS_H
#define PROFIL_TOOL_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/target.h"
#include "tool/target.h"

/* Why no tick was counted in a target. */
struct idleness {
	bool excluded;	   /* there were ticks on the side that was not asked for */
	bool out_of_range; /* there were ticks where the histogram has no cell */
	bool no_cpu_time;  /* cpu_ns is unknown: of a user */
	const char *event; /* NULL: a clock's ticks */
	uint64_t cpu_ns, duration_ns;
	char waits[512]; /* waits_describe() */
};

/*
 * Describes what the threads of the targets, or of `command` if it is not 0, are doing now: "it
 * waits in futex_wait", or "7 threads wait in ep_poll, 2 are stopped". Writes "" when all have
 * ended, or memory runs out.
 */
void waits_describe(const struct tool_target *t, pid_t command, char *text, size_t size);

/* Warns that no tick fell into a target, and prints the reason. */
void waits_warn(const char *target, const struct idleness *idle);

/*
 * Child processes of the targets that ran before the recording, and are not recorded. The first
 * process of a server often only waits while its children work. Zero-initialised: none.
 */
struct unrecorded {
	struct target_process *children;
	size_t count;
};

/* Call it before the recording: children that start later are recorded, or not wanted. */
void unrecorded_list(struct unrecorded *u, const struct tool_target *t);

/* Says that there are some: when the recording begins. */
void unrecorded_say(const struct unrecorded *u);

/* Warns if they have used much since, compared with target_ns, the CPU time of the targets. */
void unrecorded_warn(const struct unrecorded *u, uint64_t target_ns);
void unrecorded_free(struct unrecorded *u);

#endif
