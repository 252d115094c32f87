/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Walks the user stack at a tick by call frame information: see walk.h. Functions that the verifier
 * should check once, on their own, are global.
 */
#ifndef PROFIL_BPF_UNWIND_H
#define PROFIL_BPF_UNWIND_H

#include "code_maps.h"
#include "count.h"
#include "scripts.h"
#include "unwind_maps.h"
#include "walk.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, UNWIND_PROCESSES);
	__type(key, __u64); /* sample_id_make(exec, tgid, 0) */
	__type(value, struct unwind_process);
} unwind_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, UNWIND_COPY_RING_BYTES);
} unwind_copies SEC(".maps");

/*
 * Set by user space while it reads the rows of new images, which may take seconds. Until then
 * nothing is published, so each tick in an unknown mapping sends a copy.
 */
volatile __u32 is_reading_rows = 0;

/* Scratch memory of each CPU for one stack. */
struct stack_scratch {
	struct stack_sample sample;
	struct walk walk;
	struct unwind_copy copy;
	struct script_walk script;
	__u32 depth; /* of the user stack, so far */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* possible CPUs; set before the load */
	__type(key, __u32);
	__type(value, struct stack_scratch);
} scratch SEC(".maps");

/* --- Processes --- */

/* The key of a sample's process. */
static __always_inline __u64 process_key(__u64 id)
{
	return sample_id_make(sample_id_exec(id), sample_id_tgid(id), 0);
}

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
static __always_inline bool take_ancestor(struct walk *walk, struct task_struct *task)
{
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

/*
 * Prepares the walk of a thread whose registers it has. Returns false if the mappings of its
 * process are not published.
 */
static __always_inline bool begin_user_walk(struct walk *walk, struct task_struct *task, __u64 id)
{
	if (!take_process(walk, process_key(id)) && !take_ancestor(walk, task))
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

/*
 * Writes the functions of a script that were read, after the `depth` user frames that there are,
 * and reads those of the next call of the interpreter. Returns how many frames there are then.
 */
__noinline int write_script_words(struct stack_scratch *scratch, __u32 depth)
{
	struct script_walk *script;
	__u64 index, count;

	if (!scratch)
		return depth;
	script = &scratch->script;
	index = scratch->sample.stack.kernel_depth + depth;
	count = script->count;
	if (depth < STACK_DEPTH_MAX && count > STACK_DEPTH_MAX - depth)
		count = STACK_DEPTH_MAX - depth;
	/* makes the compiler use the registers that it checks */
	asm("" : "+r"(index), "+r"(count));
	if (depth < STACK_DEPTH_MAX && index < 2 * STACK_DEPTH_MAX &&
	    count <= LANGUAGE_FRAMES_MAX &&
	    bpf_probe_read_kernel(&scratch->sample.stack.pcs[index], count * sizeof(__u64),
				  script->words) == 0)
		depth += count;
	script->wrote = true;
	read_script_frames(script);
	return depth;
}

/*
 * The walk has stepped over a frame that was at pc and begins at sp: writes the functions of a
 * script that it runs.
 */
static __always_inline int write_script_frames(struct stack_scratch *scratch, __u32 depth, __u64 pc,
					       __u64 sp)
{
	struct script_walk *script = &scratch->script;
	struct walk *walk = &scratch->walk;

	if (!script->looked) {
		script->process = process_key(scratch->sample.stack.id);
		begin_script(walk, script);
	}
	return runs_script(script, walk, pc, sp) ? write_script_words(scratch, depth) : depth;
}

/*
 * The native stack has ended. A fiber has one of its own, but its functions are called by those
 * that have resumed it: writes these. Or the stack is lost, in code that was made at run time: the
 * script's functions are known all the same; writes the interpreter's function, and these.
 */
__noinline int write_last_script_frames(struct stack_scratch *scratch, __u32 depth)
{
	const struct unwind_mapping *mapping;
	struct script_walk *script;
	struct walk *walk;
	__u64 index;

	if (!scratch)
		return depth;
	walk = &scratch->walk;
	script = &scratch->script;
	if (!script->looked) {
		mapping = walk_mapping(walk, walk->process.first + walk->process.interpreter - 1);
		if (!mapping)
			return depth;
		walk->at = *mapping;
		script->looked = true;
		script->process = process_key(scratch->sample.stack.id);
		begin_script(walk, script);
	}
	if (!script->wrote && script->function_size) {
		index = scratch->sample.stack.kernel_depth + depth;
		asm("" : "+r"(index)); /* makes the compiler use the register that it checks */
		if (index >= 2 * STACK_DEPTH_MAX || depth >= STACK_DEPTH_MAX)
			return depth;
		scratch->sample.stack.pcs[index] = script->function + 1;
		depth++;
	}
	for (int i = 0; i < SCRIPT_STACKS_MAX && script->function_size; i++)
		depth = write_script_words(scratch, depth);
	if (script->coroutine && walk->end == UNWIND_IN_GAP)
		walk->end = UNWIND_COMPLETE;
	return depth;
}

/* Whether the walk, which has ended, may have left out functions of a script. */
static __always_inline bool may_lack_script(const struct stack_scratch *scratch)
{
	const struct walk *walk = &scratch->walk;
	const struct task_struct *task = bpf_get_current_task_btf();

	if (scratch->script.wrote)
		return scratch->script.function_size;
	return walk->process.interpreter && walk->end != UNWIND_COMPLETE && task->pid == task->tgid;
}

/*
 * Writes the native frame that the walk has reached, and the functions of a script that it runs.
 * Returns whether it is the last.
 */
static __always_inline bool write_frame(struct stack_scratch *scratch)
{
	struct walk *walk = &scratch->walk;
	__u64 index, pc = walk->pc, sp = walk->sp;
	__u32 depth = scratch->depth;

	index = scratch->sample.stack.kernel_depth + depth;
	asm("" : "+r"(index)); /* makes the compiler use the register that it checks */
	if (index >= 2 * STACK_DEPTH_MAX || depth >= STACK_DEPTH_MAX) {
		walk->end = UNWIND_TRUNCATED;
		return true;
	}
	scratch->sample.stack.pcs[index] = pc + walk->mark;
	scratch->depth = depth + 1;
	if (step(walk))
		return true;
	if (WALK_HAS_THREAD_POINTER && walk->image.language)
		scratch->depth = write_script_frames(scratch, depth + 1, pc, sp);
	return false;
}

/* For the verifier, all state of walk_frames() is in *scratch. */
__noinline int walk_frame(struct stack_scratch *scratch)
{
	return !scratch || write_frame(scratch);
}

/* Writes the user frames after the kernel frames, from walk->pc on. Returns how many. */
__noinline int walk_frames(struct stack_scratch *scratch)
{
	if (!scratch)
		return 0;
	scratch->script.looked = scratch->script.wrote = false;
	scratch->depth = 0;
	for (int i = 0; i <= STACK_DEPTH_MAX; i++)
		if (walk_frame(scratch))
			break;
	if (scratch->walk.end != UNWIND_TRUNCATED && may_lack_script(scratch))
		return write_last_script_frames(scratch, scratch->depth);
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

/* Sends a copy of the stack for user space to walk. Returns false if it cannot be sent. */
static __always_inline bool send_copy(struct stack_scratch *scratch, const struct pt_regs *regs,
				      bool published, __u32 wait)
{
	struct unwind_copy *copy = &scratch->copy;
	const struct stack *stack = &scratch->sample.stack;
	__u64 size, wakeup = BPF_RB_NO_WAKEUP;
	struct walk *walk = &scratch->walk;

	copy->time_ns = bpf_ktime_get_ns();
	copy->id = stack->id;
	copy->process = process_key(stack->id);
	copy->kernel_depth = stack->kernel_depth;
	copy->cpu = stack->cpu;
	copy->waiting = scratch->sample.waiting;
	copy->wait = wait;
	copy->in_system_call = is_in_system_call(regs);
	copy->no_stack = has_no_stack(bpf_get_current_task_btf());
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
	/*
	 * Wakes user space at most once a millisecond for processes that are not published, as it
	 * may be unable to publish them. A published process asks once after each time it was
	 * published, and always wakes.
	 */
	if (published || copy->time_ns - walk->asked_ns >= 1000000) {
		walk->asked_ns = copy->time_ns;
		wakeup = BPF_RB_FORCE_WAKEUP;
	}
	return bpf_ringbuf_output(&unwind_copies, copy, size, wakeup) == 0;
}

/* Whether the published mappings may be outdated: true once after each time they were published. */
static __always_inline bool may_be_outdated(__u64 id)
{
	__u64 key = process_key(id);
	struct unwind_process *process = bpf_map_lookup_elem(&unwind_processes, &key);

	if (process && process->asked)
		return false;
	if (process)
		process->asked = 1;
	return true;
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
	bool published;
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
	published = begin_user_walk(walk, task, stack->id);
	if (published) {
		depth = walk_frames(scratch);
		stack->end = walk->end;
		stack->by_frame_pointer = walk->by_frame_pointer;
		if (may_lack_stack(walk->end) && has_no_stack(task))
			stack->end = UNWIND_NO_STACK;
		if (stack->end != UNWIND_NO_MAPPING ||
		    (!is_reading_rows && !may_be_outdated(stack->id)))
			return depth;
	}
	return send_copy(scratch, regs, published, 0) ? WALK_SENT : depth;
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
