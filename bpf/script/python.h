/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Python's frames at a tick. Each call of the interpreter's function (_PyEval_EvalFrameDefault)
 * runs one or more Python functions that have called each other. Which call it is, is known by an
 * object that Python keeps on the native stack: the _PyCFrame up to 3.12, later the entry frame.
 */
#ifndef PROFIL_BPF_PYTHON_H
#define PROFIL_BPF_PYTHON_H

#include "code_objects.h"

static __always_inline __u64 python_field(const __u8 *bytes, __u32 offset, __u32 size)
{
	asm("" : "+r"(offset)); /* makes the compiler use the register that it checks */
	if (offset > size - 8)
		return 0;
	return *(const __u64 *)(bytes + offset);
}

/* A field of the code object that was read. */
static __always_inline __u64 code_field(const struct script_walk *script, __u32 offset)
{
	return python_field(script->python.code_bytes, offset, PYTHON_CODE_BYTES);
}

/* Reads what names a code object, but for its line table: python->code_bytes is of it. */
WALK_FUNCTION int read_python_code(struct script_walk *script)
{
	const struct python_layout *layout;
	struct language_code *code;
	__u64 table, size = 0;

	if (!script)
		return 0;
	layout = &script->image.python;
	code = &script->code;
	table = code_field(script, layout->code_table);
	code->kind = 0;
	code->line = code_field(script, layout->code_line);
	code->name_bytes =
		read_object(code->name, LANGUAGE_NAME_BYTES, code_field(script, layout->code_name));
	code->file_bytes =
		read_object(code->file, LANGUAGE_FILE_BYTES, code_field(script, layout->code_file));
	/* A bytes object: its size is after the reference count and the type, its text last. */
	if (READ_USER(size, table + 16))
		size = 0;
	script->python.lines = table + 32;
	script->python.lines_size = size;
	code->lines_at = 0;
	return 0;
}

/*
 * Sends a code object that was read, with the part of its line table from code->lines_at on.
 * Returns whether another one is to follow: a table may be longer than a record.
 */
WALK_FUNCTION int send_python_lines(struct script_walk *script, __u64 address, __u64 mark)
{
	struct language_code *code;
	__u64 part;
	bool last;

	if (!script)
		return false;
	code = &script->code;
	part = script->python.lines_size - code->lines_at;
	last = part < LANGUAGE_LINES_BYTES || code->lines_at >= LANGUAGE_LINES_MAX;
	if (part >= LANGUAGE_LINES_BYTES)
		part = LANGUAGE_LINES_BYTES - 1;
	part &= LANGUAGE_LINES_BYTES - 1;
	if (bpf_probe_read_user(code->lines, part, (void *)(script->python.lines + code->lines_at)))
		part = 0;
	code->lines_bytes = part;
	if (!send_code(script, address, mark, last || !part) || last || !part ||
	    !script->codes_left)
		return false;
	script->codes_left--;
	code->lines_at += part;
	code->name_bytes = code->file_bytes = 0;
	return true;
}

/*
 * Returns a hash of the beginning of a string object: its length, its hash if Python has one, and
 * some of its text.
 */
WALK_FUNCTION __u64 hash_string(struct script_walk *script, __u64 address, __u64 hash)
{
	__u32 words;

	if (!script)
		return hash;
	/* After the reference count and the type. */
	words = read_object(script->python.mark_words, sizeof(script->python.mark_words),
			    address + 16) /
		8;
	for (__u32 i = 0; i < PYTHON_MARK_WORDS && i < words; i++)
		hash = (hash ^ script->python.mark_words[i]) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 32;
}

/* Returns false if the object is no code. */
WALK_FUNCTION int note_python_code(struct script_walk *script, __u64 address)
{
	const struct python_layout *layout;
	__u64 mark = 0, file;

	if (!script)
		return false;
	layout = &script->image.python;
	/*
	 * What is compiled and freed in a loop, as templates are, has all its objects at the same
	 * addresses each time: only its version differs, and before 3.12 only the texts.
	 */
	if (layout->code_version) {
		if (bpf_probe_read_user(&mark, 4, (void *)(address + layout->code_version)))
			return false;
		if (mark && is_code_known(script, address, mark))
			return true;
	}
	if (bpf_probe_read_user(script->python.code_bytes, PYTHON_CODE_BYTES, (void *)address) ||
	    code_field(script, 8) != script->bias + layout->code_type)
		return false;
	if (!mark) {
		mark = code_field(script, layout->code_table) << 32 ^
		       (__u32)code_field(script, layout->code_line);
		mark = hash_string(script, code_field(script, layout->code_name), mark);
		file = code_field(script, layout->code_file);
		if (file != script->python.file) { /* else it is its caller's */
			script->python.file = file;
			script->python.file_hash = hash_string(script, file, 0);
		}
		mark ^= script->python.file_hash;
	}
	if (!is_code_wanted(script, address, mark))
		return true;
	read_python_code(script);
	/* A page may be on its way, of what was forked just now: the next tick tries again. */
	if (!script->code.name_bytes || !script->code.file_bytes)
		return true;
	for (int i = 0; i < LANGUAGE_LINES_PARTS && send_python_lines(script, address, mark); i++)
		;
	return true;
}

