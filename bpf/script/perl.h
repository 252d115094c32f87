/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Perl's frames at a tick. Perl's functions do not nest on the native stack: one call of
 * Perl_runops_standard() runs all of them, until native code calls back (sort, tie, overload,
 * DESTROY, an XS function), which ends in another call of it. Perl has a stack of contexts instead.
 *
 * A group is the contexts that one call of Perl_runops_standard() runs. Its last one has no
 * operation to return to, which ends that call. The native function that called it says what its
 * group is like: there are groups that no call runs at the tick, as of sort between two
 * comparisons, and calls that have no group: of S_docatch(), which goes on with that of the next
 * call outside.
 */
#ifndef PROFIL_BPF_PERL_H
#define PROFIL_BPF_PERL_H

#include "code_objects.h"

enum perl_group {
	PERL_NO_GROUP,
	PERL_CALLED,  /* of call_sv() or another function that calls back */
	PERL_OTHER,   /* of sort, of a macro in XS code (MULTICALL), of a regular expression */
	PERL_FIRST,   /* of the program: it ends with the stack of contexts */
	PERL_CUT_OFF, /* longer than what is read */
};

/*
 * What a program writes into its memory decides how long the walk takes: so much is read.
 * Bound: users: contexts of Perl that one tick reads; then: the callers beyond are missing; again:
 * at the next tick; share: each tick's own; seen: not seen.
 */
#define PERL_CONTEXTS_MAX  512
#define PERL_CONTEXTS_STEP 32 /* so many by one function, for the verifier */

/*
 * Groups that are passed over in search of the one that a native frame runs.
 * Bound: users: groups of contexts that are skipped for one native frame; then: the native frame
 * stays as it is; again: at the next tick; share: each tick's own; seen: not seen.
 */
#define PERL_GROUPS_MAX 4

/*
 * Functions are distinguished by what they share with their copies, as an address: closures that
 * are made of one function are one, and so are those of all threads.
 */
static __always_inline __u64 perl_code_number(__u64 hash)
{
	return hash * 0x9e3779b97f4a7c15 >> 17 & ~15ULL;
}

/* The statement of the frame that comes next. */
static __always_inline void read_perl_statement(struct perl_walk *perl)
{
	/*
	 * While Perl compiles, it is a part of the interpreter, which has the place of the
	 * innermost of all that is being compiled.
	 */
	bool compiles = perl->cop - perl->interpreter < PERL_INTERPRETER_BYTES;

	if ((compiles && perl->compiles) || READ_USER(perl->statement, perl->cop))
		perl->statement = (struct perl_cop){ 0 };
	perl->compiles |= compiles;
}

static __always_inline void add_perl_frame(struct script_walk *script, __u64 code)
{
	__u32 line = script->perl.statement.line;

	add_script_frame(script, code, line ?: LANGUAGE_INSTRUCTION_UNKNOWN);
}

static __always_inline void send_perl_code(struct script_walk *script, __u64 code, __u64 mark,
					   __u64 file)
{
	long length = bpf_probe_read_user_str(script->code.file, LANGUAGE_FILE_BYTES, (void *)file);

	script->code.file_bytes = length > 0 ? length : 0;
	script->code.lines_bytes = script->code.lines_at = 0;
	send_code(script, code, mark, true);
}

/* Sends what names a function: perl->cv is of it, perl->start its first statement. */
static __always_inline void send_perl_sub(struct script_walk *script, __u64 number, __u64 mark)
{
	struct language_code *code = &script->code;
	struct perl_walk *perl = &script->perl;
	__u64 name = perl->cv.gv, package = perl->cv.stash;

	if (!(perl->cv.flags & PERL_CV_NAMED)) {
		struct perl_gv gv = { 0 };

		READ_USER(perl->sv, name);
		READ_USER(gv, perl->sv.any + PERL_GV_BODY);
		name = gv.name;
		package = gv.stash;
	}
	if (perl->cv.flags & PERL_CV_LEXICAL) {
		package = 0;
	} else {
		struct perl_stash stash = { 0 };

		READ_USER(perl->sv, package);
		READ_USER(stash, perl->sv.any + PERL_STASH_BODY);
		package = stash.name;
		if (stash.name_count)
			READ_USER(package, package);
	}
	__builtin_memset(code->name, 0, sizeof(code->name));
	if (package)
		read_object(code->name, PERL_NAME_BYTES, package);
	read_object(code->name + PERL_NAME_BYTES, PERL_NAME_BYTES, name);
	code->name_bytes = LANGUAGE_NAME_BYTES;
	code->kind = PERL_SUB;
	code->line = perl->start.line;
	send_perl_code(script, number, mark, perl->start.file ?: perl->cv.file);
}

