/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Walks the user stack at a tick by call frame information: see walk.h. Functions that the verifier
 * should check once, on their own, are global.
 */
#ifndef PROFIL_BPF_UNWIND_H
#define PROFIL_BPF_UNWIND_H

#include "context_read.h"
#include "script/code_maps.h"
#include "count.h"
#include "unwind_maps.h"
#include "walk.h"
#include "walk_budget.h"

/* By sample_id_make(exec, tgid, 0). */
MAP(HASH, unwind_processes, UNWIND_PROCESSES, __u64, struct unwind_process);

GROWING_RING(unwind_copies)

/*
 * Set by user space while it reads the rows of new images, which may take seconds. Until then
 * nothing is published, so each tick in an unknown mapping sends a copy.
 */
volatile __u32 is_reading_rows = 0;

/* Set by user space before the load: stacks keep the frames of interpreters. */
const volatile bool native_frames = false;

/* Set by user space before the load: the time between two ticks of a CPU; 0: no walk is limited. */
const volatile __u64 walk_tick_ns = 0;

/*
 * The CPU time owed by processes whose walks take long: see walk_budget.h.
 * Bound: users: processes whose walks took long, with their debts; then: the debt of the one that
 * ticked least recently is forgotten; again: at its next tick; share: none: many processes make
 * those of others forgotten; seen: stack end walk_too_long.
 */
MAP(LRU_HASH, long_walks, 1024, __u64, __u64); /* sample_id_process() */

/* Whether there is one: until then no tick looks there. */
volatile bool has_long_walks = false;

/* Scratch memory of each CPU for one stack. */
struct stack_scratch {
	struct stack_sample sample;
	struct walk walk;
	struct unwind_copy copy;
	struct script_walk script;
	struct context_scratch context;
	__u32 depth; /* of the user stack, so far */
	__u32 taken; /* see SAMPLE_PLACES */
};

static __always_inline long copy_words(void *to, const __u64 *from, __u64 count)
{
	return bpf_probe_read_kernel(to, count * sizeof(*from), from);
}

/* After what it asks for. */
#include "stack_walk.h"

/* Bound: size. */
MAP(ARRAY, scratch, POSSIBLE_CPUS, __u32, struct stack_scratch);

/* --- Processes --- */

/* Sets walk->process. Returns false if nothing is published for the key. */
static __always_inline bool take_process(struct walk *walk, __u64 key)
{
	const struct unwind_process *process = bpf_map_lookup_elem(&unwind_processes, &key);

	if (process)
		walk->process = *process;
	return process;
}

/*
 * A process that has not called exec since its fork has its parent's mappings: these are used until
 * user space has read the fork record, and published the child.
 */
static __always_inline bool take_ancestor(struct walk *walk)
{
	struct task_struct *task = bpf_get_current_task_btf();

	for (int i = 0; i < 3; i++) {
		__u64 exec = BPF_CORE_READ(task, self_exec_id);
		__u32 tgid;

		if (BPF_CORE_READ(task, parent_exec_id) != exec)
			return false;
		task = BPF_CORE_READ(task, real_parent);
		if (BPF_CORE_READ(task, self_exec_id) != exec)
			return false;
		/* tgid_of() is of the current task alone. */
		tgid = pid_namespace ? search_number(BPF_CORE_READ(task, group_leader))
				     : (__u32)BPF_CORE_READ(task, tgid);
		if (take_process(walk, sample_id_make(exec, tgid, 0)))
			return true;
	}
	return false;
}

/* Sets walk->process to what is published for the current thread. Returns false if nothing is. */
__noinline int take_own_process(struct walk *walk, __u64 id)
{
	return walk && (take_process(walk, sample_id_process(id)) || take_ancestor(walk));
}

/*
 * Prepares the walk of the current thread, whose registers it has. Returns false if the mappings of
 * its process are not published.
 */
static __always_inline bool begin_user_walk(struct walk *walk, __u64 id)
{
	if (!take_own_process(walk, id))
		return false;
	walk->at = (struct unwind_mapping){ 0 };
	walk->image_number = ~0U; /* its rows may have been moved since the last stack */
	walk->window_words = 0;
	walk->interrupted = 1;
	walk->mark = walk->by_frame_pointer = walk->framed = 0;
	return true;
}

