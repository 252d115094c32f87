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
#include "group.h"
#include "member_map.h"
#include "wall.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, WALL_RING_BYTES);
} wall_exits SEC(".maps");

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
	sums->on_cpu = task->on_cpu;
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

/* The scheduler changes the values of a thread that runs on another CPU while they are read. */
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

static __always_inline bool is_counted(struct task_struct *task)
{
	return everyone || find_member(number_of(task));
}

SEC("iter/task")
int read_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct wall_thread thread;

	/* A thread that has an exit_state has passed send_exit(). */
	if (!task || task->exit_state || !is_counted(task))
		return 0;
	read_thread(task, &thread);
	if (task->flags & PF_EXITING)
		thread.flags |= WALL_EXITING;
	if (group && !is_in_group(task, group, group_is_v1))
		thread.flags |= WALL_OUTSIDE;
	bpf_seq_write(ctx->meta->seq, &thread, sizeof(thread));
	return 0;
}

SEC("tp_btf/sched_process_exit")
int send_exit(const __u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct wall_thread *thread;

	if (!is_counted(task))
		return 0;
	thread = bpf_ringbuf_reserve(&wall_exits, sizeof(*thread), 0);
	if (!thread) {
		__sync_fetch_and_add(&shared.exits_lost, 1);
		return 0;
	}
	read_thread(task, thread);
	thread->flags |= WALL_EXITED;
	if (group && !is_in_group(task, group, group_is_v1))
		thread->flags |= WALL_OUTSIDE;
	bpf_ringbuf_submit(thread,
			   bpf_ringbuf_query(&wall_exits, BPF_RB_AVAIL_DATA) > WALL_RING_BYTES / 16
				   ? BPF_RB_FORCE_WAKEUP
				   : BPF_RB_NO_WAKEUP);
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
