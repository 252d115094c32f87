/* SPDX-License-Identifier: GPL-2.0-only */
/* x86-64: what the stack walk knows of frames and code. Part of walk.h. */
#ifndef PROFIL_BPF_WALK_X86_H
#define PROFIL_BPF_WALK_X86_H

/* Begins a walk with walk->registers. */
static __always_inline void begin_walk(struct walk *walk)
{
	walk->bx = walk->registers[UNWIND_BX_NUMBER];
	walk->bp = walk->registers[UNWIND_BP_NUMBER];
	walk->sp = walk->registers[UNWIND_SP_NUMBER];
}

static __always_inline bool is_frame(const struct walk *walk, __u64 cfa)
{
	return cfa > walk->sp;
}

static __always_inline __u64 cfa_by_sp(const struct walk *walk)
{
	return walk->sp + walk->rule.offset;
}

/* At a signal frame sp points to a struct ucontext; its registers are the gregs of <ucontext.h>. */
static __always_inline int step_over_signal(struct walk *walk)
{
	const __u64 *saved = walk->signal;

	if (walk_read(walk, walk->signal, sizeof(walk->signal), walk->sp + 40))
		return end_walk(walk, UNWIND_UNREADABLE);
	walk->registers[0] = saved[13];
	walk->registers[1] = saved[12];
	walk->registers[2] = saved[14];
	walk->registers[3] = saved[11];
	walk->registers[4] = saved[9];
	walk->registers[5] = saved[8];
	walk->registers[6] = saved[10];
	walk->registers[7] = saved[15];
	for (int i = 0; i < 8; i++)
		walk->registers[8 + i] = saved[i];
	walk->pc = saved[16];
	begin_walk(walk); /* maybe at a lower sp: the signal handler may have a stack of its own */
	walk->interrupted = walk->mark = 1;
	walk->framed = 0;
	return walk->pc ? 0 : end_walk(walk, UNWIND_COMPLETE);
}

/*
 * Go's struct g, of a goroutine, and struct m, of a thread, as in Go 1.19 to 1.27. The thread's
 * g, which is g0 on its own stack, is in the word below the thread pointer.
 */
#define GO_G_STACK_END 0x08
#define GO_G_M	       0x30 /* the thread it runs on */
#define GO_G_SCHED     0x38 /* sp and pc at which it goes on */
#define GO_M_CURG      0xb8 /* the goroutine that runs on the thread; before 1.25 in the next word */

/*
 * Go's cgocallback() has a return address to what the goroutine had stopped at: the first byte of
 * systemstack_switch(), which is never executed; or, since Go 1.20, one within. The next word is
 * that to the caller.
 */
static __always_inline int step_back_to_go(struct walk *walk)
{
	__u64 words[2], cfa = walk->sp + walk->rule.base;

	if (walk_read(walk, words, sizeof(words), cfa - 8))
		return end_walk(walk, UNWIND_UNREADABLE);
	if (find_mapping(walk, words[0] - 1) && find_rule(walk, words[0] - 1) &&
	    walk->rule.cfa != UNWIND_GAP) {
		walk->pc = words[0];
		walk->sp = cfa;
	} else {
		walk->pc = words[1];
		walk->sp = cfa + 8;
	}
	walk->interrupted = walk->mark = walk->framed = 0;
	return walk->pc ? 0 : end_walk(walk, UNWIND_COMPLETE);
}

static __always_inline bool runs_on(const struct walk *walk, __u64 goroutine, __u64 m)
{
	__u64 of;

	return goroutine && !walk_read(walk, &of, sizeof(of), goroutine + GO_G_M) && of == m;
}

/*
 * Steps to the caller of a function that has left the goroutine's stack. Since Go 1.21 that has its
 * caller's bp on the stack, which is an address there or 0, and no return address is either.
 */
static __always_inline int step_from_called(struct walk *walk, __u64 goroutine)
{
	__u64 words[2], end;
	bool has_bp;

	if (walk_read(walk, words, sizeof(words), walk->sp) ||
	    walk_read(walk, &end, sizeof(end), goroutine + GO_G_STACK_END))
		return end_walk(walk, UNWIND_UNREADABLE);
	has_bp = !words[0] || (words[0] > walk->sp && words[0] < end);
	if (has_bp)
		walk->bp = words[0];
	walk->pc = has_bp ? words[1] : words[0];
	walk->sp += has_bp ? 16 : 8;
	return 0;
}

/* Steps from g0 to the goroutine. Returns as step(), or -1: it is on its caller's stack. */
static __always_inline int step_to_goroutine(struct walk *walk)
{
	__u64 g, m, current[2], saved[2], goroutine;

	if (walk_read(walk, &g, sizeof(g), walk_thread_pointer(walk) - 8) ||
	    walk_read(walk, &m, sizeof(m), g + GO_G_M) ||
	    walk_read(walk, current, sizeof(current), m + GO_M_CURG))
		return end_walk(walk, UNWIND_UNREADABLE);
	goroutine = runs_on(walk, current[0], m) ? current[0] : current[1];
	if (!goroutine) /* it was left already */
		return end_walk(walk, UNWIND_COMPLETE);
	if (g == goroutine)
		return -1;
	if (!runs_on(walk, goroutine, m) ||
	    walk_read(walk, saved, sizeof(saved), goroutine + GO_G_SCHED))
		return end_walk(walk, UNWIND_UNREADABLE);
	walk->sp = saved[0];
	walk->pc = saved[1];
	if (walk->rule.add == UNWIND_SWITCH_CALLED && step_from_called(walk, goroutine))
		return 1;
	walk->mark = walk->framed = 0;
	return walk->pc ? 0 : end_walk(walk, UNWIND_COMPLETE);
}