/*
 * Reads the frame that is next, and sets *offset to where in the window it is. Frames of functions
 * are behind each other, so those of the next callers are read with it; those of generators are
 * not. Returns false if it cannot be read.
 */
static __always_inline bool read_frame_bytes(struct python_walk *python, __u32 *offset)
{
	__u64 at = python->frame - python->window_at, begin;

	if (at > PYTHON_WINDOW_BYTES || at + PYTHON_FRAME_BYTES > python->window_bytes) {
		at = 0;
		if (python->last - python->frame < PYTHON_WINDOW_BYTES) {
			/* Not from the page before: where there is none, a fault is expensive. */
			at = python->frame & 4095;
			if (at > PYTHON_WINDOW_BYTES - PYTHON_FRAME_BYTES)
				at = PYTHON_WINDOW_BYTES - PYTHON_FRAME_BYTES;
		}
		begin = python->frame - at;
		python->window_at = begin;
		python->window_bytes = at + PYTHON_FRAME_BYTES;
		if (bpf_probe_read_user(python->window, at + PYTHON_FRAME_BYTES, (void *)begin)) {
			python->window_bytes = 0;
			return false;
		}
	}
	python->last = python->frame;
	*offset = at;
	return true;
}

/*
 * Reads the frame that is next, of a Python function or of a call of the interpreter's function,
 * which ends those that it runs. Returns whether it goes on. For the verifier, all state is in
 * *script.
 */
WALK_FUNCTION int read_python_frame(struct script_walk *script)
{
	__u64 code, instruction, owner, first;
	const struct python_layout *layout;
	struct python_walk *python;
	const __u8 *window;
	__u32 at;

	if (!script || !script->python.frame || !script->frames_left)
		return false;
	script->frames_left--;
	layout = &script->image.python;
	python = &script->python;
	window = python->window;
	if (!read_frame_bytes(python, &at)) {
		python->frame = 0;
		return false;
	}
	python->frame = python_field(window, at + layout->frame_previous, PYTHON_WINDOW_BYTES);
	/* A byte: python_field() reads 8. */
	owner = python_field(window, at + (layout->frame_entry & ~7U), PYTHON_WINDOW_BYTES) >>
			(layout->frame_entry & 7) * 8 &
		0xff;
	if (layout->entry_owner && owner >= layout->entry_owner) {
		if (!layout->cframe)
			script->entry = python->last;
		return false;
	}
	code = python_field(window, at + layout->frame_code, PYTHON_WINDOW_BYTES) &
	       ~7ULL; /* 3.14: a mark */
	instruction = python_field(window, at + layout->frame_instruction, PYTHON_WINDOW_BYTES);
	if (note_python_code(script, code)) {
		first = code + layout->code_first;
		instruction = instruction > first ? (instruction - first) / 2 : 0;
		if (!add_script_frame(script, code, instruction))
			return false;
	}
	return layout->entry_owner || !owner;
}

/*
 * A thread that runs code of several interpreters (subinterpreters) has a list of each. Goes on
 * with the one whose next call of the interpreter's function is the innermost on the stack; where
 * that is not known before its frames are read, with the first that has any.
 */
WALK_FUNCTION int choose_python_list(struct script_walk *script)
{
	struct python_walk *python;
	__u64 nearest = ~0ULL;

	if (!script)
		return 0;
	python = &script->python;
	if (python->list_count < 2)
		return 0;
	python->lists[python->list & (PYTHON_LISTS - 1)] =
		(struct python_list){ python->frame, python->cframe };
	if (!script->image.python.cframe && python->frame)
		return 0;
	python->frame = 0;
	for (__u32 i = 0; i < PYTHON_LISTS; i++) {
		__u64 distance =
			script->image.python.cframe ? python->lists[i].cframe - script->begin : i;

		if (!python->lists[i].frame || distance >= nearest)
			continue;
		nearest = distance;
		python->list = i;
		python->frame = python->lists[i].frame;
		python->cframe = python->lists[i].cframe;
	}
	return 0;
}

