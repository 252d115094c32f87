// SPDX-License-Identifier: GPL-2.0-only
/*
 * What bcc's profile does on a tick: the ids of both stacks, from the kernel's own table of stacks,
 * counted in a hash map together with process and name.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

#define DEPTH	127
#define STACKS	16384
#define ENTRIES 10240

char LICENSE[] SEC("license") = "GPL";

struct key {
	__u32 tgid;
	__s32 user, kernel;
	__u32 unused;
	__u64 kernel_pc;
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, STACKS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, DEPTH * sizeof(__u64));
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ENTRIES);
	__type(key, struct key);
	__type(value, __u64);
} counts SEC(".maps");

SEC("perf_event")
int stackid(struct bpf_perf_event_data *ctx)
{
	struct key key = { .tgid = bpf_get_current_pid_tgid() >> 32 };
	__u64 zero = 0, *count;

	bpf_get_current_comm(&key.comm, sizeof(key.comm));
	key.user = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
	key.kernel = bpf_get_stackid(ctx, &stacks, 0);
	if (key.kernel >= 0)
		key.kernel_pc = ctx->regs.rip;
	count = bpf_map_lookup_elem(&counts, &key);
	if (!count) {
		bpf_map_update_elem(&counts, &key, &zero, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&counts, &key);
	}
	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}
