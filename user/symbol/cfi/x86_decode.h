/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_X86_DECODE_H
#define PROFIL_SYMBOL_X86_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes x86-64 instructions as far as unwinding needs it: their size, where they go, and what
 * they do to the stack (Intel's manual, volume 2: "Instruction Format" and "Opcode Map").
 */

enum x86_flow {
	X86_NEXT,
	X86_CALL,	   /* to `target` */
	X86_CALL_INDIRECT, /* through a register or memory */
	X86_BRANCH,	   /* to `target`, or to the next instruction */
	X86_JUMP,	   /* to `target` */
	X86_JUMP_INDIRECT,
	X86_RETURN,
	X86_STOP, /* it faults, or does not return to here */
};

enum x86_stack {
	X86_SAME,
	X86_PUSH,	/* of `reg`, or of something else if that is X86_NO_REGISTER */
	X86_POP,	/* likewise */
	X86_ADD,	/* sp += value */
	X86_BP_FROM_SP, /* bp = sp + value */
	X86_SP_FROM_BP, /* sp = bp + value */
	X86_LEAVE,	/* sp = bp, and bp is popped */
	X86_CLEAR_BP,	/* bp = 0 */
	X86_SP_LOST,	/* sp becomes anything */
};

#define X86_NO_REGISTER 16

struct x86_instruction {
	uint8_t size;
	uint8_t flow;  /* enum x86_flow */
	uint8_t stack; /* enum x86_stack */
	uint8_t reg;   /* as instructions number registers: rbx is 3, rsp 4, rbp 5 */
	bool has_target;
	bool is_padding; /* a no-op or int3, as between functions */
	int32_t value;
	int64_t target; /* relative to the instruction; of "lea" and of direct calls and jumps */
};

/* Decodes the first of `size` bytes. False: it is invalid, unknown, or does not end there. */
bool x86_decode(const uint8_t *code, size_t size, struct x86_instruction *i);

#endif
