// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stacks that are given as registers and words, replayed through the walk: the code is the BPF
 * program's, so each of its steps is certain. Needs no kernel. x86-64.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/sample.h"
#include "bpf/walk_budget.h"
#include "capture/unwind/unwind_copy.h"

/* The functions of an image, 256 bytes each, and how their callers are found. */
enum function {
	START,	  /* the outermost frame */
	BY_SP,	  /* 24 bytes on the stack */
	BY_BP,	  /* pushes rbp, and has it as the frame pointer */
	SAVES_BX, /* pushes rbx */
	LEAF,	  /* nothing on the stack */
	WITHOUT,  /* no call frame information */
	PLT,	  /* an entry pushes its number at byte 11 */
	ALIGNED,  /* the CFA is stored on the stack */
	BY_R10,	  /* the CFA is in r10 */
	VFORK,	  /* the return address is in rdi */
	ODD,	  /* an unsupported rule */
	RESTORER, /* returns from a signal handler */
	BELOW,	  /* a CFA below the stack pointer */
	FUNCTIONS,
};

static const struct unwind_rule rules[FUNCTIONS] = {
	[START] = { .cfa = UNWIND_END },
	[BY_SP] = { .cfa = UNWIND_SP, .offset = 32 },
	[BY_BP] = { .cfa = UNWIND_BP, .offset = 16, .bp = UNWIND_SAVED_AT_CFA, .bp_at = -2 },
	[SAVES_BX] = { .cfa = UNWIND_SP, .offset = 16, .bx = UNWIND_SAVED_AT_CFA, .bx_at = -2 },
	[LEAF] = { .cfa = UNWIND_SP, .offset = 8 },
	[WITHOUT] = { .cfa = UNWIND_GAP },
	[PLT] = { .cfa = UNWIND_PLT, .offset = 11 },
	[ALIGNED] = { .cfa = UNWIND_DEREF_SP, .base = 8, .add = -8 },
	[BY_R10] = { .cfa = UNWIND_REGISTER, .base = 10, .add = 8 },
	[VFORK] = { .cfa = UNWIND_RETURN, .base = 5, .add = 8 },
	[ODD] = { .cfa = UNWIND_UNSUPPORTED },
	[RESTORER] = { .cfa = UNWIND_SIGNAL },
	[BELOW] = { .cfa = UNWIND_BX, .offset = 0 },
};

#define IMAGE_AT   0x555500000000 /* where it is mapped */
#define FIRST	   0x1000	  /* the ELF virtual address of its first function */
#define STACK_AT   0x7ffd00001000
#define IN(f, at)  (IMAGE_AT + FIRST + 0x100 * (f) + (at))
#define WORD(i)	   (STACK_AT + 8 * (uint64_t)(i))
#define PCS_MAX	   8
#define NO_MAPPING 0x1234

/* Registers by their numbers in DWARF; sp is WORD(0), and of words there are as many as given. */
struct replayed {
	const char *name;
	uint64_t pc, bp, bx, r10, rdi;
	uint64_t words[40];
	uint32_t count;
	/* Expected: as the kernel has them, return addresses but for the leaf. */
	uint64_t pcs[PCS_MAX];
	uint8_t end, by_frame_pointer;
};

#define SP_FRAME(caller) 0, 0, 0, (caller)

