/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The map of the members, by their PIDs or TIDs in user space's PID namespace. Objects that do not
 * keep it up to date themselves (members.h) share another one's.
 */
#ifndef PROFIL_BPF_MEMBER_MAP_H
#define PROFIL_BPF_MEMBER_MAP_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "maps.h"
#include "member.h"

/* Set by user space before the load. */
const volatile bool everyone = false;	/* all ticks are counted; there are no members */
const volatile bool one_thread = false; /* members are threads, not processes */
/* The inode of user space's PID namespace; 0: the initial one. */
const volatile __u32 pid_namespace = 0;

MAP(HASH, members, MEMBERS_MAX, __u32, struct member);

/* Returns the PID or TID in user space's PID namespace; 0: the task is not in it. */
static __noinline __u32 search_number(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	unsigned int level = BPF_CORE_READ(pid, level);
	struct upid upid;

	for (unsigned int i = 0; i < 33 && i <= level; i++) { /* MAX_PID_NS_LEVEL is 32 */
		if (bpf_core_read(&upid.nr, sizeof(upid.nr), &pid->numbers[i].nr) ||
		    bpf_core_read(&upid.ns, sizeof(upid.ns), &pid->numbers[i].ns))
			break;
		if (BPF_CORE_READ(upid.ns, ns.inum) == pid_namespace)
			return upid.nr;
	}
	return 0;
}

static __always_inline __u32 tid_of(struct task_struct *task)
{
	return pid_namespace ? search_number(task) : task->pid;
}

static __always_inline __u32 tgid_of(struct task_struct *task)
{
	return pid_namespace ? search_number(BPF_CORE_READ(task, group_leader)) : task->tgid;
}

static __always_inline __u32 number_of(struct task_struct *task)
{
	return one_thread ? tid_of(task) : tgid_of(task);
}

static __always_inline struct member *find_member(__u32 number)
{
	return bpf_map_lookup_elem(&members, &number);
}

#endif
