/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ticks of a control group, and of those below it, alone: what is on the tick asks here first.
 * These are programs of their own, and not a check in all, because libbpf searches for the types
 * that they read, which takes long, only when it loads them.
 */
#ifndef PROFIL_BPF_GROUP_H
#define PROFIL_BPF_GROUP_H

#include "tick.h"

/* Set by user space before the load. */
const volatile __u64 group = 0;		 /* its ID */
const volatile bool group_is_v1 = false; /* of the hierarchy that has perf_event */

/* The program that counts. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} counting SEC(".maps");

/* Deeper groups than this are taken for strangers. */
#define GROUP_LEVELS 64

/* Whether the thread is in the control group or in one below it. */
static __always_inline bool is_in_group(struct task_struct *task)
{
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	struct cgroup *own, *at;
	int level;

	if (group_is_v1) {
		__u32 controller = bpf_core_enum_value(enum cgroup_subsys_id, perf_event_cgrp_id);
		struct cgroup_subsys_state *state;

		bpf_core_read(&state, sizeof(state), &set->subsys[controller]);
		own = BPF_CORE_READ(state, cgroup);
	} else {
		own = BPF_CORE_READ(set, dfl_cgrp);
	}
	level = BPF_CORE_READ(own, level);
	for (int i = 0; i < GROUP_LEVELS && i <= level; i++) {
		if (bpf_core_read(&at, sizeof(at), &own->ancestors[i]))
			break;
		if (BPF_CORE_READ(at, kn, id) == group)
			return true;
	}
	return false;
}

SEC("?perf_event")
int group_event(struct bpf_perf_event_data *ctx)
{
	if (is_in_group(bpf_get_current_task_btf()))
		bpf_tail_call(ctx, &counting, 0);
	return 0;
}

SEC("?tp_btf/hrtimer_expire_entry")
int group_tick(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct interrupted at;

	if (is_tick(ctx, task, &at) && is_in_group(task))
		bpf_tail_call(ctx, &counting, 0);
	return 0;
}

#endif
