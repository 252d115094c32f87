/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls of one function: programs at its entry and at its returns (uprobes) write when each call of
 * a thread that is recorded began and ended. Of a recursion the outermost call counts. Stacks grow
 * down, so the stack pointer says which one that is, and that a call has ended without a return: by
 * an exception or longjmp().
 */
#ifndef PROFIL_BPF_CALLS_H
#define PROFIL_BPF_CALLS_H

#include "arch.h"
#include "call.h"
#include "waits.h"

struct call_task {
	__u64 since_ns;	  /* CLOCK_MONOTONIC; 0: no call is under way */
	__u64 id, pc, sp; /* at the entry */
};

/*
 * Bound: machine: threads whose calls are followed; memory of the kernel for each; then: the call
 * is not recorded; again: when the kernel has memory; share: none; seen: calls_lost.
 */
TASK_STORAGE(call_tasks, struct call_task);

RING(call_ring, CALL_RING_BYTES);

static __always_inline void lose_call(void)
{
	struct wait_counters *counters = own_wait_counters();

	/* The thread may be preempted here. */
	if (counters)
		__sync_fetch_and_add(&counters->calls_lost, 1);
}

/* Writes the call that is under way. Nobody is woken for it: the ring is read in time. */
static __always_inline void end_call(struct call_task *call)
{
	const struct call_record record = {
		.id = call->id,
		.pc = call->pc,
		.since_ns = call->since_ns,
		.until_ns = bpf_ktime_get_ns(),
	};

	call->since_ns = 0;
	if (bpf_ringbuf_output(&call_ring, (void *)&record, sizeof(record), BPF_RB_NO_WAKEUP))
		lose_call();
}

SEC("?kprobe")
int enter_function(bpf_user_pt_regs_t *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 id, sp = ctx->sp;
	struct call_task *call;

	if (!has_waits(task, false))
		return 0;
	call = bpf_task_storage_get(&call_tasks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!call) {
		lose_call();
		return 0;
	}
	id = sample_id_make(task->self_exec_id, tgid_of(task), tid_of(task));
	/* A call of another program has ended by exec: nobody knows when. */
	if (call->since_ns && call->id == id) {
		if (sp < call->sp)
			return 0;
		end_call(call);
	}
	call->id = id;
	call->pc = ctx->PC_REGISTER;
	call->sp = sp;
	call->since_ns = bpf_ktime_get_ns();
	return 0;
}

/* Before the instruction that returns, where the stack pointer is as at the entry. */
SEC("?kprobe")
int leave_function(bpf_user_pt_regs_t *ctx)
{
	struct call_task *call =
		bpf_task_storage_get(&call_tasks, bpf_get_current_task_btf(), NULL, 0);

	if (call && call->since_ns && ctx->sp >= call->sp)
		end_call(call);
	return 0;
}

/* A call that has not returned by then ends with its thread. */
SEC("?tp_btf/sched_process_exit")
int exit_function(const __u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct call_task *call = bpf_task_storage_get(&call_tasks, task, NULL, 0);

	if (call && call->since_ns)
		end_call(call);
	return 0;
}

#endif
