// SPDX-License-Identifier: GPL-2.0-only
/*
 * For test_sample_program.c: counts without ticks, by BPF_PROG_TEST_RUN, in the maps of the program
 * under test.
 */
#include "bpf/sample.bpf.c"

/*
 * The arguments of the programs: `ticks` of them, of so many different pcs from `first` on, at
 * each of which so many threads wait.
 */
struct test_run {
	__u64 first, different, ticks, id, waiting;
};

#define TEST_DEPTH  4
#define TEST_CALLER 0x300000 /* of the pcs of the callers */

static long test_pc(__u32 i, struct test_run *run)
{
	count_pc(run->first + i % run->different, run->id, run->waiting);
	return 0;
}

SEC("?raw_tp")
int test_pcs(const __u64 *arguments)
{
	struct test_run run = { arguments[0], arguments[1], arguments[2], arguments[3],
				arguments[4] };

	if (run.different)
		bpf_loop(run.ticks, test_pc, &run, 0);
	return 0;
}

/* Stacks that differ in the leaf. */
static long test_stack(__u32 i, struct test_run *run)
{
	struct stack_scratch *own = own_scratch();
	struct stack *stack;

	if (!own)
		return 1;
	stack = &own->sample.stack;
	begin_stack(&own->sample, run->id, run->waiting);
	stack->kernel_depth = 0;
	stack->user_depth = TEST_DEPTH;
	stack->end = UNWIND_BY_KERNEL;
	stack->by_frame_pointer = 0;
	stack->pcs[0] = run->first + i % run->different;
	for (int depth = 1; depth < TEST_DEPTH; depth++)
		stack->pcs[depth] = TEST_CALLER + depth;
	count_stack(&own->sample, TEST_DEPTH * sizeof(stack->pcs[0]));
	return 0;
}

SEC("?raw_tp")
int test_stacks(const __u64 *arguments)
{
	struct test_run run = { arguments[0], arguments[1], arguments[2], arguments[3],
				arguments[4] };

	if (run.different)
		bpf_loop(run.ticks, test_stack, &run, 0);
	return 0;
}

/* As test_stack(): counts in run->waiting those that have an entry. */
static long test_wait_stack(__u32 i, struct test_run *run)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct wait_scratch *scratch = bpf_map_lookup_elem(&wait_scratch, &cpu);
	struct stack *stack;

	if (!scratch)
		return 1;
	stack = &scratch->stack.sample.stack;
	stack->id = run->id;
	stack->kernel_depth = 0;
	stack->user_depth = TEST_DEPTH;
	stack->end = stack->by_frame_pointer = 0;
	stack->cpu = WAIT_SLEEP;
	for (int depth = 0; depth < TEST_DEPTH; depth++)
		stack->pcs[depth] = run->first + i % run->different;
	run->waiting += find_wait(stack, user_of(bpf_get_current_task_btf())) >= WAIT_KINDS;
	return 0;
}

/*
 * The current thread leaves its CPU with the state arguments[0].
 * Without the product's programs, none of its own switches is seen. Or, with arguments[1], it waits
 * with stacks as those of test_stacks(): returns how many of these have an entry.
 */
SEC("?raw_tp")
int test_leave(__u64 *arguments)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct test_run run = { arguments[0], arguments[1], arguments[2], arguments[3], 0 };

	if (run.different) {
		bpf_loop(run.ticks, test_wait_stack, &run, 0);
		return run.waiting;
	}
	begin_wait(arguments, task, arguments[0], task->se.cfs_rq->rq->clock, false);
	return 0;
}
