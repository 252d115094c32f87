// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs at each tick of a CPU's perf event, or of the scheduler: counts the interrupted pc or call
 * stack, by thread and mode.
 */
#include "count.h"
#include "tick.h"
#include "unwind.h"
#include "whom.h"

/* Set by user space before the load, in tests: the perf event also writes a record of each tick. */
const volatile bool keeps_records = false;

static __always_inline void count_tick(struct task_struct *task, __u64 pc, bool kernel)
{
	__u64 start = begin_timing(), id = id_of_tick(task, kernel);

	if (!id)
		return;
	if (notes_cpu) /* too high a number becomes 0: unknown */
		id |= ((__u64)bpf_get_smp_processor_id() + 1) << SAMPLE_CPU_SHIFT & SAMPLE_CPU_MASK;
	pc = (kernel ? entering_pc(task) : 0) ?: pc;
	/* During exec the user pc is already the new program's, which has not run yet. */
	if (cells.scale && kernel && BPF_CORE_READ_BITFIELD(task, in_execve))
		return;
	if (!cells.scale || find_cell(&pc, &id))
		count_pc(pc, id, threads_waiting(task));
	if (start)
		count_time(start);
}

/* Walks the stack with bpf_get_stack() into pcs. Returns its size in bytes; 0 on failure. */
static __always_inline long get_frames(void *ctx, void *pcs, __u64 flags)
{
	long size = bpf_get_stack(ctx, pcs, STACK_DEPTH_MAX * sizeof(__u64), flags);

	return size > 0 ? size : 0;
}

/* For the verifier: at least the size of all frames of a stack. Bound: size. */
#define STACK_BYTES_MASK 0x7ff
_Static_assert(2 * STACK_DEPTH_MAX * sizeof(__u64) <= STACK_BYTES_MASK, "a stack does not fit");

/*
 * Appends the user frames to the kernel_size bytes of kernel frames in the stack, and counts it.
 * `cfi`: walks by call frame information, where possible; else the kernel walks by frame pointers.
 */
static __always_inline void complete_stack(void *ctx, struct stack_scratch *scratch, bool cfi,
					   __u64 pc, bool kernel, long kernel_size)
{
	struct stack *stack = &scratch->sample.stack;
	long user_size;
	int depth = WALK_BY_KERNEL;

	stack->kernel_depth = kernel_size / sizeof(__u64);
	stack->end = UNWIND_BY_KERNEL;
	stack->by_frame_pointer = 0;
	if (cfi)
		depth = walk_user_stack(scratch, bpf_get_current_task_btf());
	if (depth == WALK_SENT) {
		count_copy();
		return;
	}
	if (depth == WALK_BY_KERNEL)
		user_size = get_frames(ctx, (void *)stack->pcs + kernel_size, BPF_F_USER_STACK);
	else
		user_size = depth * sizeof(__u64);
	if (kernel_size && user_size)
		mark_interrupted((void *)stack->pcs + kernel_size);
	if (kernel_size + user_size == 0) { /* no frame could be read, but the pc is known */
		stack->pcs[0] = pc;
		kernel_size = kernel ? sizeof(__u64) : 0;
		user_size = kernel ? 0 : sizeof(__u64);
	}
	stack->kernel_depth = kernel_size / sizeof(__u64);
	stack->user_depth = user_size / sizeof(__u64);
	count_stack(&scratch->sample, (kernel_size + user_size) & STACK_BYTES_MASK);
}

static __always_inline struct stack_scratch *own_scratch(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&scratch, &cpu);
}

static __always_inline void begin_stack(struct stack_sample *sample, __u64 id, __u32 waiting)
{
	sample->waiting = waiting;
	sample->times = bpf_get_smp_processor_id();
	sample->stack.id = id;
	sample->stack.context = 0;
	if (notes_cpu)
		sample->stack.cpu = bpf_get_smp_processor_id();
}

/* --- On a perf event --- */

SEC("?perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	count_tick(bpf_get_current_task_btf(), ctx->regs.PC_REGISTER, in_kernel(ctx));
	return keeps_records; /* 0: no record in the perf event's ring buffer */
}

static __always_inline void sample_stack(struct bpf_perf_event_data *ctx, bool cfi)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool kernel = in_kernel(ctx);
	__u64 start = begin_timing(), id = id_of_tick(task, kernel);
	struct stack_scratch *own = own_scratch();
	long size;

	if (!id || !own)
		return;
	begin_stack(&own->sample, id, threads_waiting(task));
	size = kernel ? get_frames(ctx, own->sample.stack.pcs, 0) : 0;
	complete_stack(ctx, own, cfi, ctx->regs.PC_REGISTER, kernel, size);
	if (start)
		count_time(start);
}

SEC("?perf_event")
int sample_stacks(struct bpf_perf_event_data *ctx)
{
	sample_stack(ctx, false);
	return keeps_records;
}

