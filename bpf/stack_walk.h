/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A user stack with the functions of scripts in it. One rule for all languages: the list of frames
 * that the interpreter keeps for the thread is complete, and the native walk says where among
 * native frames they are. So those that it has not come to when it ends are at the stack's end.
 *
 * The interpreter's own frames are left out, as nothing is to be known of them that its script's
 * functions do not say, and each would take the place of one; but for two: the leaf, and the frame
 * before the script's first function, which says whose interpreter it is.
 *
 * Included by the BPF program, and by user space for threads that wait. Whoever includes it defines
 * struct stack_scratch, which has `sample`, `walk`, `script`, and `depth`, of the user stack so
 * far; and copy_words().
 */
#ifndef PROFIL_BPF_STACK_WALK_H
#define PROFIL_BPF_STACK_WALK_H

#include "script/scripts.h"

/*
 * Native frames that are stepped over: more than are written, as many are an interpreter's.
 * Bound: users: native frames of which a stack with functions of scripts is made; then: the stack
 * ends there; again: never; share: each stack's own; seen: stacks_truncated.
 */
#define STACK_STEPS_MAX (2 * STACK_DEPTH_MAX)

static __always_inline void begin_stack_walk(struct stack_scratch *scratch, bool native)
{
	struct script_walk *script = &scratch->script;
	__u64 id = scratch->sample.stack.id;

	script->native = native;
	script->looked = script->found = script->wrote = script->ran = script->cut = false;
	script->follows_interpreter = false;
	script->image_number = UNWIND_NO_IMAGE;
	script->process = sample_id_process(id);
	script->is_first = sample_id_tid(id) == sample_id_tgid(id);
	script->begin = scratch->walk.sp;
	scratch->walk.end = UNWIND_TRUNCATED; /* unless it ends before STACK_STEPS_MAX */
	scratch->depth = 0;
}

/* Appends a frame. Returns false if there is no room. */
static __always_inline bool put_frame(struct stack_scratch *scratch, __u64 word)
{
	__u64 index = scratch->sample.stack.kernel_depth + scratch->depth;

	asm("" : "+r"(index)); /* makes the compiler use the register that it checks */
	if (index >= 2 * STACK_DEPTH_MAX || scratch->depth >= STACK_DEPTH_MAX)
		return false;
	scratch->sample.stack.pcs[index] = word;
	scratch->depth++;
	return true;
}

/* Whether there are functions of a script, and room, for put_script_frames(). */
static __always_inline bool goes_script_on(const struct script_walk *script)
{
	return has_script_frames(script) && !script->cut;
}

/*
 * Appends the functions of a script that were read, and reads those of the next call of the
 * interpreter. Returns whether there are any.
 */
WALK_FUNCTION int put_script_frames(struct stack_scratch *scratch)
{
	struct script_walk *script;
	__u32 depth;
	__u64 index, count;

	if (!scratch)
		return 0;
	script = &scratch->script;
	if (script->count && !script->wrote && !script->follows_interpreter)
		put_frame(scratch, script->interpreter);
	depth = scratch->depth;
	index = scratch->sample.stack.kernel_depth + depth;
	count = script->count;
	if (depth < STACK_DEPTH_MAX && count > STACK_DEPTH_MAX - depth)
		count = STACK_DEPTH_MAX - depth;
	script->cut |= script->count > STACK_DEPTH_MAX - depth;
	/* makes the compiler use the registers that it checks */
	asm("" : "+r"(index), "+r"(count));
	if (depth < STACK_DEPTH_MAX && index < 2 * STACK_DEPTH_MAX &&
	    count <= LANGUAGE_FRAMES_MAX &&
	    copy_words(&scratch->sample.stack.pcs[index], script->words, count) == 0)
		scratch->depth = depth + count;
	script->wrote |= script->count;
	read_script_frames(script);
	return goes_script_on(script);
}

/*
 * Appends the native frame that the walk has reached, and the functions of a script that it runs.
 * Returns whether it is the last.
 */
static __always_inline bool put_next_frame(struct stack_scratch *scratch)
{
	struct script_walk *script = &scratch->script;
	struct walk *walk = &scratch->walk;
	__u64 pc = walk->pc;
	bool mapped, interpreter, folded;

	mapped = find_mapping(walk, pc - !walk->interrupted);
	if (WALK_HAS_THREAD_POINTER && mapped && !script->looked)
		begin_script(walk, script);
	/*
	 * Code that was made at run time and calls the interpreter's function is the interpreter's:
	 * Python makes such for each function, to have a name in perf (-X perf). So is what calls
	 * any function of PHP: that of opcache's JIT.
	 */
	interpreter = script->found && mapped &&
		      (walk->at.image == script->image_number ||
		       (script->ran && walk->at.image == UNWIND_NO_IMAGE));
	script->ran = interpreter && script->image.language == LANGUAGE_PHP;
	folded = interpreter && !script->native && scratch->depth &&
		 (script->wrote || (script->count && script->is_threads));
	if (folded) {
		if (walk->at.image == script->image_number)
			script->interpreter = pc + walk->mark;
	} else {
		if (!put_frame(scratch, pc + walk->mark))
			return end_walk(walk, UNWIND_TRUNCATED);
		script->follows_interpreter = interpreter;
	}
	if (step(walk))
		return true;
	if (script->found && runs_script(script, walk, pc, interpreter)) {
		put_script_frames(scratch);
		script->ran = true;
	}
	return false;
}

/* Reads the first functions of the process's script. Returns whether its state was found. */
static __always_inline bool begin_own_script(struct stack_scratch *scratch)
{
	const struct unwind_mapping *mapping;
	struct walk *walk = &scratch->walk;

	if (WALK_HAS_THREAD_POINTER && !scratch->script.looked && walk->process.interpreter) {
		mapping = walk_mapping(walk, walk->process.first + walk->process.interpreter - 1);
		if (mapping) {
			walk->at = *mapping;
			begin_script(walk, &scratch->script);
		}
	}
	return scratch->script.found;
}

/* The native walk has ended: appends the functions of a script that it has not come to. */
WALK_FUNCTION int put_last_frames(struct stack_scratch *scratch)
{
	struct script_walk *script;
	struct walk *walk;
	bool goes_on;

	if (!scratch)
		return 0;
	walk = &scratch->walk;
	script = &scratch->script;
	if (walk->end != UNWIND_COMPLETE)
		begin_own_script(scratch);
	if (!script->found)
		return 0;
	if (script->image.language == LANGUAGE_PHP && !script->is_threads && !script->wrote)
		return 0;
	if (script->image.language == LANGUAGE_PERL) {
		/* It has come to all that run: the program is there while Perl compiles it. */
		if (walk->end == UNWIND_COMPLETE)
			return 0;
		if (script->perl.group == PERL_OTHER && !script->wrote)
			script->count = 0; /* it may not run */
	}
	goes_on = goes_script_on(script);
	for (int i = 0; i < STACK_DEPTH_MAX && goes_on; i++)
		goes_on = put_script_frames(scratch);
	if (script->cut || has_script_frames(script))
		walk->end = UNWIND_TRUNCATED;
	return 0;
}

#endif
