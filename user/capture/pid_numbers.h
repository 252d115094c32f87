/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_PID_NUMBERS_H
#define PROFIL_CAPTURE_PID_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * The numbers of a thread, from our pid namespace to its own: how many they are, and the last. 0:
 * there is no such thread.
 */
size_t pid_numbers(pid_t pid, pid_t tid, uint64_t *innermost);

/* Whether the thread that has the number `tid` now is one of process `pid`. */
bool pid_has_thread(pid_t pid, pid_t tid);

/*
 * What identifies a process in a BPF program, whatever pid namespace we are in: the
 * arguments of bpf_get_ns_current_pid_tgid(), and the tgid that it answers.
 */
struct pid_identity {
	uint64_t device, inode; /* of the process's own pid namespace; the kernel's dev_t */
	uint32_t tgid;		/* its number there */
};

/* -ESRCH when the process has ended. */
int pid_identity_read(pid_t pid, struct pid_identity *identity, struct error *e);

#endif