SEC("?perf_event")
int sample_stacks_cfi(struct bpf_perf_event_data *ctx)
{
	sample_stack(ctx, true);
	return keeps_records;
}

/* --- On the scheduler's own tick --- */

SEC("?tp_btf/hrtimer_expire_entry")
int tick(const __u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct interrupted at;

	if (is_tick(ctx, task, &at))
		count_tick(task, at.pc, at.kernel);
	return 0;
}

/* Returns the index of the frame with this pc; 0: none, since frame 0 is the BPF program's own. */
__noinline int find_frame(struct stack *stack, __u64 pc)
{
	if (!stack)
		return 0;
	for (int i = 0; i < STACK_DEPTH_MAX; i++)
		if (stack->pcs[i] == pc)
			return i;
	return 0;
}

/* Writes the kernel frames from `pc` on, without those of the tick's interrupt before it. */
static __always_inline long get_kernel_frames(void *ctx, struct stack *stack, __u64 pc)
{
	long size = get_frames(ctx, stack->pcs, 0);
	int skip;

	if (size < (long)(STACK_DEPTH_MAX *
			  sizeof(__u64))) /* end the search: the rest is of an older stack */
		stack->pcs[size / sizeof(__u64)] = pc;
	skip = find_frame(stack, pc);
	size = skip > 0 ? get_frames(ctx, stack->pcs, skip & 0xff) : 0;
	if (size)
		return size;
	stack->pcs[0] = pc;
	return sizeof(__u64);
}

static __always_inline void tick_stack(__u64 *ctx, bool cfi)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct stack_scratch *own = own_scratch();
	struct interrupted at;
	__u64 start, id;
	long size;

	if (!is_tick(ctx, task, &at) || !own)
		return;
	start = begin_timing();
	id = id_of_tick(task, at.kernel);
	if (!id)
		return;
	begin_stack(&own->sample, id, threads_waiting(task));
	size = at.kernel ? get_kernel_frames(ctx, &own->sample.stack, at.pc) : 0;
	complete_stack(ctx, own, cfi, at.pc, at.kernel, size);
	if (start)
		count_time(start);
}

SEC("?tp_btf/hrtimer_expire_entry")
int tick_stacks(__u64 *ctx)
{
	tick_stack(ctx, false);
	return 0;
}

SEC("?tp_btf/hrtimer_expire_entry")
int tick_stacks_cfi(__u64 *ctx)
{
	tick_stack(ctx, true);
	return 0;
}

/* --- At a tracepoint, or a function --- */

const volatile __u32 cpu_count = 0;

/* Returns scratch memory that no other program on this CPU has; NULL: there is none. */
static __always_inline struct stack_scratch *take_scratch(__u32 *number)
{
	for (__u32 i = 0; i < SAMPLE_PLACES; i++) {
		__u32 key = bpf_get_smp_processor_id() + i * cpu_count;
		struct stack_scratch *own = bpf_map_lookup_elem(&scratch, &key);

		*number = key;
		if (own && __sync_lock_test_and_set(&own->taken, 1) == 0)
			return own;
	}
	return NULL;
}

static __always_inline void event_stack(void *ctx, bool cfi, bool kernel, __u64 pc)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 start = begin_timing(), id = is_wanted(task) ? id_of_tick(task, kernel) : 0;
	struct sample_counters *counters;
	struct stack_scratch *own;
	__u32 number;
	long size;

	if (!id)
		return;
	own = take_scratch(&number);
	if (!own) {
		counters = cpu_counters(current_bank());
		if (counters)
			__sync_fetch_and_add(&counters->nested, 1);
		return;
	}
	begin_stack(&own->sample, id, 0);
	own->sample.times = number;
	size = kernel ? get_frames(ctx, own->sample.stack.pcs, 0) : 0;
	complete_stack(ctx, own, cfi, pc, kernel, size);
	*(volatile __u32 *)&own->taken = 0;
	if (start && kernel) /* else it may have been preempted */
		count_time(start);
}

SEC("?tp")
int tracepoint_stacks(void *ctx)
{
	event_stack(ctx, false, true, 0);
	return 0;
}

SEC("?tp")
int tracepoint_stacks_cfi(void *ctx)
{
	event_stack(ctx, true, true, 0);
	return 0;
}

SEC("?kprobe")
int function_stacks(bpf_user_pt_regs_t *ctx)
{
	event_stack(ctx, false, false, ctx->PC_REGISTER);
	return 0;
}

SEC("?kprobe")
int function_stacks_cfi(bpf_user_pt_regs_t *ctx)
{
	event_stack(ctx, true, false, ctx->PC_REGISTER);
	return 0;
}

/* Run once, by BPF_PROG_TEST_RUN: whether this kernel lets ticks know how many threads wait. */
SEC("?raw_tp")
int knows_waiting(void *ctx)
{
	(void)ctx;
	return has_run_queue();
}

#include "waits.h" /* uses get_frames() */
#include "calls.h"

