/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_PERF_EVENT_H
#define PROFIL_CAPTURE_PERF_EVENT_H

#include <linux/perf_event.h>
#include <sys/types.h>

#include "util/error.h"

/* perf_event_open(2), which has no wrapper in libc. Returns a descriptor or -errno. */
int perf_event_open(struct perf_event_attr *attr, pid_t tid, int cpu);

/* The same for what runs on a CPU and is in a control group, or in one below it. */
int perf_event_open_cgroup(struct perf_event_attr *attr, int directory, int cpu);

/* Explains a perf_event_open() for `what` that failed with `code`. Returns -code. */
int perf_event_error(struct error *e, int code, const char *what);

#endif