/* Reads the Python functions that one call of the interpreter's function runs. */
static __always_inline void read_python_frames(struct script_walk *script)
{
	struct python_walk *python = &script->python;

	for (int i = 0; i < LANGUAGE_FRAMES_MAX && read_python_frame(script); i++)
		;
	if (script->image.python.cframe) {
		script->entry = python->cframe;
		if (READ_USER(python->cframe,
			      python->cframe + script->image.python.cframe_previous))
			python->cframe = 0;
	}
	choose_python_list(script);
}

/* Adds the list of a thread's state, if it is this thread's and has frames. */
WALK_FUNCTION int add_python_list(struct walk *walk, struct script_walk *script, __u64 thread)
{
	const struct python_layout *layout;
	struct python_walk *python;
	struct python_list list = { 0 };
	__u64 id = 0, number;

	if (!walk || !script)
		return 0;
	layout = &script->image.python;
	python = &script->python;
	number = python->list_count;
	READ_USER(id, thread + layout->thread_id);
	if (id != walk_thread_pointer(walk))
		return 0;
	if (layout->cframe) {
		READ_USER(list.cframe, thread + layout->cframe);
		thread = list.cframe + layout->cframe_frame;
	} else {
		thread += layout->frame;
	}
	READ_USER(list.frame, thread);
	asm("" : "+r"(number)); /* makes the compiler use the register that it checks */
	if (!list.frame || number >= PYTHON_LISTS)
		return 0;
	python->lists[number] = list;
	python->list_count = number + 1;
	return 0;
}

/*
 * Adds the list of a state but that which was added, or goes on with the next interpreter. Returns
 * whether there is more.
 */
WALK_FUNCTION int read_python_thread(struct walk *walk, struct script_walk *script, __u64 added)
{
	const struct python_layout *layout;
	struct python_walk *python;

	if (!walk || !script)
		return false;
	layout = &script->image.python;
	python = &script->python;
	if (python->thread) {
		if (python->thread != added)
			add_python_list(walk, script, python->thread);
		if (READ_USER(python->thread, python->thread + layout->thread_next))
			python->thread = 0;
		return true;
	}
	if (READ_USER(python->interpreter, python->interpreter + layout->interpreter_next) ||
	    !python->interpreter)
		return false;
	READ_USER(python->thread, python->interpreter + layout->interpreter_threads);
	return true;
}

/* Adds this thread's lists of all interpreters but that of a state that was added. */
static __always_inline void find_python_lists(struct walk *walk, struct script_walk *script,
					      __u64 added)
{
	const struct python_layout *layout = &script->image.python;
	struct python_walk *python = &script->python;
	__u64 next = 0;

	if (!layout->interpreters)
		return;
	READ_USER(python->interpreter, script->bias + layout->runtime + layout->interpreters);
	if (READ_USER(next, python->interpreter + layout->interpreter_next) || !next)
		return; /* it is the only one, as in most processes */
	READ_USER(python->thread, python->interpreter + layout->interpreter_threads);
	for (int i = 0; i < PYTHON_THREADS_MAX && read_python_thread(walk, script, added); i++)
		;
}

/* Finds the frames of this thread. Returns false if it runs no Python function. */
WALK_FUNCTION int begin_python(struct walk *walk, struct script_walk *script)
{
	struct python_walk *python;
	__u64 thread;

	if (!walk || !script)
		return false;
	python = &script->python;
	python->last = 0;
	python->file = python->file_hash = 0;
	python->window_at = python->window_bytes = 0;
	python->list = python->list_count = 0;
	__builtin_memset(python->lists, 0, sizeof(python->lists));
	/* The one that the thread has last used, or up to 3.11 its first one. */
	thread = thread_specific_data(walk, script->bias + script->image.python.runtime +
						    script->image.python.key);
	if (thread)
		add_python_list(walk, script, thread);
	find_python_lists(walk, script, thread);
	python->frame = python->lists[0].frame;
	python->cframe = python->lists[0].cframe;
	choose_python_list(script);
	return python->frame != 0;
}

static __always_inline bool has_python_frames(const struct script_walk *script)
{
	return script->python.frame;
}

#endif
