/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * arm64: what the stack walk knows of frames and code. Part of walk.h.
 *
 * A call leaves the return address in x30, and the stack pointer as it is. A function that calls
 * others saves x29 and x30 side by side, usually in the lowest words of its frame, and sets x29 to
 * their address; there may be anything above and below.
 */
#ifndef PROFIL_BPF_WALK_ARM64_H
#define PROFIL_BPF_WALK_ARM64_H

/* Begins a walk with walk->registers. */
static __always_inline void begin_walk(struct walk *walk)
{
	walk->bp = walk->registers[UNWIND_BP_NUMBER];
	walk->sp = walk->registers[UNWIND_SP_NUMBER];
}

/* A leaf may have no frame. */
static __always_inline bool is_frame(const struct walk *walk, __u64 cfa)
{
	return cfa > walk->sp || (cfa == walk->sp && walk->interrupted);
}

/* After a step by frame pointer sp is unknown, but x29 points to where the rule saved it. */
static __always_inline __u64 cfa_by_sp(const struct walk *walk)
{
	const struct unwind_rule *rule = &walk->rule;

	if (!walk->framed)
		return walk->sp + rule->offset;
	return rule->bp == UNWIND_SAVED_AT_CFA ? walk->bp - rule->bp_at * 8 : 0;
}

/* At a signal frame sp points to a struct rt_sigframe. */
#define SIGNAL_REGISTERS 312 /* uc.uc_mcontext.regs in it; sp and pc follow */

static __always_inline int step_over_signal(struct walk *walk)
{
	__u64 at = walk->sp + SIGNAL_REGISTERS;

	if (walk_read(walk, walk->registers, sizeof(walk->registers), at) ||
	    walk_read(walk, &walk->pc, sizeof(walk->pc), at + sizeof(walk->registers)))
		return end_walk(walk, UNWIND_UNREADABLE);
	begin_walk(walk);
	walk->interrupted = walk->mark = 1;
	walk->framed = 0;
	return walk->pc ? 0 : end_walk(walk, UNWIND_COMPLETE);
}

/* No image of arm64 has rules of this kind. */
static __always_inline int step_over_switch(struct walk *walk)
{
	return end_walk(walk, UNWIND_ODD_RULE);
}

/* Sets the registers to the caller's. */
static __always_inline int read_frame(struct walk *walk, __u64 cfa)
{
	const struct unwind_rule *rule = &walk->rule;
	__u64 base = cfa + rule->bp_at * 8, bp = walk->bp, pc, pair[2];

	if (rule->bp == UNWIND_SAVED_AT_CFA && rule->bx == UNWIND_SAVED_AT_CFA &&
	    rule->bx_at == 1) {
		if (walk_read(walk, pair, sizeof(pair), base))
			return end_walk(walk, UNWIND_UNREADABLE);
		bp = pair[0];
		pc = pair[1];
	} else {
		if (rule->bx == UNWIND_SAME && walk->interrupted)
			pc = walk->registers[UNWIND_LR_NUMBER];
		else if (rule->bx != UNWIND_SAVED_AT_CFA)
			return end_walk(walk, UNWIND_ODD_RULE);
		else if (walk_read(walk, &pc, sizeof(pc), base + rule->bx_at * 8))
			return end_walk(walk, UNWIND_UNREADABLE);
		find_saved(walk, cfa, rule->bp, rule->bp_at, NULL, &bp);
	}
	walk->pc = return_address(walk, pc);
	walk->bp = bp;
	walk->sp = cfa;
	walk->interrupted = walk->mark = walk->framed = 0;
	return walk->pc ? 0 : end_walk(walk, UNWIND_COMPLETE);
}

/* Whether the address follows a call: bl, or blr and its variants that authenticate. */
static __always_inline bool follows_call(const struct walk *walk, __u64 address)
{
	__u32 code;

	if (walk_read(walk, &code, sizeof(code), address - sizeof(code)))
		return false;
	return (code & 0xfc000000) == 0x94000000 || (code & 0xfefff000) == 0xd63f0000;
}

/*
 * For a leaf without call frame information, such as a PLT stub: x30 holds the return address, as
 * long as it is outside of such code.
 */
static __always_inline int step_by_return_address(struct walk *walk)
{
	__u64 pc = return_address(walk, walk->registers[UNWIND_LR_NUMBER]);

	if (!can_be_return(walk, pc))
		return -1;
	walk->pc = pc;
	walk->interrupted = walk->mark = walk->framed = 0;
	return 0;
}

/* mov x8, #139; svc #0: what a signal handler returns to. In the vDSO it has no CFI. */
static __always_inline bool is_signal_return_at(const struct walk *walk, __u64 address)
{
	__u64 code;

	return !walk_read(walk, &code, sizeof(code), address) && code == 0xd4000001d2801168;
}

/* Whether pc is at one of these two instructions or, in the system call, after them. */
static __always_inline bool is_signal_return(const struct walk *walk)
{
	return is_signal_return_at(walk, walk->pc) ||
	       (walk->interrupted && (is_signal_return_at(walk, walk->pc - 4) ||
				      is_signal_return_at(walk, walk->pc - 8)));
}

#endif
