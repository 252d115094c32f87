/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The registers that a stack walk knows, by their numbers in DWARF. Included by BPF programs and
 * user space, so it includes nothing.
 */
#ifndef PROFIL_BPF_REGISTERS_H
#define PROFIL_BPF_REGISTERS_H

#if defined(__TARGET_ARCH_x86) || (defined(__x86_64__) && !defined(__bpf__))
#define UNWIND_X86

#define UNWIND_BX_NUMBER 3 /* rbx */
#define UNWIND_BP_NUMBER 6 /* rbp: the frame pointer */
#define UNWIND_SP_NUMBER 7 /* rsp */
/* Bound: format. */
#define UNWIND_REGISTERS 16 /* rax, ... r15 */

#elif defined(__TARGET_ARCH_arm64) || (defined(__aarch64__) && !defined(__bpf__))
#define UNWIND_ARM64

#define UNWIND_BP_NUMBER 29 /* x29: the frame pointer */
#define UNWIND_LR_NUMBER 30 /* x30: the return address, until a function has saved it */
#define UNWIND_SP_NUMBER 31
/* Bound: format. */
#define UNWIND_REGISTERS 32 /* x0, ... x30, sp */

#else
#error "no registers of this machine: see bpf/arch.h"
#endif

#endif
