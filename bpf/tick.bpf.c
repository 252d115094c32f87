// SPDX-License-Identifier: GPL-2.0-only
/*
 * On the scheduler's own tick, which comes anyway, CONFIG_HZ times a second, on every CPU that is
 * not idle: counts as sample.bpf.c does. The tick is a timer of each CPU, and a program that traces
 * timers runs for all of them, whoever runs there: the tick and those who count are told apart
 * here.
 *
 * Tracing update_process_times(), which the tick calls, would do as well, but takes a kernel whose
 * functions can be traced.
 */
#include "count.h"

/* Set by user space before the load. */
const volatile bool everyone = false;
const volatile bool one_thread = false; /* members are threads, else processes */
/* How far the variables of these names lie behind the variable hrtimer_bases, on each CPU. */
const volatile __s64 tick_cpu_sched = 0;
const volatile __s64 irq_regs = 0; /* __irq_regs */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TICK_MEMBERS);
	__type(key, __u32);
	__type(value, __u32); /* enum tick_member */
} members SEC(".maps");

/* The CPU's own variables that lie so far behind the one that all its timers know. */
static void *cpu_variable(struct hrtimer *timer, __s64 distance)
{
	return (void *)timer->base->cpu_base + distance;
}

static bool is_tick(struct hrtimer *timer)
{
	struct tick_sched *tick = cpu_variable(timer, tick_cpu_sched);

	return timer == &tick->sched_timer;
}

/* What the interrupt that is being served has interrupted. */
static struct pt_regs *interrupted(struct hrtimer *timer)
{
	struct pt_regs *regs = NULL;

	bpf_probe_read_kernel(&regs, sizeof(regs), cpu_variable(timer, irq_regs));
	return regs;
}

static struct settings own_settings(void)
{
	return (struct settings){ sides, pid_namespace, 0 };
}

static __u32 number_of(__u64 id)
{
	return one_thread ? sample_id_tid(id) : sample_id_tgid(id);
}

static bool is_member(__u64 id)
{
	__u32 number = number_of(id), *member;

	if (everyone)
		return true;
	member = bpf_map_lookup_elem(&members, &number);
	return member && *member == TICK_COUNTS;
}

/*
 * Whose tick it is and in which mode, as in bpf/sample.h; 0: it is none that is to be counted. The
 * idle task's is not.
 */
static __always_inline __u64 id_of_tick(struct hrtimer *timer, struct task_struct *task)
{
	__u64 id;

	if (task->pid == 0)
		return 0;
	id = id_of(task, false, own_settings());
	if (!is_member(id))
		return 0;
	if ((BPF_CORE_READ(interrupted(timer), cs) & 3) == 0)
		id |= SAMPLE_ID_KERNEL;
	if (sides & (id & SAMPLE_ID_KERNEL ? SAMPLE_KERNEL : SAMPLE_USER))
		return id;
	exclude();
	return 0;
}

SEC("?tp_btf/hrtimer_expire_entry")
int tick(const __u64 *ctx) /* timer, now */
{
	struct hrtimer *timer = (void *)ctx[0];
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 start, id, pc = 0;

	if (!is_tick(timer))
		return 0;
	start = begin_timing();
	id = id_of_tick(timer, task);
	if (!id)
		return 0;
	if (id & SAMPLE_ID_KERNEL)
		pc = entering_pc(task, sides);
	count_pc(pc ?: BPF_CORE_READ(interrupted(timer), ip), id);
	if (start)
		count_time(start);
	return 0;
}

/* --- Call stacks --- */

static __always_inline long get_frames(void *ctx, void *pcs, __u64 flags)
{
	long size = bpf_get_stack(ctx, pcs, STACK_DEPTH_MAX * sizeof(__u64), flags);

	return size > 0 ? size : 0;
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

/* Returns how many bytes all frames take. */
static __always_inline long get_stack(__u64 *ctx, struct stack *stack, bool kernel)
{
	__u64 pc = BPF_CORE_READ(interrupted((void *)ctx[0]), ip);
	long kernel_size = kernel ? get_kernel_frames(ctx, stack, pc) : 0;
	long user_size = get_frames(ctx, (void *)stack->pcs + kernel_size, BPF_F_USER_STACK);

	if (kernel_size && user_size)
		mark_interrupted((void *)stack->pcs + kernel_size);
	if (kernel_size + user_size == 0) { /* nothing could be read: the pc is known still */
		stack->pcs[0] = pc;
		user_size = sizeof(__u64);
	}
	stack->kernel_depth = kernel_size / sizeof(__u64);
	stack->user_depth = user_size / sizeof(__u64);
	return kernel_size + user_size;
}

SEC("?tp_btf/hrtimer_expire_entry")
int tick_stacks(__u64 *ctx)
{
	struct hrtimer *timer = (void *)ctx[0];
	__u32 cpu = bpf_get_smp_processor_id();
	struct stack_sample *sample;
	__u64 start, id;

	if (!is_tick(timer))
		return 0;
	start = begin_timing();
	id = id_of_tick(timer, bpf_get_current_task_btf());
	sample = bpf_map_lookup_elem(&scratch, &cpu);
	if (!id || !sample)
		return 0;
	sample->stack.id = id;
	count_stack(sample, get_stack(ctx, &sample->stack, id & SAMPLE_ID_KERNEL));
	if (start)
		count_time(start);
	return 0;
}

/* --- Members --- */

static __u32 number_of_task(struct task_struct *task)
{
	return number_of(id_of(task, false, own_settings()));
}

/* Before the child runs: none of its ticks is missed. */
SEC("?tp_btf/sched_process_fork")
int follow(const __u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	__u32 number = number_of_task(parent), *member;
	struct sample_counters *counter = cpu_counters();

	member = bpf_map_lookup_elem(&members, &number);
	if (!member || child->tgid == parent->tgid)
		return 0;
	number = number_of_task(child);
	if (bpf_map_update_elem(&members, &number, member, BPF_ANY) && counter)
		__sync_fetch_and_add(&counter->untold, 1);
	return 0;
}

/* COMMAND's own ticks begin where it is itself. */
SEC("?tp_btf/sched_process_exec")
int begin_at_exec(const __u64 *ctx)
{
	__u32 number = number_of_task((void *)ctx[0]), *member;

	member = bpf_map_lookup_elem(&members, &number);
	if (member)
		*member = TICK_COUNTS;
	return 0;
}

/* Whoever gets its number next is a stranger. */
SEC("?tp_btf/sched_process_exit")
int forget(const __u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	__u32 number = number_of_task(task);

	if (one_thread || task->signal->live.counter == 0)
		bpf_map_delete_elem(&members, &number);
	return 0;
}