/*
 * Steps from a function that calls the vDSO on g0. bp is its own, but for its first and last
 * instructions, which only a leaf executes. Returns as step(), or -1: it is on its caller's stack.
 */
static __always_inline int step_by_own_bp(struct walk *walk)
{
	__u64 words[2];

	if (walk->interrupted) {
		const struct unwind_rule own = walk->rule;
		bool caller;

		if (own.base == 8)
			return -1;
		caller = !walk_read(walk, words, 8, walk->sp + own.base - 8) &&
			 find_mapping(walk, words[0] - 1) && find_rule(walk, words[0] - 1) &&
			 walk->rule.cfa != UNWIND_GAP;
		walk->rule = own;
		if (caller)
			return -1;
	}
	if (walk_read(walk, words, sizeof(words), walk->bp))
		return end_walk(walk, UNWIND_UNREADABLE);
	walk->sp = walk->bp + 16;
	walk->bp = words[0];
	walk->pc = words[1];
	walk->interrupted = walk->mark = walk->framed = 0;
	return walk->pc ? 0 : end_walk(walk, UNWIND_COMPLETE);
}

/*
 * Steps from a function with a rule UNWIND_SWITCH. Returns as step(), or -1: the caller is to be
 * found as usual.
 */
WALK_FUNCTION int step_over_switch(struct walk *walk)
{
	if (!walk)
		return -1;
	if (walk->rule.add == UNWIND_SWITCH_BP)
		return step_by_own_bp(walk);
	if (walk->rule.add == UNWIND_SWITCH_BACK)
		return step_back_to_go(walk);
	if (walk->interrupted) /* it has not switched yet, but for some instructions */
		return -1;
	if (walk->rule.add == UNWIND_SWITCH_ENDS)
		return end_walk(walk, UNWIND_COMPLETE);
	return step_to_goroutine(walk);
}

/* Sets the registers to the caller's. Most functions save them just below the CFA. */
static __always_inline int read_frame(struct walk *walk, __u64 cfa)
{
	const struct unwind_rule *rule = &walk->rule;
	const __u64 *saved = words_below(walk, cfa);
	__u64 pc, bp = walk->bp;

	if (saved)
		pc = saved[WALK_SAVED_WORDS - 1];
	else if (walk_read(walk, &pc, sizeof(pc), cfa - 8))
		return end_walk(walk, UNWIND_UNREADABLE);
	find_saved(walk, cfa, rule->bp, rule->bp_at, saved, &bp);
	find_saved(walk, cfa, rule->bx, rule->bx_at, saved, &walk->bx);
	walk->pc = pc;
	walk->bp = bp;
	walk->sp = cfa;
	walk->interrupted = walk->mark = walk->framed = 0;
	return pc ? 0 : end_walk(walk, UNWIND_COMPLETE);
}

/* Whether the address follows a call: e8 and an offset, or ff /2. */
static __always_inline bool follows_call(const struct walk *walk, __u64 address)
{
	__u8 code[8];

	if (walk_read(walk, code, sizeof(code), address - sizeof(code)))
		return false;
	if (code[3] == 0xe8)
		return true;
	return (code[6] == 0xff && (code[7] & 0x38) == 0x10) ||
	       (code[5] == 0xff && (code[6] & 0x38) == 0x10) ||
	       (code[4] == 0xff && (code[5] & 0x38) == 0x10) ||
	       (code[2] == 0xff && (code[3] & 0x38) == 0x10) ||
	       (code[1] == 0xff && (code[2] & 0x38) == 0x10);
}

/*
 * For a leaf without call frame information: looks for the return address in the first two words of
 * the stack. The start and exit code that compilers and the C library add to each image (_init,
 * __do_global_dtors_aux) pushes one word at most. Returns 0, or -1: not found.
 */
static __always_inline int step_by_return_address(struct walk *walk)
{
	__u64 words[2];
	bool first, second;

	if (walk->bp == walk->sp || walk_read(walk, words, sizeof(words), walk->sp))
		return -1;
	first = can_be_return(walk, words[0]);
	second = !first && can_be_return(walk, words[1]);
	if (!first && !second)
		return -1;
	walk->pc = first ? words[0] : words[1];
	walk->sp += first ? 8 : 16;
	walk->interrupted = walk->mark = walk->framed = 0;
	return 0;
}

/* mov $15, %rax; syscall: what a signal handler returns to. In musl it has no CFI. */
static __always_inline bool is_signal_return_at(const struct walk *walk, __u64 address)
{
	__u64 code;
	__u8 last;

	return !walk_read(walk, &code, sizeof(code), address) && code == 0x0f0000000fc0c748 &&
	       !walk_read(walk, &last, sizeof(last), address + sizeof(code)) && last == 0x05;
}

/* Whether pc is at one of these two instructions or, in the system call, after them. */
static __always_inline bool is_signal_return(const struct walk *walk)
{
	return is_signal_return_at(walk, walk->pc) ||
	       (walk->interrupted && (is_signal_return_at(walk, walk->pc - 7) ||
				      is_signal_return_at(walk, walk->pc - 9)));
}

#endif
