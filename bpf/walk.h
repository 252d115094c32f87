/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Walks a user stack from frame to caller by call frame information, which compilers write for
 * every function, with or without a frame pointer. Code without it is left by the frame pointer.
 *
 * Included by the BPF program, for the stack at a tick, and by user space, for a copy of one.
 * Whoever includes it defines
 * - WALK_FUNCTION, the storage class of functions that the verifier should check once, on their
 * own;
 * - WALK_READS_CODE, whether walk_read() can read code as well as the stack;
 * - the functions declared below: each returns an element of a table, or NULL if there is none;
 *   walk_read() reads user memory and returns 0 on success.
 * The searches do not branch on data, so that the verifier follows one path per step.
 */
#ifndef PROFIL_BPF_WALK_H
#define PROFIL_BPF_WALK_H

#include "unwind_table.h"

/* Bound: format. */
#define UNWIND_SIGNAL_WORDS (UNWIND_REGISTERS + 1) /* the registers and the pc */
#define WALK_WINDOW_WORDS   32
#define WALK_SAVED_WORDS    8 /* below the CFA: there most functions save registers */

/* The state of a walk: the frame that it has reached. */
struct walk {
	__u64 pc, sp, bp, bx;
	__u64 registers[UNWIND_REGISTERS]; /* by their numbers in DWARF */
	__u64 signal[UNWIND_SIGNAL_WORDS]; /* scratch: those saved in a signal frame */
	/* Words of the stack from `window_at` on, for this frame and its next callers. */
	__u64 window[WALK_WINDOW_WORDS];
	__u64 window_at, window_words;
	struct unwind_process process;
	struct unwind_mapping at;  /* the mapping of the last address */
	struct unwind_image image; /* the last one that was searched, and its number */
	__u32 image_number;
	struct unwind_rule rule;
	/* By the tick, or a signal: pc is no return address, and registers[] are valid. */
	__u8 interrupted;
	__u8 mark; /* added to pc in the result: user space subtracts 1 from all but the leaf */
	__u8 by_frame_pointer; /* some frame was left by frame pointer */
	__u8 framed;	       /* the last frame was left by frame pointer */
	__u8 end;	       /* enum unwind_end */
	__u64 asked_ns;	       /* when this CPU last woke user space for a copy */
};

static const struct unwind_mapping *walk_mapping(const struct walk *walk, __u32 number);
static struct unwind_image *walk_image(const struct walk *walk, __u32 number);
static const struct unwind_page *walk_page(const struct walk *walk, __u32 number);
static const struct unwind_row *walk_row(const struct walk *walk, __u32 number);
static const struct unwind_rule *walk_rule(const struct walk *walk, __u32 number);
static long walk_read(const struct walk *walk, void *to, __u32 size, __u64 from);
/* The bits of a return address that hold its signature (arm64's pointer authentication), or 0. */
static __always_inline __u64 walk_signature(const struct walk *walk);
/* The thread pointer, fs_base (x86-64), at the leaf; 0: unknown. */
static __always_inline __u64 walk_thread_pointer(const struct walk *walk);

/* Reads an object of the process. Returns 0, or a negative errno. */
#define READ_USER(object, address) bpf_probe_read_user(&(object), sizeof(object), (void *)(address))

/* --- Searches --- */

/* Returns ~0 if a <= b, else 0, without a branch. */
static __always_inline __u32 mask_if_not_above(__u64 a, __u64 b)
{
	return ~(__u32)((__s64)(b - a) >> 63);
}

/*
 * Sets walk->at to the mapping that contains the address. Returns 1, or 0 if there is none. Most
 * often it is the previous frame's mapping.
 */
