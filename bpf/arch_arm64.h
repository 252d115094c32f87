/* SPDX-License-Identifier: GPL-2.0-only */
/* arm64: the registers of an interrupted thread. ABI, and read at fixed offsets. */
#ifndef PROFIL_BPF_ARCH_ARM64_H
#define PROFIL_BPF_ARCH_ARM64_H

#include <bpf/bpf_core_read.h>

struct user_pt_regs {
	/* Bound: format. */
	__u64 regs[31];
	__u64 sp, pc, pstate;
};

typedef struct user_pt_regs bpf_user_pt_regs_t;

/* Begins as struct user_pt_regs. */
struct pt_regs {
	/* Bound: format. */
	__u64 regs[31];
	__u64 sp, pc, pstate;
	__u64 orig_x0;
	__s32 syscallno;
};

/* The fields that hold the pc and the mode. */
#define PC_REGISTER   pc
#define MODE_REGISTER pstate

static inline bool is_kernel_mode(__u64 pstate)
{
	return pstate & 0xf; /* PSR_MODE_MASK: the exception level */
}

static inline bool is_32_bit_mode(__u64 pstate)
{
	return pstate & 0x10; /* PSR_MODE32_BIT */
}

/* Whether a thread that entered the kernel with these is in a system call. */
static inline bool is_in_system_call(const struct pt_regs *regs)
{
	return regs->syscallno >= 0;
}

/* The number of the system call; negative: an exception. */
static inline long system_call_number(const struct pt_regs *regs)
{
	return regs->syscallno;
}

/* Its first three arguments, from 0 on. */
static inline __u64 system_call_argument(const struct pt_regs *regs, int number)
{
	return number == 0 ? regs->orig_x0 : regs->regs[number];
}

/* The preempt count of the CPU that the current task runs on. */
static __always_inline __u32 preempt_count(struct task_struct *task, __s64 distance)
{
	(void)distance;
	return BPF_CORE_READ(task, thread_info.preempt.count);
}

static __always_inline __u64 interrupt_stack_caller(struct task_struct *task, __s64 distance)
{
	(void)task;
	(void)distance;
	return 0;
}

/* Writes the registers by their numbers in DWARF, which is their order: x0 to x30, sp. */
static __always_inline void copy_registers(__u64 *registers, const struct pt_regs *regs)
{
	bpf_probe_read_kernel(registers, 32 * sizeof(*registers), regs);
}

#endif
