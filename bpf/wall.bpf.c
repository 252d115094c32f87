// SPDX-License-Identifier: GPL-2.0-only
/*
 * The account of wall time: what the scheduler has added up for each thread, CPU time and time in
 * which it was runnable and waited for a CPU. The rest of its time it was blocked. It needs no
 * program on the scheduler's switches: an iterator reads all threads when user space asks, and each
 * thread's last values are sent at its exit.
 *
 * The kernel brings these sums up to date at switches and ticks, so that the time since then is
 * added here: what a running thread has run, and what a runnable one has waited. Both begin at a
 * time of the scheduler's clock, of which BPF can read the last value of a CPU (rq->clock), but not
 * what it is now. User space measures its distance from CLOCK_MONOTONIC.
 */
#include "member_map.h"
#include "wall.h"
#include "whom.h"

char LICENSE[] SEC("license") = "GPL";

RING(wall_exits, WALL_RING_BYTES);

MAP(HASH, wall_groups, WALL_GROUPS, __u64, struct wall_group); /* ID: the inode's number */

struct wall_shared shared SEC(".data.shared");

/* Values of a thread that change together. */
struct sums {
	__u64 ran, run_since, waited, waits_since;
	int on_cpu;
};

static __always_inline void read_sums(const volatile struct task_struct *task, struct sums *sums)
{
	sums->ran = task->se.sum_exec_runtime;
	sums->run_since = task->se.exec_start;
	sums->waited = task->sched_info.run_delay;
	sums->waits_since = task->sched_info.last_queued;
	sums->on_cpu = BPF_CORE_READ_BITFIELD(task, on_cpu);
}

static __always_inline bool sums_equal(const struct sums *a, const struct sums *b)
{
	return a->ran == b->ran && a->run_since == b->run_since && a->waited == b->waited &&
	       a->waits_since == b->waits_since && a->on_cpu == b->on_cpu;
}

/*
 * The time that interrupts and the host have taken from the thread's CPU: exec_start is by the
 * CPU's clock without it.
 */
static __always_inline __u64 taken_ns(struct task_struct *task)
{
	const struct rq *rq = BPF_CORE_READ(task, se.cfs_rq, rq);

	return BPF_CORE_READ(rq, clock) - BPF_CORE_READ(rq, clock_task);
}

/*
 * The scheduler changes the values of a thread that runs on another CPU while they are read.
 * Bound: machine: attempts to read a thread's times while they change; then: those are taken that
 * were read last; again: at the next look; share: none; seen: not seen.
 */
#define READ_TRIES 4

static __always_inline void read_thread(struct task_struct *task, struct wall_thread *to)
{
	struct task_struct *leader = task->group_leader;
	struct sums sums, again;
	__u64 clock_ns, since, taken = 0;
	bool steady = false;

	read_sums(task, &again);
	for (int i = 0; i < READ_TRIES && !steady; i++) {
		sums = again;
		if (sums.on_cpu)
			taken = taken_ns(task);
		read_sums(task, &again);
		steady = sums_equal(&sums, &again);
	}
	clock_ns = bpf_ktime_get_ns() + shared.clock_offset;
	to->task = (__u64)task;
	to->start_ns = task->start_time;
	to->now_ns = clock_ns;
	to->ran_ns = sums.ran;
	to->waited_ns = sums.waited;
	to->blocks = task->nvcsw;
	to->pid = tgid_of(task);
	to->tid = tid_of(task);
	to->state = WALL_BLOCKED;
	to->flags = 0;
	since = sums.run_since + taken;
	if (sums.waits_since) { /* 0 but while it waits for a CPU */
		to->state = WALL_WAITS;
		if (clock_ns > sums.waits_since)
			to->waited_ns += clock_ns - sums.waits_since;
	} else if (sums.on_cpu) {
		to->state = WALL_RUNS;
		if (clock_ns > since)
			to->ran_ns += clock_ns - since;
	}
	bpf_probe_read_kernel_str(to->comm, sizeof(to->comm), task->comm);
	if (leader == task)
		__builtin_memcpy(to->process_comm, to->comm, sizeof(to->comm));
	else
		bpf_probe_read_kernel_str(to->process_comm, sizeof(to->process_comm), leader->comm);
}

/* Finds a group, or adds it: `now` is what its quota has done so far. NULL: no room. */
static __always_inline struct wall_group *find_group(__u64 id, const struct wall_throttled *now)
{
	static const struct wall_group none;
	struct wall_group *found = bpf_map_lookup_elem(&wall_groups, &id);

	if (found)
		return found;
	bpf_map_update_elem(&wall_groups, &id, &none, BPF_NOEXIST);
	found = bpf_map_lookup_elem(&wall_groups, &id);
	if (found)
		found->first = *now;
	else
		__sync_fetch_and_add(&shared.groups_lost, 1);
	return found;
}

/* In the address of a group, which is even: a quota limits one below it. */
#define HAS_QUOTA_BELOW 1ULL

/*
 * Notes what quotas have done to the control group at this address: the same that its cpu.stat
 * reports, also of one that is removed when its last thread has ended. Groups without a quota are
 * noted where one below has a quota, for their names. enters: a thread has entered it just now.
 * Returns the address of the group above; 0: there is none, or no room. A global function: the
 * verifier goes through it once, not for each level.
 */
