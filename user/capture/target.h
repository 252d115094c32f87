/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_TARGET_H
#define PROFIL_CAPTURE_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * Whether the process (or, with `thread`, the thread) can be profiled. Returns 0, or -errno and
 * sets *e.
 */
int target_check(pid_t pid, bool thread, bool kernel_pcs, struct error *e);

/* The PID of a thread's process, or -ESRCH. */
pid_t target_process_of(pid_t tid);

/* Returns a descriptor that becomes readable when the process ends; -1: failed, errno is set. */
int target_open(pid_t pid);

/* Whether the process or thread exists and is not a zombie. */
bool target_lives(pid_t pid, bool thread);

/* When the process began: CLOCK_BOOTTIME, rounded down to a clock tick. 0: unknown. */
uint64_t target_start_ns(pid_t pid);

/* Sets *tids to the *count threads of a process; the caller frees it. -ESRCH: it has ended. */
int target_list_threads(pid_t pid, pid_t **tids, size_t *count, struct error *e);

/*
 * Sets *pids to the *count processes whose effective user this is; the caller frees it. A process
 * that is not dumpable is not among them: in /proc it is root's. Returns 0 or a negative errno.
 */
int target_list_of_user(uid_t uid, pid_t **pids, size_t *count);

/* A process, and the CPU time that it has used. */
struct target_process {
	pid_t pid;
	uint64_t start_ns; /* of target_start_ns(): distinguishes it from a later process with its
			      PID */
	uint64_t cpu_ns;
};

/*
 * Sets *children to the *count children of these processes, and theirs, which are not among them;
 * the caller frees it. None where the kernel does not list children (CONFIG_PROC_CHILDREN). Returns
 * 0 or -ENOMEM.
 */
int target_list_children(const pid_t *pids, size_t pid_count, struct target_process **children,
			 size_t *count);

/* How much CPU time the process has used since it was listed; 0: it has ended. */
uint64_t target_used_since(const struct target_process *process);

/* A thread's state (proc(5)), and the kernel function in which it waits. */
struct target_wait {
	char state;
	char where[64]; /* "": it does not wait, or unknown */
};

/* Returns 0 or a negative errno: -ESRCH when it has ended. */
int target_wait(pid_t tid, struct target_wait *wait);

/* The CPU time of all CPUs without idle time, at the resolution of a clock tick; 0: unknown. */
uint64_t target_system_cpu_ns(void);

#endif
