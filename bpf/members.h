/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Members: the processes or threads whose ticks are counted. Programs at the kernel's forks, execs
 * and exits keep the map up to date, so that a child is counted from its first instruction, and a
 * process that gets the PID of an ended member is not. They also sum up the times of all
 * members, those that have ended included. Each BPF object includes this once, and so defines maps
 * and programs.
 */
#ifndef PROFIL_BPF_MEMBERS_H
#define PROFIL_BPF_MEMBERS_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "member.h"
#include "member_map.h"
#include "order.h"
#include "owner.h"

/* Set by user space before the load. */
const volatile bool inherit = false;	  /* children of members become members */
const volatile bool ends_at_exec = false; /* a member that calls exec is removed */
/* The CPU time of members is added up, and fork and exit records go to user space. */
const volatile bool has_account = false;
const volatile __u32 cpu_words = 0; /* how many of MEMBER_CPU_WORDS the kernel's CPUs need */

/*
 * A bit for each PID of the initial PID namespace; 0: that process has no member. The bit of a
 * process that has ended or called exec may be 1. If members are threads, or user space is in
 * another namespace, all bits are 1.
 * Bound: as MEMBER_NUMBERS.
 */
MAPPED_ARRAY(member_numbers, MEMBER_NUMBERS / 64, __u64);

/* By the address of the task of a thread that has not ended. */
MAP(HASH, member_tasks, MEMBERS_MAX, __u64, struct member_charged);

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, MEMBER_EXITS_MAX);
	__type(value, struct member_exit);
} member_exits SEC(".maps");

RING(member_records, MEMBER_RING_BYTES);

struct member_account account SEC(".data.account");

/*
 * Whether a task may be a member's. If it is not, this reads one cache line, while find_member()
 * reads about ten.
 */
static __always_inline bool may_be_member(const struct task_struct *task)
{
	__u32 number = task->tgid, word = number / 64;
	const __u64 *bits = bpf_map_lookup_elem(&member_numbers, &word);

	return bits && *bits >> (number & 63) & 1;
}

/* Sets or clears the bit of a new process. */
static void note_number(const struct task_struct *task, bool is_member)
{
	__u32 number = task->tgid, word = number / 64;
	__u64 *bits = bpf_map_lookup_elem(&member_numbers, &word), bit = 1ULL << (number & 63);

	if (!bits || one_thread || pid_namespace)
		return;
	if (is_member)
		__sync_fetch_and_or(bits, bit);
	else if (*bits & bit)
		__sync_fetch_and_and(bits, ~bit);
}

/* --- Forks, execs and exits --- */

static __always_inline struct member_record *begin_record(struct task_struct *task)
{
	struct member_record *record = bpf_ringbuf_reserve(&member_records, sizeof(*record), 0);

	if (!record) {
		__sync_fetch_and_add(&account.no_record, 1);
		return NULL;
	}
	record->time_ns = bpf_ktime_get_ns();
	record->pid = tgid_of(task);
	record->tid = tid_of(task);
	record->exited = record->parent = record->parent_tid = record->unused = 0;
	return record;
}

/* Wakes user space when the buffer fills up. */
static __always_inline void send_record(struct member_record *record)
{
	bpf_ringbuf_submit(record, bpf_ringbuf_query(&member_records, BPF_RB_AVAIL_DATA) >
						   MEMBER_RING_BYTES / 16
					   ? BPF_RB_FORCE_WAKEUP
					   : BPF_RB_NO_WAKEUP);
}

static __always_inline void send_fork_record(struct task_struct *parent, struct task_struct *child)
{
	struct member_record *record = has_account ? begin_record(child) : NULL;

	if (!record)
		return;
	record->parent = tgid_of(parent);
	record->parent_tid = tid_of(parent);
	send_record(record);
}

/*
 * Runs before the child does, so that its first tick is counted if it is a member, and is not
 * counted because of an earlier process with its PID.
 */
SEC("?tp_btf/sched_process_fork")
int follow(const __u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	__u32 number = number_of(parent), child_number = number_of(child);
	struct member *member, born;

	member = find_member(number);
	if (child_number == number) { /* a new thread of the process */
		if (member)
			send_fork_record(parent, child);
		return 0;
	}
	if (!member || !inherit) {
		bpf_map_delete_elem(&members, &child_number);
		note_number(child, false);
		return 0;
	}
	born = *member;
	born.exiting = born.exited = born.leader_exited = 0;
	note_number(child, true);
	if (bpf_map_update_elem(&members, &child_number, &born, BPF_ANY))
		__sync_fetch_and_add(&account.no_member, 1);
	send_fork_record(parent, child);
	return 0;
}

