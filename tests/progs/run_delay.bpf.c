// SPDX-License-Identifier: GPL-2.0-only
/* The kernel's account of each thread, and at its exit of each that ends: see run_delay.c. */
#include "bpf/vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "tests/progs/run_delay.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, __u64); /* start_ns: no two threads have the same */
	__type(value, struct thread_account);
} ended SEC(".maps");

static __always_inline struct thread_account account_of(struct task_struct *task)
{
	struct thread_account account = {
		.tid = BPF_CORE_READ(task, pid),
		.pid = BPF_CORE_READ(task, tgid),
		.start_ns = BPF_CORE_READ(task, start_time),
		.delay_ns = BPF_CORE_READ(task, sched_info.run_delay),
		.cpu = BPF_CORE_READ(task, se.cfs_rq, rq, cpu),
	};
	__u64 since = BPF_CORE_READ(task, sched_info.last_queued),
	      now = BPF_CORE_READ(task, se.cfs_rq, rq, clock);

	if (since && now > since)
		account.delay_ns += now - since;
	return account;
}

SEC("iter/task")
int each_thread(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread_account account;

	if (!task)
		return 0;
	account = account_of(task);
	bpf_seq_write(ctx->meta->seq, &account, sizeof(account));
	return 0;
}

SEC("tp_btf/sched_process_exit")
int thread_ends(void *ctx)
{
	struct thread_account account = account_of(bpf_get_current_task_btf());

	(void)ctx;
	bpf_map_update_elem(&ended, &account.start_ns, &account, BPF_ANY);
	return 0;
}
