/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * gcc -pg puts a call into each function: of mcount() behind the prologue, or of __fentry__() before it
 * (-mfentry). Unlike C functions, these must preserve all registers but the flags, except on arm64.
 * __mcount_internal() uses general registers only.
 */
#if defined(__CET__)
#include <cet.h>
#elif defined(__aarch64__)
#define _CET_ENDBR hint #34 /* bti c */
#else
#define _CET_ENDBR
#endif

	.text

/* Begins a global function. */
.macro function name
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	_CET_ENDBR
.endm

.macro end name
	ret
	.cfi_endproc
	.size	\name, . - \name
.endm

#if defined(__x86_64__)

#define SAVED (9 * 8)

.macro save register
	pushq	%\register
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \register, 0
.endm

.macro restore register
	popq	%\register
	.cfi_adjust_cfa_offset -8
	.cfi_restore \register
.endm

/* The registers that a C function may change; r10 and r11 for static chains and -mcmodel=large. */
.macro save_all
	save	rax
	save	rcx
	save	rdx
	save	rsi
	save	rdi
	save	r8
	save	r9
	save	r10
	save	r11
.endm

.macro restore_all
	restore	r11
	restore	r10
	restore	r9
	restore	r8
	restore	rdi
	restore	rsi
	restore	rdx
	restore	rcx
	restore	rax
.endm

/* Behind the prologue: the caller's address is in the frame, the callee's is our return address. */
function _mcount
	save_all
	movq	8(%rbp), %rdi
	movq	SAVED(%rsp), %rsi
	call	__mcount_internal
	restore_all
end _mcount

/* Before the prologue: the callee's return address lies above ours. */
function __fentry__
	save_all
	movq	SAVED + 8(%rsp), %rdi
	movq	SAVED(%rsp), %rsi
	call	__mcount_internal
	restore_all
end __fentry__

#elif defined(__i386__)

#define SAVED (3 * 4)

.macro save register
	pushl	%\register
	.cfi_adjust_cfa_offset 4
	.cfi_rel_offset \register, 0
.endm

.macro restore register
	popl	%\register
	.cfi_adjust_cfa_offset -4
	.cfi_restore \register
.endm

.macro save_all
	save	eax
	save	ecx
	save	edx
.endm

.macro restore_all
	restore	edx
	restore	ecx
	restore	eax
.endm

function _mcount
	save_all
	movl	4(%ebp), %eax
	movl	SAVED(%esp), %edx
	call	__mcount_internal
	restore_all
end _mcount

function __fentry__
	save_all
	movl	SAVED + 4(%esp), %eax
	movl	SAVED(%esp), %edx
	call	__mcount_internal
	restore_all
end __fentry__

#elif defined(__aarch64__)

/* A C function: its argument is the caller's address, which may be signed; x30 is the callee's. */
function _mcount
	mov	x1, x30
	mov	x30, x0
	.cfi_register 30, 1
	hint	#7 /* xpaclri */
	mov	x0, x30
	mov	x30, x1
	.cfi_restore 30
	b	__mcount_internal
end _mcount

#else
#error "no mcount() for this machine"
#endif

	.hidden	__mcount_internal
	.weak	mcount
	.set	mcount, _mcount

	.section .note.GNU-stack, "", @progbits