static const struct replayed stacks[] = {
	{ .name = "functions with and without a frame pointer",
	  .pc = IN(LEAF, 4),
	  .bp = WORD(6),
	  .words = { IN(BY_SP, 9), SP_FRAME(IN(BY_BP, 20)), 7, WORD(20), IN(SAVES_BX, 5), 5,
		     IN(START, 8) },
	  .count = 10,
	  .pcs = { IN(LEAF, 4), IN(BY_SP, 9), IN(BY_BP, 20), IN(SAVES_BX, 5), IN(START, 8) },
	  .end = UNWIND_COMPLETE },
	{ .name = "a call that is the last instruction of its function",
	  .pc = IN(LEAF, 0),
	  .words = { IN(BY_SP, 256), SP_FRAME(IN(START, 8)) },
	  .count = 5,
	  .pcs = { IN(LEAF, 0), IN(BY_SP, 256), IN(START, 8) },
	  .end = UNWIND_COMPLETE },
	{ .name = "a return address of 0 ends the stack",
	  .pc = IN(LEAF, 0),
	  .words = { IN(BY_SP, 9), SP_FRAME(0) },
	  .count = 5,
	  .pcs = { IN(LEAF, 0), IN(BY_SP, 9) },
	  .end = UNWIND_COMPLETE },
	{ .name = "an entry of the PLT before its push",
	  .pc = IN(PLT, 0x26),
	  .words = { IN(BY_SP, 9), SP_FRAME(IN(START, 8)) },
	  .count = 5,
	  .pcs = { IN(PLT, 0x26), IN(BY_SP, 9), IN(START, 8) },
	  .end = UNWIND_COMPLETE },
	{ .name = "an entry of the PLT after its push",
	  .pc = IN(PLT, 0x2b),
	  .words = { 3, IN(BY_SP, 9), SP_FRAME(IN(START, 8)) },
	  .count = 6,
	  .pcs = { IN(PLT, 0x2b), IN(BY_SP, 9), IN(START, 8) },
	  .end = UNWIND_COMPLETE },
	{ .name = "a function that aligns its stack",
	  .pc = IN(ALIGNED, 9),
	  .words = { 0, WORD(6), 0, 0, IN(START, 8) },
	  .count = 5,
	  .pcs = { IN(ALIGNED, 9), IN(START, 8) },
	  .end = UNWIND_COMPLETE },
	{ .name = "a leaf whose CFA is in a register",
	  .pc = IN(BY_R10, 9),
	  .r10 = WORD(2),
	  .words = { 0, 0, IN(START, 8) },
	  .count = 3,
	  .pcs = { IN(BY_R10, 9), IN(START, 8) },
	  .end = UNWIND_COMPLETE },
	{ .name = "a caller whose CFA is in a register that is not known any more",
	  .pc = IN(LEAF, 0),
	  .r10 = WORD(2),
	  .words = { IN(BY_R10, 9), 0, IN(START, 8) },
	  .count = 3,
	  .pcs = { IN(LEAF, 0), IN(BY_R10, 9) },
	  .end = UNWIND_ODD_RULE },
	{ .name = "vfork() has the return address in a register",
	  .pc = IN(VFORK, 2),
	  .rdi = IN(BY_SP, 9),
	  .words = { 0, SP_FRAME(IN(START, 8)) },
	  .count = 5,
	  .pcs = { IN(VFORK, 2), IN(BY_SP, 9), IN(START, 8) },
	  .end = UNWIND_COMPLETE },
	{ .name = "an unsupported rule",
	  .pc = IN(LEAF, 0),
	  .words = { IN(ODD, 9) },
	  .count = 1,
	  .pcs = { IN(LEAF, 0), IN(ODD, 9) },
	  .end = UNWIND_ODD_RULE },
	{ .name = "a CFA below the stack pointer",
	  .pc = IN(BELOW, 9),
	  .bx = WORD(-4),
	  .pcs = { IN(BELOW, 9) },
	  .end = UNWIND_BAD_FRAME },
	{ .name = "rbx is the caller's after the function that saved it",
	  .pc = IN(SAVES_BX, 9),
	  .bx = 1,
	  .words = { WORD(5), IN(BELOW, 9), 0, 0, IN(START, 8) },
	  .count = 5,
	  .pcs = { IN(SAVES_BX, 9), IN(BELOW, 9), IN(START, 8) },
	  .end = UNWIND_COMPLETE },
	{ .name = "code without call frame information is left by the frame pointer",
	  .pc = IN(WITHOUT, 9),
	  .bp = WORD(2),
	  .words = { 1, 2, WORD(9), IN(BY_SP, 9), SP_FRAME(IN(START, 8)) },
	  .count = 8,
	  .pcs = { IN(WITHOUT, 9), IN(BY_SP, 9), IN(START, 8) },
	  .end = UNWIND_COMPLETE,
	  .by_frame_pointer = 1 },
	{ .name = "code without call frame information and without a frame pointer",
	  .pc = IN(LEAF, 0),
	  .bp = 77,
	  .words = { IN(WITHOUT, 9), 0, 0 },
	  .count = 3,
	  .pcs = { IN(LEAF, 0), IN(WITHOUT, 9) },
	  .end = UNWIND_IN_GAP },
	{ .name = "zeros at the frame pointer do not prove an outermost frame",
	  .pc = IN(WITHOUT, 9),
	  .bp = WORD(1),
	  .words = { 1, 0, 0 },
	  .count = 3,
	  .pcs = { IN(WITHOUT, 9) },
	  .end = UNWIND_IN_GAP },
	{ .name = "zeros at the frame pointer do after another frame with one",
	  .pc = IN(WITHOUT, 9),
	  .bp = WORD(1),
	  .words = { 1, WORD(3), IN(WITHOUT, 30), 0, 0 },
	  .count = 5,
	  .pcs = { IN(WITHOUT, 9), IN(WITHOUT, 30) },
	  .end = UNWIND_COMPLETE,
	  .by_frame_pointer = 1 },
	{ .name = "a pc in no mapping",
	  .pc = NO_MAPPING,
	  .words = { 1, 2 },
	  .count = 2,
	  .pcs = { NO_MAPPING },
	  .end = UNWIND_NO_MAPPING },
	{ .name = "a stack that is not copied to its end",
	  .pc = IN(LEAF, 0),
	  .words = { IN(BY_SP, 9), 0, 0 },
	  .count = 3,
	  .pcs = { IN(LEAF, 0), IN(BY_SP, 9) },
	  .end = UNWIND_UNREADABLE },
	/* gregs from byte 40 of the ucontext: rbp is the 10th, rsp the 15th, rip the 16th */
	{ .name = "a signal handler, and what it has interrupted at its first instruction",
	  .pc = IN(LEAF, 0),
	  .words = { IN(RESTORER, 1), [1 + 5 + 10] = WORD(40), [1 + 5 + 15] = WORD(30),
		     [1 + 5 + 16] = IN(BY_SP, 0), [33] = IN(START, 8) },
	  .count = 34,
	  .pcs = { IN(LEAF, 0), IN(RESTORER, 1), IN(BY_SP, 0) + 1, IN(START, 8) },
	  .end = UNWIND_COMPLETE },
};