WALK_FUNCTION int find_mapping(struct walk *walk, __u64 address)
{
	const struct unwind_mapping *mapping;
	__u32 first, count;

	if (!walk)
		return 0;
	if (address >= walk->at.start && address < walk->at.limit)
		return 1;
	first = walk->process.first;
	count = walk->process.count;
	for (int i = 0; i < 14 && count > 1; i++) { /* log2(UNWIND_PROCESS_MAPPINGS_MAX) + 1 */
		__u32 half = count / 2, middle = first + half;

		mapping = walk_mapping(walk, middle);
		if (!mapping)
			return 0;
		first += half & mask_if_not_above(mapping->start, address);
		count -= half;
	}
	mapping = count ? walk_mapping(walk, first) : NULL;
	if (!mapping || address < mapping->start || address >= mapping->limit)
		return 0;
	walk->at = *mapping;
	return 1;
}

/* Sets walk->rule to the rule for the address, which is in walk->at. Returns 1, or 0: none. */
WALK_FUNCTION int find_rule(struct walk *walk, __u64 address)
{
	struct unwind_image *image;
	const struct unwind_page *page;
	const struct unwind_row *row;
	const struct unwind_rule *rule;
	__u32 first, count, shift;

	if (!walk)
		return 0;
	walk->rule = (struct unwind_rule){ .cfa = UNWIND_GAP };
	if (walk->image_number != walk->at.image) {
		image = walk_image(walk, walk->at.image);
		if (!image)
			return 0;
		image->used++; /* may miss one of another CPU's */
		walk->image = *image;
		walk->image_number = walk->at.image;
	}
	image = &walk->image;
	shift = image->page_shift & 31;
	address -= walk->at.bias + image->begin;
	if (address >> shift >= image->page_count)
		return 0;
	page = walk_page(walk, image->first_page + (address >> shift));
	if (!page)
		return 0;
	address &= (1U << shift) - 1;
	first = page->first - 1;
	count = page->count + 1;
	for (int i = 0; i < 18 && count > 1; i++) {
		__u32 half = count / 2;

		row = walk_row(walk, first + half);
		if (!row)
			return 0;
		first += half & mask_if_not_above(row->address, address);
		count -= half;
	}
	row = walk_row(walk, first);
	if (!row)
		return 0;
	rule = walk_rule(walk, image->first_rule + row->rule);
	if (!rule)
		return 0;
	walk->rule = *rule;
	return 1;
}

/* --- One frame --- */

static __always_inline int end_walk(struct walk *walk, __u8 end)
{
	walk->end = end;
	return 1;
}

/* Whether a walk that ended so may have had no stack at all: see UNWIND_NO_STACK. */
static __always_inline bool may_lack_stack(__u8 end)
{
	return end == UNWIND_UNREADABLE || end == UNWIND_NO_MAPPING;
}

/*
 * Returns the WALK_SAVED_WORDS words of the stack below the CFA; NULL: they cannot be read. Reading
 * is most of a frame's cost, so it reads some more words, for the next callers.
 */
static __always_inline const __u64 *words_below(struct walk *walk, __u64 cfa)
{
	__u64 at = cfa - WALK_SAVED_WORDS * 8, offset = at - walk->window_at, index = offset / 8;

	if (offset % 8 || index + WALK_SAVED_WORDS > walk->window_words) {
		index = 0;
		walk->window_at = at;
		walk->window_words = WALK_WINDOW_WORDS;
		if (walk_read(walk, walk->window, sizeof(walk->window), at)) {
			walk->window_words = WALK_SAVED_WORDS; /* the stack may end here */
			if (walk_read(walk, walk->window, WALK_SAVED_WORDS * 8, at)) {
				walk->window_words = 0;
				return NULL;
			}
		}
	}
	asm("" : "+r"(index)); /* makes the compiler use the register that it checks */
	if (index > WALK_WINDOW_WORDS - WALK_SAVED_WORDS) /* for the verifier */
		return NULL;
	return &walk->window[index];
}

/*
 * Sets *value to the caller's value of a register, by the rule's `kind` and `at`; saved: from
 * words_below(), or NULL. 0 if it cannot be read: after a function has restored its registers, the
 * rule may still find them below the stack pointer.
 */
