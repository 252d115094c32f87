// SPDX-License-Identifier: GPL-2.0-only
/*
 * On a tick, of a CPU's perf event or of the scheduler: counts the pc that was running, or the call
 * stack, per thread and mode.
 */
#include "count.h"
#include "group.h"
#include "tick.h"

static __always_inline void count_tick(struct task_struct *task, __u64 pc, bool kernel)
{
	__u64 start = begin_timing(), id = id_of_tick(task, kernel);

	if (!id)
		return;
	count_pc((kernel ? entering_pc(task) : 0) ?: pc, id);
	if (start)
		count_time(start);
}

/* Writes frames to pcs; returns how many bytes. */
static __always_inline long get_frames(void *ctx, void *pcs, __u64 flags)
{
	long size = bpf_get_stack(ctx, pcs, STACK_DEPTH_MAX * sizeof(__u64), flags);

	return size > 0 ? size : 0;
}

/*
 * Adds the user's frames to the kernel's, which take that many bytes at the stack's begin. Returns
 * how many all take.
 */
static __always_inline long complete_stack(void *ctx, struct stack *stack, __u64 pc, bool kernel,
					   long kernel_size)
{
	long user_size = get_frames(ctx, (void *)stack->pcs + kernel_size, BPF_F_USER_STACK);

	if (kernel_size && user_size)
		mark_interrupted((void *)stack->pcs + kernel_size);
	if (kernel_size + user_size == 0) { /* nothing could be read: the pc is known still */
		stack->pcs[0] = pc;
		kernel_size = kernel ? sizeof(__u64) : 0;
		user_size = kernel ? 0 : sizeof(__u64);
	}
	stack->kernel_depth = kernel_size / sizeof(__u64);
	stack->user_depth = user_size / sizeof(__u64);
	return kernel_size + user_size;
}

static __always_inline struct stack_sample *own_scratch(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&scratch, &cpu);
}

/* --- On a perf event --- */

SEC("?perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	count_tick(bpf_get_current_task_btf(), ctx->regs.ip, in_kernel(ctx));
	return 0; /* no perf ring buffer record */
}

SEC("?perf_event")
int sample_stacks(struct bpf_perf_event_data *ctx)
{
	bool kernel = in_kernel(ctx);
	__u64 start = begin_timing(), id = id_of_tick(bpf_get_current_task_btf(), kernel);
	struct stack_sample *sample = own_scratch();
	long size;

	if (!id || !sample)
		return 0;
	sample->stack.id = id;
	size = kernel ? get_frames(ctx, sample->stack.pcs, 0) : 0;
	count_stack(sample, complete_stack(ctx, &sample->stack, ctx->regs.ip, kernel, size));
	if (start)
		count_time(start);
	return 0;
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

/* Which of the frames has this pc. 0: none, for the first is that of the program itself. */
__noinline int find_frame(struct stack *stack, __u64 pc)
{
	if (!stack)
		return 0;
	for (int i = 0; i < STACK_DEPTH_MAX; i++)
		if (stack->pcs[i] == pc)
			return i;
	return 0;
}

/* Without the frames of the tick's own interrupt, which lie above the pc that it interrupted. */
static __always_inline long get_kernel_frames(void *ctx, struct stack *stack, __u64 pc)
{
	long size = get_frames(ctx, stack->pcs, 0);
	int above;

	if (size < (long)(STACK_DEPTH_MAX * sizeof(__u64))) /* what is behind is another stack's */
		stack->pcs[size / sizeof(__u64)] = pc;
	above = find_frame(stack, pc);
	size = above > 0 ? get_frames(ctx, stack->pcs, above & 0xff) : 0;
	if (size)
		return size;
	stack->pcs[0] = pc;
	return sizeof(__u64);
}

SEC("?tp_btf/hrtimer_expire_entry")
int tick_stacks(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct stack_sample *sample = own_scratch();
	struct interrupted at;
	__u64 start, id;
	long size;

	if (!is_tick(ctx, task, &at) || !sample)
		return 0;
	start = begin_timing();
	id = id_of_tick(task, at.kernel);
	if (!id)
		return 0;
	sample->stack.id = id;
	size = at.kernel ? get_kernel_frames(ctx, &sample->stack, at.pc) : 0;
	count_stack(sample, complete_stack(ctx, &sample->stack, at.pc, at.kernel, size));
	if (start)
		count_time(start);
	return 0;
}