__noinline __u64 note_quota(__u64 address, bool enters)
{
	struct task_group *at = (struct task_group *)(address & ~HAS_QUOTA_BELOW), *parent;
	struct wall_throttled now = { 0 };
	struct wall_group *group;
	struct kernfs_node *node;
	__u64 quota;

	if (!bpf_core_field_exists(struct task_group, cfs_bandwidth.throttled_time))
		return 0; /* the kernel has no quotas */
	parent = BPF_CORE_READ(at, parent);
	if (!parent) /* the root has no quota */
		return 0;
	quota = BPF_CORE_READ(at, cfs_bandwidth.quota);
	now.throttled_periods = BPF_CORE_READ(at, cfs_bandwidth.nr_throttled);
	if (!(address & HAS_QUOTA_BELOW) && quota == WALL_NO_QUOTA && !now.throttled_periods)
		return (__u64)parent;
	now.periods = BPF_CORE_READ(at, cfs_bandwidth.nr_periods);
	now.ns = BPF_CORE_READ(at, cfs_bandwidth.throttled_time);
	node = BPF_CORE_READ(at, css.cgroup, kn);
	group = find_group(BPF_CORE_READ(node, id), &now);
	if (!group)
		return 0;
	group->parent =
		BPF_CORE_READ(parent, parent) ? BPF_CORE_READ(parent, css.cgroup, kn, id) : 0;
	group->quota_ns = quota;
	group->every_ns = BPF_CORE_READ(at, cfs_bandwidth.period);
	group->last = now;
	group->look = shared.look;
	if (!enters && !group->name[0])
		bpf_probe_read_kernel_str(group->name, sizeof(group->name),
					  BPF_CORE_READ(node, name));
	return (__u64)parent | HAS_QUOTA_BELOW;
}

/* Notes what quotas have done to a group of a thread and those above it. */
static __always_inline void note_quotas(const struct task_group *own, bool enters)
{
	__u64 at = (__u64)own;

	for (int i = 0; i < WALL_GROUP_LEVELS && at; i++)
		at = note_quota(at, enters);
}

/* The thread's group of the controller cpu; NULL: the kernel has none. */
static __always_inline struct task_group *group_of(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->sched_task_group))
		return NULL;
	return BPF_CORE_READ(task, sched_task_group);
}

static __always_inline bool is_counted(struct task_struct *task)
{
	return everyone || find_member(number_of(task));
}

SEC("iter/task")
int read_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct wall_thread thread;
	struct task_group *own;

	/* A thread that has an exit_state has passed send_exit(). */
	if (!task || task->exit_state || !is_counted(task))
		return 0;
	read_thread(task, &thread);
	if (task->flags & PF_EXITING)
		thread.flags |= WALL_EXITING;
	if (!is_wanted(task))
		thread.flags |= WALL_OUTSIDE;
	own = group_of(task);
	/* Threads of one process follow each other, and are mostly in one group. */
	if (own && (__u64)own != shared.last_group && !(thread.flags & WALL_OUTSIDE)) {
		shared.last_group = (__u64)own;
		note_quotas(own, false);
	}
	bpf_seq_write(ctx->meta->seq, &thread, sizeof(thread));
	return 0;
}

SEC("tp_btf/sched_process_exit")
int send_exit(const __u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct wall_thread *thread;
	struct task_group *own;

	if (!is_counted(task))
		return 0;
	own = group_of(task);
	if (own && is_wanted(task))
		note_quotas(own, false);
	thread = bpf_ringbuf_reserve(&wall_exits, sizeof(*thread), 0);
	if (!thread) {
		__sync_fetch_and_add(&shared.exits_lost, 1);
		return 0;
	}
	read_thread(task, thread);
	thread->flags |= WALL_EXITED;
	if (!is_wanted(task))
		thread->flags |= WALL_OUTSIDE;
	bpf_ringbuf_submit(thread,
			   bpf_ringbuf_query(&wall_exits, BPF_RB_AVAIL_DATA) > WALL_RING_BYTES / 16
				   ? BPF_RB_FORCE_WAKEUP
				   : BPF_RB_NO_WAKEUP);
	return 0;
}

/* A group that is made while threads are followed: what its quota will have done is of that time.
 */
SEC("tp_btf/cgroup_mkdir")
int note_new_group(const __u64 *ctx)
{
	struct cgroup *made = (void *)ctx[0];
	const struct wall_throttled none = { 0 };
	struct wall_group *found = find_group(BPF_CORE_READ(made, kn, id), &none);

	if (found)
		found->look = shared.look;
	return 0;
}

/* What the quota of a group has done before a thread enters it is not of that thread. */
SEC("tp_btf/cgroup_attach_task")
int note_entered_group(const __u64 *ctx)
{
	struct task_struct *task = (void *)ctx[2];
	struct task_group *own;

	if (!is_counted(task))
		return 0;
	own = group_of(task);
	if (own)
		note_quotas(own, true);
	return 0;
}

/* For user space, by BPF_PROG_TEST_RUN. */
SEC("raw_tp")
int read_clock(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();

	(void)ctx;
	shared.cpu = bpf_get_smp_processor_id();
	shared.cpu_clock = BPF_CORE_READ(task, se.cfs_rq, rq, clock);
	return 0;
}
