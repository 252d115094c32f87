// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stacks of threads that run Python, replayed through the walk: native frames as words of a stack,
 * Python's as its objects in this process's memory. The code is the BPF program's, so each of its
 * steps is certain. Needs no kernel. x86-64.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bpf/sample.h"
#include "capture/opener.h"
#include "capture/unwind/unwind_copy.h"
#include "script/python_layouts.h"

/* The functions of each image, 256 bytes each, and how their callers are found. */
enum function {
	START, /* the outermost frame */
	SMALL, /* 24 bytes on the stack */
	LARGE, /* 31 words */
	FUNCTIONS,
};

static const struct unwind_rule rules[FUNCTIONS] = {
	[START] = { .cfa = UNWIND_END },
	[SMALL] = { .cfa = UNWIND_SP, .offset = 32 },
	[LARGE] = { .cfa = UNWIND_SP, .offset = 256 },
};

#define FIRST	   0x1000 /* the ELF virtual address of an image's first function */
#define LIBRARY_AT 0x555500000000
#define PYTHON_AT  0x555600000000
#define JIT_AT	   0x555700000000 /* code that was made at run time: it has no rows */

#define LIBRARY(f) (LIBRARY_AT + FIRST + 0x100 * (f) + 9)
#define PYTHON(f)  (PYTHON_AT + FIRST + 0x100 * (f) + 9)
#define EVAL	   PYTHON(LARGE) /* the interpreter's function: its frame has Python's entry frame */
#define JIT	   (JIT_AT + 9)

static struct unwind_tables tables;
static struct unwind_mapping mappings[] = {
	{ .start = LIBRARY_AT, .limit = LIBRARY_AT + 0x10000, .bias = LIBRARY_AT },
	{ .start = PYTHON_AT, .limit = PYTHON_AT + 0x10000, .bias = PYTHON_AT },
	{ .start = JIT_AT, .limit = JIT_AT + 0x10000, .image = UNWIND_NO_IMAGE },
};
static const struct unwind_space space = { .mappings = mappings, .count = 3 };

/* --- What Python has in memory --- */

#define FRAMES_MAX 300
#define WORDS_MAX  8192

struct object {
	unsigned char bytes[256];
};

static struct object thread, codes[FRAMES_MAX], frames[FRAMES_MAX];
static uint32_t frame_count, key = 3;
static uint64_t specific[64]; /* the C library's block of thread-specific data */
static uint64_t *thread_block = specific;
static uint64_t code_type;
static uint64_t stack[WORDS_MAX];
static uint32_t word_count;

#define THREAD_SPECIFIC 16
static uint64_t thread_pointer;

static const struct python_layout *layout;

