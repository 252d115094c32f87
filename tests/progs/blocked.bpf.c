// SPDX-License-Identifier: GPL-2.0-only
/* How long a thread is blocked, from its switch to another one to its wake-up: see blocked.c. */
#include "bpf/vmlinux.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

__u64 task;	  /* that of the thread */
__u64 since_ns;	  /* CLOCK_MONOTONIC; 0: it is not blocked */
__u64 blocked_ns; /* in all, at least */

/* For user space, by BPF_PROG_TEST_RUN: the thread is the caller. */
SEC("raw_tp")
int follow(void *ctx)
{
	(void)ctx;
	task = bpf_get_current_task();
	return 0;
}

/*
 * A thread that is preempted can run, whatever its state. One that goes on without an event of its
 * wake-up has lost that: it was blocked for an unknown time.
 */
SEC("tp_btf/sched_switch")
int switches(__u64 *ctx)
{
	if (ctx[1] == task)
		since_ns = !ctx[0] && (__u32)ctx[3] ? bpf_ktime_get_ns() : 0;
	else if (ctx[2] == task)
		since_ns = 0;
	return 0;
}

/* From now on it waits for a CPU. */
SEC("tp_btf/sched_wakeup")
int is_woken(__u64 *ctx)
{
	if (ctx[0] == task && since_ns) {
		blocked_ns += bpf_ktime_get_ns() - since_ns;
		since_ns = 0;
	}
	return 0;
}