static __always_inline void charge(__u64 *sum, __u64 ns)
{
	if (account.state != ACCOUNT_OFF)
		__sync_fetch_and_add(sum, ns);
}

/* How long the task has waited for CPUs, the wait under way included. */
static __always_inline __u64 runnable_ns(const struct task_struct *task, __u64 now)
{
	__u64 delay = task->sched_info.run_delay, queued = task->sched_info.last_queued;

	return queued && now > queued ? delay + now - queued : delay;
}

/* The same, up to when the clock of its CPU was last read; 0: the kernel does not keep it. */
static __always_inline __u64 runnable_so_far(struct task_struct *task)
{
	__u64 now = 0;

	if (!bpf_core_field_exists(task->sched_info.run_delay))
		return 0;
	if (bpf_core_field_exists(task->se.cfs_rq))
		now = BPF_CORE_READ(task, se.cfs_rq, rq, clock);
	return runnable_ns(task, now);
}

/* Charges what has come since the last time. cpu_ns: its CPU time so far. */
static __always_inline void charge_thread(struct task_struct *task, __u64 cpu_ns,
					  struct member_charged *charged)
{
	__u64 ns = runnable_so_far(task), now = bpf_ktime_get_ns(), since;

	charge(&account.cpu_ns, cpu_ns - __sync_lock_test_and_set(&charged->cpu_ns, cpu_ns));
	charge(&account.runnable_ns, ns - __sync_lock_test_and_set(&charged->runnable_ns, ns));
	since = __sync_lock_test_and_set(&charged->until_ns, now);
	charge(&account.wall_ns, now - (since > account.begin_ns ? since : account.begin_ns));
}

/* Adds a thread to those of which the account has times. NULL: there is no room. */
static __always_inline struct member_charged *add_charged(__u64 key,
							  const struct member_charged *first)
{
	if (!bpf_map_update_elem(&member_tasks, &key, first, BPF_NOEXIST))
		__sync_fetch_and_add(&account.threads, 1);
	return bpf_map_lookup_elem(&member_tasks, &key);
}

/*
 * A command is counted from its exec on; a histogram ends at exec, and so does what is recorded on
 * behalf of a user, if the new program has other credentials.
 *
 * A thread that calls exec and is not the leader becomes the leader: it gets the leader's PID and
 * start time, which may be before the account's begin. If the account does not have the thread yet,
 * it has started since. If members are threads, one whose TID has changed is no member any more.
 */
SEC("?tp_btf/sched_process_exec")
int change_at_exec(const __u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	__u32 number = number_of(task);
	bool has_new_tid = task->pid != (int)ctx[1];
	struct member *member = find_member(number);
	struct member_charged begun = { .until_ns = bpf_ktime_get_ns() }, *charged;
	__u64 key = (__u64)task;

	if (has_account && has_new_tid && one_thread) {
		charged = bpf_map_lookup_elem(&member_tasks, &key);
		if (charged) {
			charge_thread(task, task->se.sum_exec_runtime, charged);
			bpf_map_delete_elem(&member_tasks, &key);
		}
	} else if (has_account && has_new_tid && member) {
		if (!add_charged(key, &begun))
			__sync_fetch_and_add(&account.no_task, 1);
	}
	if (!member)
		return 0;
	member->leader_exited = 0; /* the thread that calls exec is the first one now */
	if (ends_at_exec || (has_owner && !is_owners(task)))
		bpf_map_delete_elem(&members, &number);
	else if (member->state == MEMBER_FROM_EXEC)
		member->state = MEMBER_COUNTS;
	return 0;
}

/*
 * Drops one queued exit of a process. Deletes the member when none is queued any more and the
 * kernel has released all its threads; a zombie leader may remain. unreleased: threads that the
 * kernel has not released. All of them have called exit, but one may not have reached note_exit()
 * yet, which then needs the member.
 */
static __always_inline void forget(__u32 number, __u32 unreleased)
{
	struct member *member = find_member(number);

	add_and_order(&account.exiting, -1); /* after what was charged */
	if (member && __sync_fetch_and_add(&member->exiting, -1) == 1 && member->exited &&
	    unreleased <= member->leader_exited)
		bpf_map_delete_elem(&members, &number);
}

/*
 * Charges the last CPU time of up to `count` threads of member_exits that have left their CPU. This
 * must happen before their tasks are freed and used again, two RCU grace periods after their end;
 * else the account lacks that time, less than a period of the scheduler's tick.
 * (sched_process_free would be the event for this, but it is not reliable: under load, Linux 6.18
 * frees one task in a thousand without it, up to a hundred in a row.)
 */
