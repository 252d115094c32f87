/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_PERF_EVENT_H
#define PROFIL_CAPTURE_PERF_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/* perf_event_open(2), which libc does not wrap. Returns a descriptor, close-on-exec, or -errno. */
int perf_event_open(struct perf_event_attr *attr, pid_t tid, int cpu);

/*
 * Whether an event of this CPU can be opened: not one of a task, which would slow down every task
 * switch of the machine for a second. Returns 0 or -errno.
 */
int perf_event_try(uint32_t type, uint64_t config);

/*
 * Whether a CPU's event is dead: its CPU has gone offline since, even if it is back. The event must
 * have PERF_FORMAT_TOTAL_TIME_ENABLED. *enabled_ns keeps that time from call to call; initially 0.
 */
bool perf_event_is_dead(int fd, uint64_t *enabled_ns);

/*
 * Whether kernel.perf_event_paranoid has the level of Debian's kernels, above the usual ones, at
 * which they open perf events for CAP_SYS_ADMIN alone, and CAP_PERFMON is not enough.
 */
bool perf_event_needs_root(void);

/*
 * Makes it an event of the instruction at an offset of the file attr->uprobe_path. Returns 0, or a
 * negative errno with e set.
 */
int perf_event_uprobe(struct perf_event_attr *attr, uint64_t offset, struct error *e);

/* Sets *e for a perf_event_open() for `what` that failed with errno `code`. Returns -code. */
int perf_event_error(struct error *e, int code, const char *what);

#endif
