/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_TARGET_H
#define PROFIL_CAPTURE_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/* Whether this is a process (or, with `thread`, a thread) that can be profiled; says why not. */
int target_check(pid_t pid, bool thread, bool kernel_pcs, struct error *e);

/* The process of a thread, or -ESRCH. */
pid_t target_process_of(pid_t tid);

/*
 * Returns how many PIDs a thread has: one in our PID namespace and one in each below it, down to
 * its own; *innermost receives the last. 0: there is no such thread.
 */
size_t target_pid_numbers(pid_t pid, pid_t tid, uint64_t *innermost);

/* A descriptor that becomes readable when the process ends, or -1 with errno set. */
int target_open(pid_t pid);

/* Whether a process or thread is there and not a zombie. */
bool target_lives(pid_t pid, bool thread);

/* The threads of a process, at *tids, which is the caller's to free(): -ESRCH when it has ended. */
int target_list_threads(pid_t pid, pid_t **tids, size_t *count, struct error *e);

/* What a thread does: its state, see proc(5), and the function of the kernel in which it waits. */
struct target_wait {
	char state;
	char where[64]; /* "": it does not wait, or the kernel does not tell */
};

/* Returns 0 or a negative errno: -ESRCH when it has ended. */
int target_wait(pid_t tid, struct target_wait *wait);

/* CPU time of everything but idling, on all CPUs, in clock-tick steps. */
uint64_t target_system_cpu_ns(void);

#endif
