/* SPDX-License-Identifier: GPL-2.0-only */
/* The control group that is recorded. */
#ifndef PROFIL_BPF_GROUP_H
#define PROFIL_BPF_GROUP_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* Set by user space before the load. */
const volatile __u64 group = 0;		 /* ID of the control group */
const volatile bool group_is_v1 = false; /* in the v1 hierarchy with perf_event */

/* Groups more than this below the root are not found. */
#define GROUP_LEVELS 64

/* Before Linux 6.1 it has the IDs of these groups instead. */
struct cgroup___before_6_1 {
	__u64 ancestor_ids[GROUP_LEVELS];
} __attribute__((preserve_access_index));

/* Whether the thread is in a control group, or in one below it. */
static __always_inline bool is_in_group(struct task_struct *task, __u64 group, bool group_is_v1)
{
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	struct cgroup *own, *at;
	struct cgroup___before_6_1 *old;
	__u64 id;
	int level;

	if (group_is_v1) {
		__u32 controller = bpf_core_enum_value(enum cgroup_subsys_id, perf_event_cgrp_id);
		struct cgroup_subsys_state *state;

		bpf_core_read(&state, sizeof(state), &set->subsys[controller]);
		own = BPF_CORE_READ(state, cgroup);
	} else {
		own = BPF_CORE_READ(set, dfl_cgrp);
	}
	old = (void *)own;
	level = BPF_CORE_READ(own, level);
	for (int i = 0; i < GROUP_LEVELS && i <= level; i++) {
		if (bpf_core_field_exists(old->ancestor_ids)) {
			if (bpf_core_read(&id, sizeof(id), &old->ancestor_ids[i]))
				break;
		} else {
			if (bpf_core_read(&at, sizeof(at), &own->ancestors[i]))
				break;
			id = BPF_CORE_READ(at, kn, id);
		}
		if (id == group)
			return true;
	}
	return false;
}

#endif