static int make_tables(void **state)
{
	const struct unwind_sizes room = {
		.images = 4, .pages = 64, .rows = UNWIND_CHUNK_ROWS, .rules = 64
	};
	struct unwind_address addresses[FUNCTIONS];
	struct unwind_rule copies[FUNCTIONS];
	const struct unwind_rows rows = {
		.rows = addresses, .count = FUNCTIONS, .rules = copies, .rule_count = FUNCTIONS
	};
	struct language_image *python;

	(void)state;
	memcpy(copies, rules, sizeof(copies));
	for (uint16_t i = 0; i < FUNCTIONS; i++)
		addresses[i] = (struct unwind_address){ FIRST + 0x100 * i, i };
	tables = (struct unwind_tables){ .room = room, .users_room = room, .used.images = 1 };
	tables.images = calloc(room.images, sizeof(*tables.images));
	tables.languages = calloc(room.images, sizeof(*tables.languages));
	tables.pages = calloc(room.pages, sizeof(*tables.pages));
	tables.chunks = calloc(1, sizeof(*tables.chunks));
	tables.rules = calloc(room.rules, sizeof(*tables.rules));
	if (!tables.images || !tables.languages || !tables.pages || !tables.chunks ||
	    !tables.rules || unwind_tables_add(&tables, &rows, 0, &mappings[0].image) ||
	    unwind_tables_add(&tables, &rows, 0, &mappings[1].image))
		return -1;
	for (size_t i = 0; i < sizeof(python_layouts) / sizeof(*python_layouts); i++)
		if (python_layouts[i].version == 0x30d)
			tables.languages[mappings[1].image] = python_layouts[i];
	python = &tables.languages[mappings[1].image];
	python->python.runtime = (uintptr_t)&key - python->python.key - PYTHON_AT;
	python->python.code_type = (uintptr_t)&code_type - PYTHON_AT;
	tables.languages[mappings[0].image].thread_specific = THREAD_SPECIFIC;
	layout = &python->python;
	thread_pointer = (uintptr_t)&thread_block - THREAD_SPECIFIC;
	/* The walk has a child read memory, which may not be allowed to read its parent's. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	return 0;
}

static int free_tables(void **state)
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

static void put(void *object, uint32_t offset, const void *value, size_t size)
{
	memcpy((char *)object + offset, value, size);
}

static void put_address(void *object, uint32_t offset, const void *address)
{
	put(object, offset, &address, sizeof(address));
}

/* What the frame that was added last has for its caller; and the thread, for the innermost one. */
static void *last_frame;

static void link_frame(void *frame)
{
	if (last_frame)
		put_address(last_frame, layout->frame_previous, frame);
	else if (layout->frame)
		put_address(&thread, layout->frame, frame);
	last_frame = frame;
}

static void begin_stack(void)
{
	memset(&thread, 0, sizeof(thread));
	memset(stack, 0, sizeof(stack));
	put(&thread, layout->thread_id, &thread_pointer, sizeof(thread_pointer));
	specific[key * 2 + 1] = (uintptr_t)&thread;
	last_frame = NULL;
	frame_count = word_count = 0;
}

/* The walk's word for a Python function, by its number from the innermost one on. */
static uint64_t word_of(uint32_t number)
{
	return language_word(LANGUAGE_PYTHON, (uintptr_t)&codes[number], 5);
}

/* Adds frames of Python functions: callers of those before. */
static void call_python(uint32_t functions)
{
	static const char *const type = (const char *)&code_type;

	for (; functions--; frame_count++) {
		struct object *code = &codes[frame_count], *frame = &frames[frame_count];
		uint32_t version = frame_count + 1;

		memset(code, 0, sizeof(*code));
		memset(frame, 0, sizeof(*frame));
		put_address(code, 8, type);
		put(code, layout->code_version ?: layout->code_line, &version, sizeof(version));
		put_address(frame, layout->frame_code, code);
		put_address(frame, layout->frame_instruction,
			    code->bytes + layout->code_first + 10);
		link_frame(frame);
	}
}

/* Adds the frame of a native function with so many words on the stack, and its return address. */
static uint64_t *call(uint32_t words, uint64_t caller)
{
	uint64_t *at = &stack[word_count];

	word_count += words;
	stack[word_count++] = caller;
	assert_true(word_count < WORDS_MAX);
	return at;
}

/* Adds a call of the interpreter's function, which runs functions of Python. */
static void evaluate(uint32_t functions, uint64_t caller)
{
	static const unsigned char owner = 3;
	uint64_t *entry = call(31, caller) + 4;

	call_python(functions);
	put(entry, layout->frame_entry, &owner, 1);
	link_frame(entry);
}

static struct unwind_found found;

/* The tick was at pc, in a function with SMALL's frame unless it was in code made at run time. */
static void walk(uint64_t pc, bool native)
{
	const struct opener_memory memory = { .target.pid = getpid() };
	struct scripts scripts = { 0 };
	const struct unwind_live live = {
		.memory = &memory,
		.thread_pointer = thread_pointer,
		.scripts = &scripts,
		.native = native,
	};
	struct unwind_copy *copy = calloc(1, sizeof(*copy));

	assert_non_null(copy);
	copy->id = sample_id_make(1, getpid(), getpid());
	copy->registers[UNWIND_SP_NUMBER] = copy->begin = (uintptr_t)stack;
	copy->registers[UNWIND_REGISTERS] = pc;
	copy->size = word_count * sizeof(*stack);
	assert_true(copy->size <= sizeof(copy->bytes));
	memcpy(copy->bytes, stack, copy->size);
	assert_int_equal(unwind_copy_walk(copy, &tables, &space, &live, &found), 0);
	scripts_free(&scripts);
	free(copy);
}

static void assert_words(uint32_t at, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		assert_true(found.pcs[at + i] == word_of(first + i));
}

/* --- Stacks --- */

/* Twenty functions that each call the next one by functions of the interpreter: map(f). */
static void make_nested(void)
{
	begin_stack();
	call(3, EVAL);
	for (uint32_t level = 0; level < 20; level++) {
		evaluate(1, level == 19 ? LIBRARY(START) : PYTHON(SMALL));
		for (uint32_t i = 0; i < 6 && level < 19; i++)
			call(3, i == 5 ? EVAL : PYTHON(SMALL));
	}
}

static void test_frames_of_the_interpreter(void **state)
{
	(void)state;
	make_nested();
	walk(LIBRARY(SMALL), false);
	assert_int_equal(found.end, UNWIND_COMPLETE);
	assert_int_equal(found.user_depth, 1 + 1 + 20 + 1);
	assert_true(found.pcs[0] == LIBRARY(SMALL));
	assert_true(found.pcs[1] == EVAL);
	assert_words(2, 0, 20);
	assert_true(found.pcs[22] == LIBRARY(START));
	/* A tick in the interpreter itself has its pc. */
	walk(PYTHON(SMALL), false);
	assert_int_equal(found.user_depth, 1 + 20 + 1);
	assert_true(found.pcs[0] == PYTHON(SMALL));
	assert_words(1, 0, 20);
}

static void test_native_frames(void **state)
{
	uint32_t words = 0;

	(void)state;
	make_nested();
	walk(LIBRARY(SMALL), true);
	assert_int_equal(found.end, UNWIND_TRUNCATED);
	assert_int_equal(found.user_depth, STACK_DEPTH_MAX);
	assert_true(found.pcs[1] == EVAL && found.pcs[2] == word_of(0));
	assert_true(found.pcs[3] == PYTHON(SMALL) && found.pcs[9] == EVAL);
	for (uint32_t i = 0; i < found.user_depth; i++)
		words += language_of_word(found.pcs[i]) != LANGUAGE_NONE;
	assert_in_range(words, 14, 16);
}

/* The native stack is lost in code that has no call frame information. */
static void test_lost_between_functions(void **state)
{
	(void)state;
	begin_stack();
	call(3, EVAL);
	evaluate(2, LIBRARY(SMALL));
	call(3, JIT);
	call(7, EVAL);
	evaluate(3, JIT);
	call(7, EVAL);
	evaluate(1, LIBRARY(START));
	walk(LIBRARY(SMALL), false);
	assert_int_equal(found.user_depth, 1 + 1 + 2 + 2 + 4);
	assert_words(2, 0, 2);
	assert_true(found.pcs[4] == LIBRARY(SMALL) && found.pcs[5] == JIT);
	assert_words(6, 2, 4);
	assert_int_not_equal(found.end, UNWIND_TRUNCATED);
}

/* python -X perf: each function has a call of the interpreter of its own, made at run time. */
static void test_lost_in_trampolines(void **state)
{
	(void)state;
	begin_stack();
	call(3, EVAL);
	for (uint32_t i = 0; i < 50; i++) {
		evaluate(1, JIT);
		call(7, EVAL);
	}
	walk(LIBRARY(SMALL), false);
	assert_int_equal(found.user_depth, 1 + 1 + 50);
	assert_words(2, 0, 50);
	/* Asked for, the interpreter's frames are there, as far as they are known. */
	walk(LIBRARY(SMALL), true);
	assert_int_equal(found.user_depth, 1 + 1 + 1 + 1 + 49);
	assert_true(found.pcs[2] == word_of(0) && found.pcs[3] == JIT);
	assert_words(4, 1, 49);
}

/* It is lost before the walk comes to the interpreter. */
static void test_lost_at_the_leaf(void **state)
{
	(void)state;
	begin_stack();
	call(3, EVAL);
	evaluate(4, LIBRARY(START));
	walk(JIT, false);
	assert_int_equal(found.user_depth, 1 + 1 + 4);
	assert_true(found.pcs[0] == JIT);
	/* What says whose functions they are. */
	assert_true(found.pcs[1] > PYTHON_AT && found.pcs[1] < PYTHON_AT + 0x10000);
	assert_words(2, 0, 4);
	/* A thread that does not run Python has none. */
	specific[key * 2 + 1] = 0;
	walk(JIT, false);
	assert_int_equal(found.user_depth, 1);
}

/* Native code between Python's functions, which has call frame information. */
static void test_native_between(void **state)
{
	(void)state;
	begin_stack();
	call(3, PYTHON(SMALL));
	call(3, PYTHON(SMALL));
	call(3, EVAL);
	evaluate(2, PYTHON(SMALL));
	call(3, LIBRARY(SMALL));
	call(3, LIBRARY(SMALL));
	call(3, PYTHON(SMALL));
	call(3, EVAL);
	evaluate(3, LIBRARY(START));
	walk(LIBRARY(SMALL), false);
	assert_int_equal(found.end, UNWIND_COMPLETE);
	assert_int_equal(found.user_depth, 1 + 1 + 2 + 2 + 3 + 1);
	assert_true(found.pcs[1] == EVAL);
	assert_words(2, 0, 2);
	assert_true(found.pcs[4] == LIBRARY(SMALL) && found.pcs[5] == LIBRARY(SMALL));
	assert_words(6, 2, 3);
	assert_true(found.pcs[9] == LIBRARY(START));
}

/* More functions than a stack may have: the innermost are kept, and it is said. */
static void test_too_deep(void **state)
{
	(void)state;
	begin_stack();
	call(3, EVAL);
	for (uint32_t i = 0; i < 20; i++) {
		evaluate(10, JIT);
		call(7, EVAL);
	}
	walk(LIBRARY(SMALL), false);
	assert_int_equal(found.end, UNWIND_TRUNCATED);
	assert_int_equal(found.user_depth, STACK_DEPTH_MAX);
	assert_words(2, 0, STACK_DEPTH_MAX - 2);
	begin_stack();
	call(3, EVAL);
	evaluate(200, PYTHON(START));
	walk(LIBRARY(SMALL), false);
	assert_int_equal(found.end, UNWIND_TRUNCATED);
	assert_int_equal(found.user_depth, STACK_DEPTH_MAX);
}

/* More native frames than are stepped over: Python's functions are there all the same. */
static void test_too_many_native_frames(void **state)
{
	(void)state;
	begin_stack();
	for (uint32_t i = 0; i < 400; i++)
		call(3, PYTHON(SMALL));
	call(3, EVAL);
	evaluate(5, LIBRARY(START));
	walk(LIBRARY(SMALL), false);
	assert_int_equal(found.user_depth, 1 + 1 + 5);
	assert_words(2, 0, 5);
}

/* --- Several interpreters, of Python 3.11: each has a list of frames for the thread. --- */

static struct object second_thread, interpreters[2], runtime;

/* Adds a call of the interpreter's function for a thread's state, which has an outer one, or 0. */
static uint64_t *evaluate_for(uint32_t functions, uint64_t *outer, uint64_t caller)
{
	static const unsigned char is_entry = 1;
	uint64_t *cframe = call(31, caller) + 4;
	const void *first = &frames[frame_count];

	call_python(functions);
	put(last_frame, layout->frame_entry, &is_entry, 1);
	put_address(cframe, layout->cframe_frame, first);
	put_address(cframe, layout->cframe_previous, outer);
	return cframe;
}

static void test_several_interpreters(void **state)
{
	struct language_image *python = &tables.languages[mappings[1].image];
	const struct language_image before = *python;
	uint64_t *inner, *middle, *outer;

	(void)state;
	for (size_t i = 0; i < sizeof(python_layouts) / sizeof(*python_layouts); i++)
		if (python_layouts[i].version == 0x30b)
			*python = python_layouts[i];
	python->python.runtime = (uintptr_t)&runtime - PYTHON_AT;
	python->python.key = 128;
	put(&runtime, python->python.key, &key, sizeof(key));
	python->python.code_type = (uintptr_t)&code_type - PYTHON_AT;
	begin_stack();
	call(3, EVAL);
	inner = evaluate_for(2, NULL, LIBRARY(SMALL));
	last_frame = NULL;
	call(3, EVAL);
	middle = evaluate_for(2, NULL, LIBRARY(SMALL));
	call(3, EVAL);
	/* That of the second interpreter goes on. */
	last_frame = &frames[1];
	outer = evaluate_for(1, NULL, LIBRARY(START));
	put_address(inner, layout->cframe_previous, outer);
	/* The key has the thread's first state alone. */
	memset(&second_thread, 0, sizeof(second_thread));
	put(&second_thread, layout->thread_id, &thread_pointer, sizeof(thread_pointer));
	put_address(&thread, layout->cframe, middle);
	put_address(&second_thread, layout->cframe, inner);
	put_address(&runtime, layout->interpreters, &interpreters[0]);
	put_address(&interpreters[0], layout->interpreter_next, &interpreters[1]);
	put_address(&interpreters[0], layout->interpreter_threads, &second_thread);
	put_address(&interpreters[1], layout->interpreter_threads, &thread);
	walk(LIBRARY(SMALL), false);
	assert_int_equal(found.end, UNWIND_COMPLETE);
	assert_int_equal(found.user_depth, 1 + 1 + 2 + 1 + 2 + 1 + 1 + 1);
	assert_words(2, 0, 2);
	assert_true(found.pcs[4] == LIBRARY(SMALL));
	assert_words(5, 2, 2);
	assert_true(found.pcs[7] == LIBRARY(SMALL));
	assert_words(8, 4, 1);
	assert_true(found.pcs[9] == LIBRARY(START));
	*python = before;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_of_the_interpreter),
		cmocka_unit_test(test_native_frames),
		cmocka_unit_test(test_lost_between_functions),
		cmocka_unit_test(test_lost_in_trampolines),
		cmocka_unit_test(test_lost_at_the_leaf),
		cmocka_unit_test(test_native_between),
		cmocka_unit_test(test_too_deep),
		cmocka_unit_test(test_too_many_native_frames),
		cmocka_unit_test(test_several_interpreters),
	};

	return cmocka_run_group_tests(tests, make_tables, free_tables);
}