SEC("?iter/task")
int list_exec_numbers(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct unwind_exec_number number;

	if (!task || task->pid != task->tgid)
		return 0;
	number.tgid = tgid_of(task);
	number.exec = task->self_exec_id & ((1 << SAMPLE_EXEC_BITS) - 1);
	bpf_seq_write(ctx->meta->seq, &number, sizeof(number));
	return 0;
}

/* --- A stack --- */

/* Writes the registers that the user's code had. */
static __always_inline void take_registers(struct walk *walk, const struct pt_regs *regs)
{
	copy_registers(walk->registers, regs);
	walk->pc = regs->PC_REGISTER;
	begin_walk(walk);
}

/* For the verifier, all state of walk_frames() is in *scratch. */
__noinline int walk_frame(struct stack_scratch *scratch)
{
	return !scratch || put_next_frame(scratch);
}

/* Writes the user frames after the kernel frames, from walk->pc on. Returns how many. */
__noinline int walk_frames(struct stack_scratch *scratch)
{
	if (!scratch)
		return 0;
	begin_stack_walk(scratch, native_frames);
	for (int i = 0; i < STACK_STEPS_MAX; i++)
		if (walk_frame(scratch))
			break;
	put_last_frames(scratch);
	return scratch->depth;
}

/* Whether the task's address space is already another program's (exec) or gone (exit). */
static __always_inline bool has_no_stack(struct task_struct *task)
{
	return task->flags & PF_EXITING || BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
}

/* Copies the stack from copy->begin on, and sets copy->size. Returns the number of steps. */
__noinline int copy_stack(struct unwind_copy *copy)
{
	int i;

	if (!copy)
		return 0;
	for (i = 0; i < UNWIND_COPY_BYTES / UNWIND_COPY_STEP; i++)
		if (bpf_probe_read_user(&copy->bytes[i * UNWIND_COPY_STEP], UNWIND_COPY_STEP,
					(void *)copy->begin + i * UNWIND_COPY_STEP))
			break;
	copy->size = i * UNWIND_COPY_STEP;
	return i;
}

/*
 * Sends a copy of the current thread's stack for user space to walk. Returns false if it cannot be
 * sent.
 */
__noinline int send_copy(struct stack_scratch *scratch, __u32 wait)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 size, wakeup = BPF_RB_NO_WAKEUP;
	struct unwind_copy *copy;
	const struct stack *stack;
	struct walk *walk;

	if (!scratch)
		return false;
	copy = &scratch->copy;
	stack = &scratch->sample.stack;
	walk = &scratch->walk;
	copy->time_ns = bpf_ktime_get_ns();
	copy->id = stack->id;
	copy->process = sample_id_process(stack->id);
	copy->kernel_depth = stack->kernel_depth;
	copy->cpu = stack->cpu;
	copy->context = stack->context;
	copy->waiting = scratch->sample.waiting;
	copy->wait = wait;
	copy->in_system_call = is_in_system_call(regs);
	copy->no_stack = has_no_stack(task);
	take_registers(walk, regs); /* again: a walk over a signal frame has changed them */
	__builtin_memcpy(copy->registers, walk->registers, sizeof(walk->registers));
	copy->registers[UNWIND_REGISTERS] = walk->pc;
	copy->begin = regs->sp & ~(UNWIND_COPY_STEP - 1ULL);
	bpf_probe_read_kernel(copy->kernel_pcs, sizeof(copy->kernel_pcs), stack->pcs);
	size = copy_stack(copy);
	size = (size & 0xff) * UNWIND_COPY_STEP;
	if (size > UNWIND_COPY_BYTES)
		return false;
	size += offsetof(struct unwind_copy, bytes);
	/* At most once a millisecond: user space may be unable to publish the process. */
	if (copy->time_ns - walk->asked_ns >= 1000000) {
		walk->asked_ns = copy->time_ns;
		wakeup = BPF_RB_FORCE_WAKEUP;
	}
	return send_to_unwind_copies(copy, size, wakeup);
}

