// SPDX-License-Identifier: GPL-2.0-only
/*
 * On a tick of a perf event: counts the pc that was running, or the call stack, per thread and
 * mode.
 */
#include "count.h"

static bool in_kernel(const struct bpf_perf_event_data *ctx)
{
	return (ctx->regs.cs & 3) == 0;
}

static __always_inline void count_tick(struct bpf_perf_event_data *ctx, struct settings settings)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool kernel = in_kernel(ctx);
	__u64 pc, id;

	if (!(settings.sides & (kernel ? SAMPLE_KERNEL : SAMPLE_USER))) {
		exclude();
		return;
	}
	pc = kernel ? entering_pc(task, settings.sides) ?: ctx->regs.ip : ctx->regs.ip;
	id = id_of(task, kernel, settings);
	count_pc(pc, id);
}

/* Writes frames to pcs; returns how many bytes. */
static __always_inline long get_frames(struct bpf_perf_event_data *ctx, void *pcs, __u64 flags)
{
	long size = bpf_get_stack(ctx, pcs, STACK_DEPTH_MAX * sizeof(__u64), flags);

	return size > 0 ? size : 0;
}

/* Returns how many bytes all frames take. */
static __always_inline long get_stack(struct bpf_perf_event_data *ctx, struct stack *stack,
				      bool kernel)
{
	long kernel_size = kernel ? get_frames(ctx, stack->pcs, 0) : 0;
	long user_size = get_frames(ctx, (void *)stack->pcs + kernel_size, BPF_F_USER_STACK);

	if (kernel_size && user_size)
		mark_interrupted((void *)stack->pcs + kernel_size);
	if (kernel_size + user_size == 0) { /* nothing could be read: the pc is known still */
		stack->pcs[0] = ctx->regs.ip;
		kernel_size = kernel ? sizeof(__u64) : 0;
		user_size = kernel ? 0 : sizeof(__u64);
	}
	stack->kernel_depth = kernel_size / sizeof(__u64);
	stack->user_depth = user_size / sizeof(__u64);
	return kernel_size + user_size;
}

static __always_inline void count_tick_stack(struct bpf_perf_event_data *ctx,
					     struct settings settings)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct stack_sample *sample = bpf_map_lookup_elem(&scratch, &cpu);
	bool kernel = in_kernel(ctx);

	if (!(settings.sides & (kernel ? SAMPLE_KERNEL : SAMPLE_USER))) {
		exclude();
		return;
	}
	if (!sample)
		return;
	sample->stack.id = id_of(bpf_get_current_task_btf(), kernel, settings);
	count_stack(sample, get_stack(ctx, &sample->stack, kernel));
}

static __always_inline int tick(struct bpf_perf_event_data *ctx, struct settings settings)
{
	__u64 start = begin_timing();

	count_tick(ctx, settings);
	if (start)
		count_time(start);
	return 0; /* no perf ring buffer record */
}

/* The usual settings are compiled in: to read them would cost a tick another cache line. */
SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	return tick(ctx, (struct settings){ .sides = SAMPLE_USER | SAMPLE_KERNEL });
}

SEC("?perf_event")
int sample_with_settings(struct bpf_perf_event_data *ctx)
{
	return tick(ctx, (struct settings){ sides, pid_namespace, generation });
}

SEC("?perf_event")
int sample_stacks(struct bpf_perf_event_data *ctx)
{
	__u64 start = begin_timing();

	count_tick_stack(ctx, (struct settings){ sides, pid_namespace, generation });
	if (start)
		count_time(start);
	return 0;
}
