/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_WAITS_H
#define PROFIL_TOOL_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Describes what the threads of some processes, or one thread, are doing now: "it waits in
 * futex_wait", or "7 threads wait in ep_poll, 2 are stopped". Writes "" when all have ended, or
 * memory runs out.
 */
void waits_describe(const pid_t *pids, size_t count, bool thread, char *text, size_t size);

#endif