/* Whether the published mappings may be outdated: until user space has looked, and knows no others.
 */
static __always_inline bool may_be_outdated(__u64 id)
{
	__u64 key = sample_id_process(id);
	struct unwind_process *process = bpf_map_lookup_elem(&unwind_processes, &key);

	if (process && process->asked == UNWIND_ANSWERED)
		return false;
	if (process)
		process->asked = UNWIND_ASKED;
	return true;
}

/* Whether the walks of the process have taken too long, so that this tick only pays for them. */
static __always_inline bool is_over_walk_budget(__u64 process)
{
	__u64 *debt_ns;

	if (!has_long_walks)
		return false;
	debt_ns = bpf_map_lookup_elem(&long_walks, &process);
	if (!debt_ns || !walk_is_over_budget(*debt_ns))
		return false;
	*debt_ns = walk_charge(*debt_ns, 0, walk_tick_ns);
	return true;
}

/* Charges the process for a walk that began at now_ns. */
static __always_inline void charge_walk(__u64 process, __u64 now_ns)
{
	__u64 walk_ns = bpf_ktime_get_ns() - now_ns, *debt_ns, first_ns;
	bool is_long = walk_tick_ns && walk_ns * WALK_BUDGET_PART > walk_tick_ns;

	if (!is_long && !has_long_walks)
		return;
	debt_ns = bpf_map_lookup_elem(&long_walks, &process);
	if (debt_ns) {
		*debt_ns = walk_charge(*debt_ns, walk_ns, walk_tick_ns);
	} else if (is_long) {
		first_ns = walk_charge(0, walk_ns, walk_tick_ns);
		bpf_map_update_elem(&long_walks, &process, &first_ns, BPF_ANY);
		has_long_walks = true;
	}
}

/* Returned instead of a number of frames. */
#define WALK_BY_KERNEL (-1) /* the kernel is to walk by frame pointers */
#define WALK_SENT      (-2) /* user space walks a copy */

/* Writes the user frames after the kernel frames, and why the walk ended. Returns how many. */
static __always_inline int walk_user_stack(struct stack_scratch *scratch, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct stack *stack = &scratch->sample.stack;
	struct walk *walk = &scratch->walk;
	__u64 process = sample_id_process(stack->id), now_ns;
	int depth;

	if (task->flags & PF_KTHREAD || regs->PC_REGISTER == 0)
		return 0;
	if (is_32_bit_mode(regs->MODE_REGISTER)) {
		stack->end = UNWIND_32_BIT;
		return WALK_BY_KERNEL;
	}
	take_registers(walk, regs);
	stack->end = UNWIND_NO_PROCESS;
	depth = WALK_BY_KERNEL;
	if (begin_user_walk(walk, stack->id)) {
		if (is_over_walk_budget(process)) {
			scratch->depth = 0;
			stack->end = UNWIND_TOO_LONG;
			return put_frame(scratch, walk->pc);
		}
		now_ns = bpf_ktime_get_ns();
		if (walk->process.contexts[0])
			stack->context = read_context(walk, &scratch->context, process);
		depth = walk_frames(scratch);
		charge_walk(process, now_ns);
		stack->end = walk->end;
		stack->by_frame_pointer = walk->by_frame_pointer;
		if (may_lack_stack(walk->end) && has_no_stack(task))
			stack->end = UNWIND_NO_STACK;
		if (stack->end != UNWIND_NO_MAPPING ||
		    (!is_reading_rows && !may_be_outdated(stack->id)))
			return depth;
	}
	return send_copy(scratch, 0) ? WALK_SENT : depth;
}

/* Every tick is counted in the `ticks` of a bucket: one that was sent as a copy, in the first. */
static __always_inline void count_copy(void)
{
	__u32 bank = current_bank(), key = bucket_number(0, bank);
	struct stack_bucket *bucket = bpf_map_lookup_elem(&stacks, &key);

	if (bucket)
		__sync_fetch_and_add(&bucket->ticks, 1);
	count_sent(true, bank);
}

#endif