/*
 * --- A user, or control groups ---
 *
 * To record these alone, one of these programs runs at the tick. It hands the ticks of their
 * threads to the program that counts. They are separate programs because finding the kernel types
 * that they read makes the load longer.
 */

/* What they call: the next program, and the one that counts. Bound: size. */
MAP(PROG_ARRAY, counting, 2, __u32, __u32);

SEC("?perf_event")
int wanted_event(struct bpf_perf_event_data *ctx)
{
	if (is_wanted(bpf_get_current_task_btf()))
		bpf_tail_call(ctx, &counting, 0);
	return 0;
}

SEC("?tp_btf/hrtimer_expire_entry")
int wanted_tick(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct interrupted at;

	if (is_tick(ctx, task, &at) && is_wanted(task))
		bpf_tail_call(ctx, &counting, 0);
	return 0;
}

/*
 * --- Victims ---
 *
 * Where only the waits of some threads count, one of these programs runs before the one that
 * counts. It goes through the threads in the run queue of its CPU. That needs no lock: this CPU
 * changes the list with interrupts disabled, and so that a reader finds each step complete. Another
 * CPU may remove the thread at which the reader is, and it reads on in that CPU's list, or at that
 * thread alone, up to VICTIMS_MAX. Their memory stays: a thread is freed by RCU. At 64,000 ticks of
 * two busy CPUs, what it found was wrong by one at 10 of them.
 */

/* Set by user space before the load. */
const volatile __u32 victim_pid = 0;
const volatile char victim_comm[SAMPLE_COMM_SIZE] = "";
const volatile __u64 victim_group = 0;
const volatile bool victim_group_is_v1 = false;

/*
 * Most threads of a run queue that are looked at.
 * Bound: users: threads of a run queue in which a tick looks for victims; then: those behind are
 * not found: the wait is not counted as theirs; again: at the next tick; share: none; seen: not
 * seen.
 */
#define VICTIMS_MAX 256

struct victim_search {
	__u64 head, at, self; /* addresses */
	__u64 found;
};

static __always_inline bool is_victim(struct task_struct *task)
{
	char comm[SAMPLE_COMM_SIZE] = "";

	if (victims == SAMPLE_VICTIM_PID)
		return BPF_CORE_READ(task, tgid) == (int)victim_pid;
	if (victims == SAMPLE_VICTIM_GROUP)
		return is_in_group(task, victim_group, victim_group_is_v1);
	bpf_core_read(comm, sizeof(comm), &task->comm);
	for (int i = 0; i < SAMPLE_COMM_SIZE; i++) {
		if (comm[i] != victim_comm[i])
			return false;
		if (!comm[i])
			break;
	}
	return true;
}

static long look_at_thread(__u32 i, struct victim_search *search)
{
	struct list_head *at = (void *)search->at;
	struct task_struct *task =
		(void *)search->at - bpf_core_field_offset(struct task_struct, se.group_node);

	(void)i;
	if (search->at == search->head)
		return 1;
	search->at = (__u64)BPF_CORE_READ(at, next);
	if ((__u64)task == search->self)
		return 0;
	if (bpf_core_field_exists(task->se.sched_delayed) && BPF_CORE_READ(task, se.sched_delayed))
		return 0;
	search->found += is_victim(task);
	return 0;
}

static __always_inline void count_victims(struct task_struct *task)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct sample_times *own = bpf_map_lookup_elem(&times, &cpu);
	struct rq *rq = BPF_CORE_READ(task, se.cfs_rq, rq);
	struct victim_search search = {
		.head = (__u64)rq + bpf_core_field_offset(struct rq, cfs_tasks),
		.at = (__u64)BPF_CORE_READ(rq, cfs_tasks.next),
		.self = (__u64)task,
	};

	bpf_loop(VICTIMS_MAX, look_at_thread, &search, 0);
	if (own)
		own->victims = search.found;
}

SEC("?perf_event")
int victims_event(struct bpf_perf_event_data *ctx)
{
	count_victims(bpf_get_current_task_btf());
	bpf_tail_call(ctx, &counting, 1);
	return 0;
}

SEC("?tp_btf/hrtimer_expire_entry")
int victims_tick(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct interrupted at;

	if (is_tick(ctx, task, &at)) {
		count_victims(task);
		bpf_tail_call(ctx, &counting, 1);
	}
	return 0;
}

/* --- Waits --- */

SEC("?tp_btf/sched_switch")
int switch_stacks(__u64 *ctx)
{
	note_switch(ctx, false);
	return 0;
}

SEC("?tp_btf/sched_switch")
int switch_stacks_cfi(__u64 *ctx)
{
	note_switch(ctx, true);
	return 0;
}

SEC("?tp_btf/sched_waking")
int waking_stacks(__u64 *ctx)
{
	note_waking(ctx, false);
	return 0;
}

SEC("?tp_btf/sched_waking")
int waking_stacks_cfi(__u64 *ctx)
{
	note_waking(ctx, true);
	return 0;
}