static struct unwind_tables tables;
static struct unwind_mapping mapping = { .start = IMAGE_AT,
					 .limit = IMAGE_AT + 0x10000,
					 .bias = IMAGE_AT };
static const struct unwind_space space = { .mappings = &mapping, .count = 1 };

static int make_image(void **state)
{
	const struct unwind_sizes room = {
		.images = 4, .pages = 64, .rows = UNWIND_CHUNK_ROWS, .rules = 64
	};
	struct unwind_address addresses[FUNCTIONS + 1];
	struct unwind_rule copies[FUNCTIONS];
	const struct unwind_rows rows = {
		.rows = addresses, .count = FUNCTIONS + 1, .rules = copies, .rule_count = FUNCTIONS
	};

	(void)state;
	memcpy(copies, rules, sizeof(copies));
	for (uint16_t i = 0; i < FUNCTIONS; i++)
		addresses[i] = (struct unwind_address){ FIRST + 0x100 * i, i };
	addresses[FUNCTIONS] = (struct unwind_address){ FIRST + 0x100 * FUNCTIONS, WITHOUT };
	tables = (struct unwind_tables){ .room = room, .users_room = room, .used.images = 1 };
	tables.images = calloc(room.images, sizeof(*tables.images));
	tables.languages = calloc(room.images, sizeof(*tables.languages));
	tables.pages = calloc(room.pages, sizeof(*tables.pages));
	tables.chunks = calloc(1, sizeof(*tables.chunks));
	tables.rules = calloc(room.rules, sizeof(*tables.rules));
	if (!tables.images || !tables.languages || !tables.pages || !tables.chunks || !tables.rules)
		return -1;
	return unwind_tables_add(&tables, &rows, 0, &mapping.image);
}

static int free_image(void **state)
{
	(void)state;
	free(tables.images);
	free(tables.languages);
	free(tables.pages);
	free(tables.chunks);
	free(tables.rules);
	free(tables.extents);
	return 0;
}

static struct unwind_copy *make_copy(uint64_t pc, const uint64_t *words, uint32_t count)
{
	struct unwind_copy *copy = calloc(1, sizeof(*copy));

	assert_non_null(copy);
	copy->registers[UNWIND_SP_NUMBER] = copy->begin = STACK_AT;
	copy->registers[UNWIND_REGISTERS] = pc;
	copy->size = count * sizeof(*words);
	if (count)
		memcpy(copy->bytes, words, copy->size);
	return copy;
}

static void test_stacks(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(stacks) / sizeof(*stacks); i++) {
		const struct replayed *s = &stacks[i];
		struct unwind_copy *copy = make_copy(s->pc, s->words, s->count);
		struct unwind_found found;
		uint32_t depth = 0;

		copy->registers[UNWIND_BP_NUMBER] = s->bp;
		copy->registers[UNWIND_BX_NUMBER] = s->bx;
		copy->registers[10] = s->r10;
		copy->registers[5] = s->rdi;
		unwind_copy_walk(copy, &tables, &space, NULL, &found);
		while (depth < PCS_MAX && s->pcs[depth])
			depth++;
		if (found.end != s->end || found.user_depth != depth ||
		    found.by_frame_pointer != s->by_frame_pointer ||
		    memcmp(found.pcs, s->pcs, depth * sizeof(*s->pcs)) != 0) {
			for (uint32_t k = 0; k < found.user_depth; k++)
				print_message("%llx\n", (unsigned long long)found.pcs[k]);
			fail_msg("%s: end %u, %u frames", s->name, found.end, found.user_depth);
		}
		free(copy);
	}
}