static __always_inline void charge_exits(__u32 count)
{
	struct member_exit exit;
	struct task_struct *task;
	__u32 unreleased;

	for (__u32 i = 0; i < count && account.exiting; i++) {
		if (bpf_map_pop_elem(&member_exits, &exit))
			return;
		task = (void *)exit.task;
		unreleased = 0;
		if (BPF_CORE_READ(task, start_time) == exit.start_ns) {
			/* Once it is dead and off its CPU, sum_exec_runtime is all its CPU time. */
			if (BPF_CORE_READ(task, __state) & TASK_DEAD &&
			    !BPF_CORE_READ_BITFIELD_PROBED(task, on_cpu)) {
				charge(&account.cpu_ns,
				       BPF_CORE_READ(task, se.sum_exec_runtime) - exit.charged_ns);
				if (!one_thread)
					unreleased = BPF_CORE_READ(task, signal, nr_threads);
			} else if (!bpf_map_push_elem(&member_exits, &exit, 0)) {
				continue;
			}
		}
		forget(exit.number, unreleased);
	}
}

/* On each tick of any CPU: at common rates its period is shorter than these grace periods. */
static __always_inline void charge_exits_on_tick(void)
{
	if (has_account && account.exiting)
		charge_exits(4);
}

/*
 * Charges what the scheduler has added up so far. The thread is still counted: to release its
 * memory takes CPU time, too, which is known when it has left its CPU.
 */
SEC("?tp_btf/sched_process_exit")
int note_exit(const __u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct member_exit exit = { .task = (__u64)task, .number = number_of(task) };
	struct member *member = find_member(exit.number);
	struct member_charged begun = { .until_ns = task->start_time }, *charged;
	struct member_record *record;

	charge_exits(2);
	if (!member)
		return 0;
	record = has_account && task->pid == task->tgid ? begin_record(task) : NULL;
	if (record) {
		record->exited = 1;
		send_record(record);
	}
	if (account.state == ACCOUNT_ENDS)
		return 0;
	exit.start_ns = task->start_time;
	exit.charged_ns = task->se.sum_exec_runtime;
	charged = has_account ? bpf_map_lookup_elem(&member_tasks, &exit.task) : NULL;
	if (charged) {
		charge_thread(task, exit.charged_ns, charged);
		bpf_map_delete_elem(&member_tasks, &exit.task);
	} else if (has_account && task->start_time >= account.begin_ns) {
		charge_thread(task, exit.charged_ns, &begun);
		__sync_fetch_and_add(&account.threads, 1);
	}
	__sync_fetch_and_add(&account.exiting, 1);
	__sync_fetch_and_add(&member->exiting, 1);
	if (task->pid == task->tgid)
		member->leader_exited = 1;
	if (one_thread || BPF_CORE_READ(task, signal, live.counter) == 0)
		member->exited = 1;
	if (bpf_map_push_elem(&member_exits, &exit, 0))
		forget(exit.number, 0);
	return 0;
}

/* Whether note_exit() charges the thread. */
static __always_inline bool is_exiting(const struct task_struct *task)
{
	return *(const volatile unsigned int *)&task->flags & PF_EXITING;
}

/* For each task of the machine, in members_look(): charges its times since the last call. */
SEC("?iter/task")
int take_times(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct member_charged begun = { 0 }, *charged;
	__u64 key = (__u64)task, word;
	const __u64 *mask;

	charge_exits(4);
	if (!task || account.state == ACCOUNT_ENDS || is_exiting(task) ||
	    !find_member(number_of(task)))
		return 0;
	mask = BPF_CORE_READ(task, cpus_ptr);
	for (__u32 i = 0; i < MEMBER_CPU_WORDS && i < cpu_words; i++)
		if (!bpf_probe_read_kernel(&word, sizeof(word), &mask[i]))
			account.cpus[i] |= word;
	charged = bpf_map_lookup_elem(&member_tasks, &key);
	if (!charged) {
		begun.until_ns = task->start_time;
		if (begun.until_ns < account.begin_ns) {
			begun.cpu_ns = task->se.sum_exec_runtime;
			begun.runnable_ns = runnable_so_far(task);
		}
		charged = add_charged(key, &begun);
		if (!charged) {
			__sync_fetch_and_add(&account.no_task, 1);
			return 0;
		}
		if (is_exiting(task)) { /* note_exit() may have run before the update */
			bpf_map_delete_elem(&member_tasks, &key);
			return 0;
		}
	}
	charge_thread(task, task->se.sum_exec_runtime, charged);
	return 0;
}

#endif