/* Writes the frame of the function that perl->context is of. */
WALK_FUNCTION int read_perl_sub(struct script_walk *script)
{
	struct perl_walk *perl;
	__u32 operation;
	__u64 code, mark;
	bool inner;

	if (!script)
		return 0;
	perl = &script->perl;
	inner = perl->inner;
	perl->inner = false;
	if (READ_USER(perl->sv, perl->context.cv) || PERL_SV_TYPE(perl->sv.flags) < PERL_SV_CV ||
	    PERL_SV_TYPE(perl->sv.flags) > PERL_SV_FORMAT ||
	    READ_USER(perl->cv, perl->sv.any + PERL_CV_BODY))
		return 0;
	/* A call that is under way, before the function's first statement: it has no line yet. */
	if (inner && perl->context.oldcop == perl->cop &&
	    (perl->op == perl->cv.start || perl->next == perl->context.retop)) {
		perl->begins = true;
		return 0;
	}
	if (READ_USER(perl->start, perl->cv.start))
		perl->start = (struct perl_cop){ 0 };
	operation = PERL_OP_TYPE(perl->start.type);
	if (operation - script->image.perl.nextstate > 1)
		perl->start.line = perl->start.seq = perl->start.file = 0;
	read_perl_statement(perl);
	code = perl_code_number((perl->cv.root * 0x9e3779b97f4a7c15 >> 32) ^ perl->cv.gv);
	/* Other code that takes its place has another number of its first statement. */
	mark = perl->cv.start << 32 ^ perl->start.seq;
	if (is_code_wanted(script, code, mark))
		send_perl_sub(script, code, mark);
	add_perl_frame(script, code);
	return 0;
}

/*
 * Writes the frame of what is no function: the program, or what perl->context is of, a file that is
 * required or a string that is evaluated. These are known by the text of their file.
 */
WALK_FUNCTION int read_perl_file(struct script_walk *script, __u32 kind)
{
	struct language_code *code;
	__u64 name = 0, file, number;
	struct perl_walk *perl;

	if (!script)
		return 0;
	perl = &script->perl;
	code = &script->code;
	perl->inner = false;
	read_perl_statement(perl);
	file = perl->statement.file;
	if (kind == PERL_REQUIRE) {
		READ_USER(perl->sv, perl->context.old_namesv);
		name = perl->sv.u;
	}
	__builtin_memset(perl->text, 0, sizeof(perl->text));
	if (kind != PERL_PROGRAM)
		bpf_probe_read_user_str(perl->text, sizeof(perl->text), (void *)(file ?: name));
	/* "(eval 1)" and others are one. */
	number = kind;
	if ((perl->text[0] & 0xffffffffffff) != 0x206c61766528)
		for (int i = 0; i < PERL_TEXT_WORDS; i++)
			number = (number ^ perl->text[i]) * 0x9e3779b97f4a7c15 ^ number >> 29;
	number = perl_code_number(number);
	if (is_code_wanted(script, number, kind)) {
		long length =
			bpf_probe_read_user_str(code->name, LANGUAGE_NAME_BYTES, (void *)name);

		code->name_bytes = length > 0 ? length : 0;
		code->kind = kind;
		code->line = 0;
		send_perl_code(script, number, kind, file ?: name);
	}
	add_perl_frame(script, number);
	return 0;
}

/* Reads the context that comes next. Returns whether its group goes on. */
WALK_FUNCTION int read_perl_context(struct script_walk *script)
{
	struct perl_context *context;
	struct perl_walk *perl;
	__u8 outer = 0;
	__u32 type;

	if (!script)
		return false;
	perl = &script->perl;
	context = &perl->context;
	perl->group = PERL_CUT_OFF;
	if (!perl->contexts_left || script->count >= LANGUAGE_FRAMES_MAX)
		return false;
	perl->contexts_left--;
	if (perl->index < 0) {
		/* Of the code that called back */
		if (perl->stack.prev && READ_USER(perl->stack, perl->stack.prev) == 0) {
			perl->index = perl->stack.last;
			return true;
		}
		perl->group = PERL_FIRST;
		perl->contexts_left = 0;
		read_perl_file(script, PERL_PROGRAM);
		return false;
	}
	if (READ_USER(*context, perl->stack.contexts + perl->index * sizeof(*context))) {
		perl->contexts_left = 0;
		return false;
	}
	perl->index--;
	type = context->type;
	switch (PERL_CONTEXT_TYPE(type)) {
	case PERL_CONTEXT_NULL: /* the block of sort; a loop that begins has its flags already */
		if (type)
			return true;
		/* fallthrough */
	case PERL_CONTEXT_DEFER:
		perl->group = PERL_OTHER;
		return false;
	case PERL_CONTEXT_SUB:
		if (type & PERL_CONTEXT_SUB_RE_FAKE)
			break;
		/* fallthrough */
	case PERL_CONTEXT_FORMAT:
		read_perl_sub(script);
		perl->cop = context->oldcop;
		break;
	case PERL_CONTEXT_EVAL:
		if (type & PERL_CONTEXT_EVAL_BLOCK)
			return true;
		read_perl_file(script, context->old_namesv ? PERL_REQUIRE : PERL_EVAL);
		perl->cop = context->oldcop;
		break;
	default:
		return true;
	}
	if (context->retop)
		return true;
	perl->group = type & PERL_CONTEXT_MULTICALL ? PERL_OTHER : PERL_CALLED;
	/* What a block of those that have no operation to return to calls last has none either. */
	if (perl->index >= 0 && perl->group == PERL_CALLED &&
	    READ_USER(outer, perl->stack.contexts + perl->index * sizeof(*context)) == 0)
		perl->is_last = PERL_CONTEXT_TYPE(outer) == PERL_CONTEXT_NULL ||
				PERL_CONTEXT_TYPE(outer) == PERL_CONTEXT_DEFER ||
				(PERL_CONTEXT_TYPE(outer) == PERL_CONTEXT_SUB &&
				 outer & PERL_CONTEXT_SUB_RE);
	return false;
}

