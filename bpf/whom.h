/* SPDX-License-Identifier: GPL-2.0-only */
/* Whose threads are recorded, where neither everyone's are nor members': see struct whom in
 * capture/cgroup.h. */
#ifndef PROFIL_BPF_WHOM_H
#define PROFIL_BPF_WHOM_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "maps.h"

/* Set by user space before the load; neither: everyone's. */
const volatile bool by_user = false;	   /* those whose effective user is */
const volatile __u32 whom_uid = 0;	   /* this one */
const volatile bool by_group = false;	   /* those in a control group of whom_groups, or below */
const volatile bool groups_are_v1 = false; /* they are in the v1 hierarchy with perf_event */

/*
 * Bound: caller: control groups that are recorded, as many as were asked for; then: none: it is
 * made as large.
 */
MAP(HASH, whom_groups, 1, __u64, __u8); /* by ID; 1: as many as wanted, set before the load */

/*
 * Groups more than this below the root are not found.
 * Bound: machine: levels of control groups below the root; then: threads in deeper ones are not
 * recorded with --cgroup; again: never; share: none; seen: not seen.
 */
#define GROUP_LEVELS 64

/* Before Linux 6.1 it has the IDs of these groups instead. */
struct cgroup___before_6_1 {
	__u64 ancestor_ids[GROUP_LEVELS];
} __attribute__((preserve_access_index));

/* Whether the thread is in a control group, 0: in one of whom_groups, or in one below it. */
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
		if (group ? id == group : bpf_map_lookup_elem(&whom_groups, &id) != NULL)
			return true;
	}
	return false;
}

/*
 * Whether the thread is one that is to be recorded. Its user is the one that /proc and ps(1) show:
 * for a file system, the kernel may act as another one for a while.
 */
static __always_inline bool is_wanted(struct task_struct *task)
{
	if (by_user)
		return BPF_CORE_READ(task, real_cred, euid.val) == whom_uid;
	return !by_group || is_in_group(task, 0, groups_are_v1);
}

#endif
