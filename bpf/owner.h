/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The owner: the user on whose behalf processes are recorded. A tick or a wait counts only while
 * its process is one that this user may read: the same rule as for ptrace(2), PTRACE_MODE_READ, of
 * a caller without capabilities. So nothing is recorded of a program that a member executes with
 * other credentials (set-user-ID, set-group-ID, file capabilities, not readable), nor of a process
 * that has made itself undumpable.
 *
 * The offsets are found by user space when there is an owner: each type that libbpf has to find in
 * the kernel's BTF would add to the load of all programs.
 */
#ifndef PROFIL_BPF_OWNER_H
#define PROFIL_BPF_OWNER_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "member.h"

/* Set by user space before the load. */
const volatile bool has_owner = false;
const volatile struct member_owner owner = { 0 };

/* Of the flags of struct mm_struct; in struct task_exec_state it is the whole value. */
#define DUMPABLE_MASK 3
#define DUMPABLE_USER 1

/* Ids in struct cred, in their order; user space checks that they are next to each other. */
struct owner_ids {
	__u32 uid, gid, suid, sgid, euid, egid;
};

static __always_inline bool read_kernel(void *to, __u32 size, __u64 base, __u32 offset)
{
	return base && bpf_probe_read_kernel(to, size, (void *)(base + offset)) == 0;
}

/* Whether the task's process is the owner's now. What cannot be read is not. */
static __noinline bool is_owners(struct task_struct *task)
{
	__u64 cred = 0, program = 0, space = 0, permitted = ~0ULL;
	struct owner_ids ids = { 0 };
	__u32 level = 0, dumpable = 0;

	if (!read_kernel(&cred, sizeof(cred), (__u64)task, owner.task_cred) ||
	    !read_kernel(&ids, sizeof(ids), cred, owner.cred_ids) ||
	    !read_kernel(&permitted, sizeof(permitted), cred, owner.cred_permitted) ||
	    !read_kernel(&space, sizeof(space), cred, owner.cred_user_ns) ||
	    !read_kernel(&level, sizeof(level), space, owner.user_ns_level) ||
	    !read_kernel(&program, sizeof(program), (__u64)task, owner.task_program))
		return false;
	if (ids.uid != owner.uid || ids.euid != owner.uid || ids.suid != owner.uid ||
	    ids.gid != owner.gid || ids.egid != owner.gid || ids.sgid != owner.gid)
		return false;
	/* In a user namespace of its own a process has capabilities there alone. */
	if (permitted && !level)
		return false;
	if (!program) /* it exits: its credentials are what they were */
		return true;
	return read_kernel(&dumpable, sizeof(dumpable), program, owner.program_dumpable) &&
	       (dumpable & DUMPABLE_MASK) == DUMPABLE_USER;
}

/* Namespaces of users more than this below the initial one are not made. Bound: format. */
#define USER_LEVELS 33

/*
 * Who answers for the task: its user, or who has made the user namespace that it is in, below which
 * a user has thousands of numbers.
 */
static __always_inline __u32 user_of(struct task_struct *task)
{
	const struct cred *cred = BPF_CORE_READ(task, real_cred);
	const struct user_namespace *space = BPF_CORE_READ(cred, user_ns);
	__u32 uid = BPF_CORE_READ(cred, uid.val);

	for (int i = 0; i < USER_LEVELS && BPF_CORE_READ(space, level); i++) {
		uid = BPF_CORE_READ(space, owner.val);
		space = BPF_CORE_READ(space, parent);
	}
	return uid;
}

#endif