static __always_inline void find_saved(struct walk *walk, __u64 cfa, __u8 kind, int at,
				       const __u64 *saved, __u64 *value)
{
	__u64 from = cfa;

	switch (kind) {
	case UNWIND_SAME:
		return;
	case UNWIND_SAVED_AT_CFA:
		if (saved && at >= -WALK_SAVED_WORDS && at < 0) {
			*value = saved[at & (WALK_SAVED_WORDS - 1)];
			return;
		}
		break;
	case UNWIND_SAVED_AT_BP:
		from = walk->bp;
		break;
	case UNWIND_LOST:
		*value = 0;
		return;
	}
	if (walk_read(walk, value, sizeof(*value), from + at * 8))
		*value = 0;
}

/* Without the pointer authentication code that functions sign a return address with. */
static __always_inline __u64 return_address(const struct walk *walk, __u64 word)
{
	return word & ~walk_signature(walk);
}

/* --- What depends on the machine --- */

static __always_inline bool follows_call(const struct walk *walk, __u64 address);

/* Whether this word can be a return address. */
static __always_inline bool can_be_return(struct walk *walk, __u64 word)
{
	return find_mapping(walk, word - 1) && find_rule(walk, word - 1) &&
	       walk->rule.cfa != UNWIND_GAP && follows_call(walk, word);
}

#ifdef UNWIND_ARM64
#include "walk_arm64.h"
#else
#include "walk_x86.h"
#endif

/* --- A step of each kind --- */

/*
 * bp may hold anything: it must look like a frame pointer, and so must the word it points to.
 * Bound: users: bytes of a frame that is found by its frame pointer; then: the stack ends there;
 * again: never; share: each stack's own; seen: as stacks that end in its image.
 */
#define FRAME_BYTES_MAX (1 << 20)

static __always_inline int step_by_frame_pointer(struct walk *walk, __u8 cause)
{
	struct {
		__u64 bp, pc;
	} saved;
	__u64 bp = walk->bp;

	/* Code with frame pointers has 0 in its outermost frame. */
	if (bp == 0 && walk->framed)
		return end_walk(walk, UNWIND_COMPLETE);
	if (bp < walk->sp || bp % 8 || bp - walk->sp > FRAME_BYTES_MAX ||
	    walk_read(walk, &saved, sizeof(saved), bp))
		return end_walk(walk, cause);
	if (saved.pc == 0) /* in code without frame pointers any word may be 0: no proof */
		return end_walk(walk, walk->framed ? UNWIND_COMPLETE : cause);
	saved.pc = return_address(walk, saved.pc);
	if (!find_mapping(walk, saved.pc - 1))
		return end_walk(walk, cause);
	walk->pc = saved.pc;
	walk->bp = saved.bp;
	walk->bx = 0; /* unknown from here on */
	walk->sp = bp + 16;
	walk->interrupted = walk->mark = 0;
	walk->by_frame_pointer = walk->framed = 1;
	return 0;
}

/* Returns the CFA; 0: it cannot be found. */
static __always_inline __u64 find_cfa(struct walk *walk)
{
	const struct unwind_rule *rule = &walk->rule;
	__u64 value;

	switch (rule->cfa) {
	case UNWIND_SP:
		return cfa_by_sp(walk);
	case UNWIND_BP:
		return walk->bp + rule->offset;
	case UNWIND_BX:
		return walk->bx + rule->offset;
	case UNWIND_PLT:
		return walk->sp + 8 + ((walk->pc % 16 >= (__u32)rule->offset) ? 8 : 0);
	case UNWIND_DEREF_SP:
	case UNWIND_DEREF_BP:
		value = rule->cfa == UNWIND_DEREF_SP ? walk->sp : walk->bp;
		if (walk_read(walk, &value, sizeof(value), value + rule->base))
			return 0;
		return value + rule->add;
	case UNWIND_REGISTER:
		if (!walk->interrupted || (__u16)rule->base >= UNWIND_REGISTERS)
			return 0;
		return walk->registers[(__u16)rule->base] + rule->add;
	case UNWIND_SWITCH:
		return walk->sp + rule->base;
	}
	return 0;
}

