/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scripts at a tick: while the native stack is walked, the functions that a call of an interpreter
 * runs are written behind its frame. A language gives, in a file of its own:
 * - begin_LANGUAGE(): finds the frames of this thread;
 * - read_LANGUAGE_frames(): those that the next call of the interpreter runs, the innermost first,
 *   and which native frame is that call;
 * - has_LANGUAGE_frames(): whether there are some that were not read.
 */
#ifndef PROFIL_BPF_SCRIPTS_H
#define PROFIL_BPF_SCRIPTS_H

#include "perl.h"
#include "php.h"
#include "python.h"

/* Sets `words` to what the next call of the interpreter runs, and which native frame that is. */
WALK_FUNCTION int read_script_frames(struct script_walk *script)
{
	if (!script)
		return 0;
	script->count = 0;
	script->entry = 0;
	script->function_size = 0;
	switch (script->image.language) {
#define LANGUAGE_READ(number, name)           \
	case LANGUAGE_##number:               \
		read_##name##_frames(script); \
		break;
		LANGUAGE_LIST(LANGUAGE_READ)
#undef LANGUAGE_READ
	}
	return script->count;
}

/*
 * If walk->at is of an interpreter, finds the frames of this thread, and reads the first: once in a
 * stack.
 */
WALK_FUNCTION int begin_script(struct walk *walk, struct script_walk *script)
{
	const struct language_image *image;
	__u32 number;
	int found = false;

	if (!walk || !script)
		return 0;
	number = walk->at.image;
	if (number == script->image_number)
		return 0;
	script->image_number = number;
	image = language_image(script, number);
	if (!image || !image->language)
		return 0;
	script->looked = true;
	script->count = 0;
	script->entry = 0;
	script->function_size = 0;
	script->frames_left = SCRIPT_FRAMES_MAX;
	script->codes_left = SCRIPT_CODES_MAX;
	script->image = *image;
	find_script_owner(script);
	script->bias = walk->at.bias;
	script->interpreter = walk->at.start + 1;
	switch (image->language) {
#define LANGUAGE_BEGIN(number, name)                \
	case LANGUAGE_##number:                     \
		found = begin_##name(walk, script); \
		break;
		LANGUAGE_LIST(LANGUAGE_BEGIN)
#undef LANGUAGE_BEGIN
	}
	script->found = found;
	script->is_threads = image->language == LANGUAGE_PYTHON ||
			     (image->language == LANGUAGE_PHP && script->is_first);
	return found ? read_script_frames(script) : 0;
}

/* Whether the list of the thread has functions that were not written so far. */
static __always_inline bool has_script_frames(const struct script_walk *script)
{
	bool has = false;

	switch (script->image.language) {
#define LANGUAGE_HAS(number, name)                 \
	case LANGUAGE_##number:                    \
		has = has_##name##_frames(script); \
		break;
		LANGUAGE_LIST(LANGUAGE_HAS)
#undef LANGUAGE_HAS
	}
	return has || script->count;
}

/*
 * Whether the native frame at pc, which the walk has stepped over, runs `words`. interpreter: it is
 * of the interpreter's image.
 */
static __always_inline bool runs_script(struct script_walk *script, struct walk *walk, __u64 pc,
					bool interpreter)
{
	if (script->entry)
		return script->entry - script->begin < walk->sp - script->begin;
	if (!interpreter)
		return false;
	if (script->image.language == LANGUAGE_PERL)
		return runs_perl(walk, script, pc);
	return script->function_size && (pc - script->function <= script->function_size ||
					 pc - script->cold <= script->cold_size);
}

#endif