/* Reads the next PERL_CONTEXTS_STEP contexts, or fewer. Returns whether their group goes on. */
WALK_FUNCTION int read_perl_contexts(struct script_walk *script)
{
	for (int i = 0; i < PERL_CONTEXTS_STEP; i++)
		if (!script || !read_perl_context(script))
			return false;
	return true;
}

/* Reads the group that comes next, and adds its frames to the script's `words`. */
static __always_inline void read_perl_frames(struct script_walk *script)
{
	script->perl.begins = script->perl.is_last = false;
	script->perl.group = PERL_NO_GROUP;
	if (!script->perl.contexts_left)
		return;
	for (int i = 0; i < PERL_CONTEXTS_MAX / PERL_CONTEXTS_STEP && read_perl_contexts(script);
	     i++)
		;
}

WALK_FUNCTION int read_perl_group(struct script_walk *script)
{
	if (script)
		read_perl_frames(script);
	return 0;
}

/* Finds the contexts of this thread. Returns false if it is no Perl thread. */
WALK_FUNCTION int begin_perl(struct walk *walk, struct script_walk *script)
{
	struct perl_walk *perl;
	__u64 stack = 0;

	if (!walk || !script)
		return false;
	perl = &script->perl;
	perl->interpreter = thread_specific_data(walk, script->bias + script->image.perl.key);
	if (!perl->interpreter || READ_USER(perl->op, perl->interpreter + PERL_INTERPRETER_OP) ||
	    READ_USER(perl->cop, perl->interpreter + PERL_INTERPRETER_COP) ||
	    READ_USER(stack, perl->interpreter + PERL_INTERPRETER_STACK) ||
	    READ_USER(perl->stack, stack))
		return false;
	perl->next = ~0ULL;
	READ_USER(perl->next, perl->op);
	perl->index = perl->stack.last;
	perl->contexts_left = PERL_CONTEXTS_MAX;
	perl->inner = true;
	perl->compiles = perl->ran = false;
	return true;
}

static __always_inline bool is_in_perl(const struct script_walk *script, __u64 pc,
				       const struct perl_function *function)
{
	return pc - script->bias - function->address < function->size;
}

/*
 * Whether the native frame at pc, which the walk has stepped over, runs `words`: these are then the
 * frames of its group, and of no other.
 */
WALK_FUNCTION int runs_perl(struct walk *walk, struct script_walk *script, __u64 pc)
{
	const struct perl_layout *layout;
	struct perl_walk *perl;
	bool ran, calls = false;
	__u32 group;

	if (!walk || !script)
		return false;
	layout = &script->image.perl;
	perl = &script->perl;
	ran = perl->ran;
	perl->ran = is_in_perl(script, pc, &layout->runops);
	if (perl->ran)
		pc = walk->pc; /* of its caller */
	for (int i = 0; i < PERL_CALLERS; i++)
		calls |= is_in_perl(script, pc, &layout->callers[i]);
	if (!perl->ran) {
		/* A function's context is there before Perl_runops_standard() is called for it. */
		if (calls && !ran && perl->begins && perl->group == PERL_CALLED && !script->count)
			read_perl_group(script);
		return false;
	}
	group = calls				       ? PERL_CALLED
		: is_in_perl(script, pc, &layout->run) ? PERL_FIRST
						       : PERL_OTHER;
	for (int i = 0; i < PERL_GROUPS_MAX && perl->group != PERL_NO_GROUP; i++) {
		if (perl->group == group || perl->group == PERL_CUT_OFF)
			return true;
		if (perl->group != PERL_OTHER && group != PERL_FIRST && !perl->is_last)
			return false;
		if (perl->group == PERL_OTHER)
			script->count = 0;
		read_perl_group(script);
	}
	return false;
}

static __always_inline bool has_perl_frames(const struct script_walk *script)
{
	return script->perl.group != PERL_NO_GROUP;
}

#endif