/*
 * pc is in code without call frame information. It may be the end of the stack: the first function
 * of a program or of a coroutine is entered by a jump, with its own first instruction as the return
 * address. No call precedes that address, only padding, or memory that is not resident. The walk of
 * a copied stack cannot read the code, so it does not decide this.
 */
static __always_inline int step_in_gap(struct walk *walk)
{
	/* pc may be after the system call that ends a signal handler, and so after its function. */
	if (walk->interrupted && find_mapping(walk, walk->pc - 1) &&
	    find_rule(walk, walk->pc - 1) && walk->rule.cfa == UNWIND_SIGNAL)
		return step_over_signal(walk);
	if (is_signal_return(walk))
		return step_over_signal(walk);
	if (walk->interrupted && step_by_return_address(walk) == 0)
		return 0;
	if (WALK_READS_CODE && !walk->interrupted && find_mapping(walk, walk->pc) &&
	    find_rule(walk, walk->pc) && walk->rule.cfa != UNWIND_GAP &&
	    !follows_call(walk, walk->pc))
		return end_walk(walk, UNWIND_COMPLETE);
	return step_by_frame_pointer(walk, UNWIND_IN_GAP);
}

/* The return address is in a register: in vfork(), as the child overwrites the stack. */
static __always_inline int step_by_register(struct walk *walk)
{
	__u32 number = (__u16)walk->rule.base;

	if (!walk->interrupted || number >= UNWIND_REGISTERS)
		return end_walk(walk, UNWIND_ODD_RULE);
	walk->pc = return_address(walk, walk->registers[number]);
	walk->sp += walk->rule.add;
	walk->interrupted = walk->mark = walk->framed = 0;
	return 0;
}

/* Steps to the caller. Returns 0, or 1: there is none, or it is unknown; walk->end says why. */
WALK_FUNCTION int step(struct walk *walk)
{
	__u64 address, cfa;
	int ended;

	if (!walk)
		return 1;
	/* A call that does not return may be the last instruction of its function. */
	address = walk->pc - !walk->interrupted;
	if (!find_mapping(walk, address))
		return step_by_frame_pointer(walk, UNWIND_NO_MAPPING);
	if (walk->at.image == UNWIND_NO_IMAGE)
		return is_signal_return(walk) ? step_over_signal(walk)
					      : step_by_frame_pointer(walk, UNWIND_NO_ROWS);
	find_rule(walk, address);
	switch (walk->rule.cfa) {
	case UNWIND_GAP:
		if (!walk->image.page_count && !is_signal_return(walk)) /* no room for its rows */
			return step_by_frame_pointer(walk, UNWIND_NO_ROWS);
		return step_in_gap(walk);
	case UNWIND_SIGNAL:
		return step_over_signal(walk);
	case UNWIND_END:
		return end_walk(walk, UNWIND_COMPLETE);
	case UNWIND_RETURN:
		return step_by_register(walk);
	case UNWIND_UNSUPPORTED:
		return end_walk(walk, UNWIND_ODD_RULE);
	case UNWIND_SWITCH:
		ended = step_over_switch(walk);
		if (ended >= 0)
			return ended;
		break;
	}
	cfa = find_cfa(walk);
	if (!cfa && walk->framed)
		return step_by_frame_pointer(walk, UNWIND_ODD_RULE);
	if (!cfa)
		return end_walk(walk, UNWIND_ODD_RULE);
	if (!is_frame(walk, cfa))
		return end_walk(walk, UNWIND_BAD_FRAME);
	return read_frame(walk, cfa);
}

#endif