/* A recursion that is deeper than a stack may be. */
static void test_truncated(void **state)
{
	uint64_t words[2 * STACK_DEPTH_MAX];
	struct unwind_copy *copy;
	struct unwind_found found;

	(void)state;
	for (uint32_t i = 0; i < 2 * STACK_DEPTH_MAX; i++)
		words[i] = i % 2 ? IN(SAVES_BX, 9) : 0;
	copy = make_copy(IN(SAVES_BX, 4), words, 2 * STACK_DEPTH_MAX);
	unwind_copy_walk(copy, &tables, &space, NULL, &found);
	assert_int_equal(found.end, UNWIND_TRUNCATED);
	assert_int_equal(found.user_depth, STACK_DEPTH_MAX);
	for (uint32_t i = 1; i < STACK_DEPTH_MAX; i++)
		assert_true(found.pcs[i] == IN(SAVES_BX, 9));
	free(copy);
}

/*
 * The kernel's frames come first. A tick in a system call finds the user's pc after the
 * instruction, as after a call; one in a fault or an interrupt does not.
 */
static void test_kernel_frames(void **state)
{
	static const uint64_t words[] = { IN(START, 8) };
	struct unwind_copy *copy = make_copy(IN(LEAF, 4), words, 1);
	struct unwind_found found;

	(void)state;
	copy->kernel_depth = 2;
	copy->kernel_pcs[0] = 0xffffffff81000010;
	copy->kernel_pcs[1] = 0xffffffff81000020;
	for (uint32_t in_call = 0; in_call < 2; in_call++) {
		copy->in_system_call = in_call;
		unwind_copy_walk(copy, &tables, &space, NULL, &found);
		assert_int_equal(found.user_depth, 2);
		assert_true(found.pcs[0] == 0xffffffff81000010);
		assert_true(found.pcs[1] == 0xffffffff81000020);
		assert_true(found.pcs[2] == IN(LEAF, 4) + !in_call);
		assert_true(found.pcs[3] == IN(START, 8));
	}
	free(copy);
}

/* A thread in exec, or that exits, has no stack: it is not taken for one that cannot be read. */
static void test_no_stack(void **state)
{
	struct unwind_copy *copy = make_copy(IN(LEAF, 4), NULL, 0);
	struct unwind_found found;

	(void)state;
	unwind_copy_walk(copy, &tables, &space, NULL, &found);
	assert_int_equal(found.end, UNWIND_UNREADABLE);
	copy->no_stack = 1;
	unwind_copy_walk(copy, &tables, &space, NULL, &found);
	assert_int_equal(found.end, UNWIND_NO_STACK);
	free(copy);
}

/* A process whose walks take more than their part of its time has none, until they are paid for. */
static void test_budget(void **state)
{
	const uint64_t period = 1000000, limit = period / WALK_BUDGET_PART;
	uint64_t debt = 0, walked = 0, ticks = 100000;

	(void)state;
	assert_int_equal(walk_charge(5, limit, period), 5); /* it pays for itself */
	assert_int_equal(walk_charge(5, 0, period), 0);
	/* However long the CPU was paused, it is no more than some ticks. */
	assert_int_equal(walk_charge(period, UINT64_MAX, period), WALK_NS_MAX * WALK_BUDGET_PART);
	assert_false(walk_is_over_budget(WALK_BURST_NS));
	assert_true(walk_is_over_budget(WALK_BURST_NS + 1));
	for (uint64_t i = 0; i < ticks; i++) {
		const uint64_t walk = walk_is_over_budget(debt) ? 0 : 4 * limit;

		debt = walk_charge(debt, walk, period);
		walked += walk;
	}
	assert_in_range(walked, ticks * limit, ticks * limit + WALK_BURST_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks),	  cmocka_unit_test(test_budget),
		cmocka_unit_test(test_truncated), cmocka_unit_test(test_kernel_frames),
		cmocka_unit_test(test_no_stack),
	};

	return cmocka_run_group_tests(tests, make_image, free_image);
}
