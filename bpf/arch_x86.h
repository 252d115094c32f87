/* SPDX-License-Identifier: GPL-2.0-only */
/* x86-64: the registers of an interrupted thread. ABI, and read at fixed offsets. */
#ifndef PROFIL_BPF_ARCH_X86_H
#define PROFIL_BPF_ARCH_X86_H

#include <bpf/bpf_core_read.h>

struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs;
	unsigned long flags;
	unsigned long sp;
	unsigned long ss;
};

typedef struct pt_regs bpf_user_pt_regs_t;

/* The fields that hold the pc and the mode. */
#define PC_REGISTER   ip
#define MODE_REGISTER cs

static inline bool is_kernel_mode(unsigned long cs)
{
	return (cs & 3) == 0;
}

static inline bool is_32_bit_mode(unsigned long cs)
{
	return cs == 0x23; /* __USER32_CS */
}

/* Whether a thread that entered the kernel with these is in a system call. */
static inline bool is_in_system_call(const struct pt_regs *regs)
{
	return (long)regs->orig_ax >= 0;
}

/* The number of the system call; negative: an exception. */
static inline long system_call_number(const struct pt_regs *regs)
{
	return regs->orig_ax;
}

/* Its first three arguments, from 0 on. */
static inline __u64 system_call_argument(const struct pt_regs *regs, int number)
{
	return number == 0 ? regs->di : number == 1 ? regs->si : regs->dx;
}

/*
 * The preempt count of the CPU that the current task runs on. It is a per-CPU variable, at this
 * distance from the CPU's run queue. Its address as a symbol would require CONFIG_KALLSYMS_ALL.
 */
static __always_inline __u32 preempt_count(struct task_struct *task, __s64 distance)
{
	__u32 count = 0;

	bpf_probe_read_kernel(&count, sizeof(count), (void *)task->se.cfs_rq->rq + distance);
	return count;
}

/*
 * Where the code is that went over to the interrupt stack of that CPU: its return address is the
 * second word there. hardirq_stack_ptr, at this distance, leads to the first.
 */
static __always_inline __u64 interrupt_stack_caller(struct task_struct *task, __s64 distance)
{
	__u64 *first = NULL, caller = 0;

	bpf_probe_read_kernel(&first, sizeof(first), (void *)task->se.cfs_rq->rq + distance);
	bpf_probe_read_kernel(&caller, sizeof(caller), first - 1);
	return caller;
}

/* Writes the registers by their numbers in DWARF. */
static __always_inline void copy_registers(__u64 *registers, const struct pt_regs *regs)
{
	registers[0] = regs->ax;
	registers[1] = regs->dx;
	registers[2] = regs->cx;
	registers[3] = regs->bx;
	registers[4] = regs->si;
	registers[5] = regs->di;
	registers[6] = regs->bp;
	registers[7] = regs->sp;
	registers[8] = regs->r8;
	registers[9] = regs->r9;
	registers[10] = regs->r10;
	registers[11] = regs->r11;
	registers[12] = regs->r12;
	registers[13] = regs->r13;
	registers[14] = regs->r14;
	registers[15] = regs->r15;
}

#endif
