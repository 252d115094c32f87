/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scripts at a tick: while the native stack is walked, the functions that a call of an interpreter
 * runs are written behind its frame. A language gives, in a file of its own:
 * - begin_LANGUAGE(): finds the frames of this thread;
 * - read_LANGUAGE_frames(): those that the next call of the interpreter runs, the innermost first,
 *   and which native frame is that call.
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
	if (script->image.language == LANGUAGE_PYTHON)
		read_python_frames(script);
	else if (script->image.language == LANGUAGE_PHP)
		read_php_frames(script);
	else if (script->image.language == LANGUAGE_PERL)
		read_perl_frames(script);
	return script->count;
}

/* The walk came to an interpreter: finds the frames of this thread, and reads the first. */
WALK_FUNCTION int begin_script(struct walk *walk, struct script_walk *script)
{
	const struct language_image *image;
	__u32 number;
	int found = false;

	if (!walk || !script)
		return 0;
	script->looked = true;
	script->coroutine = false;
	script->count = 0;
	script->entry = 0;
	script->function_size = 0;
	script->frames_left = SCRIPT_FRAMES_MAX;
	script->codes_left = SCRIPT_CODES_MAX;
	number = walk->at.image;
	image = language_image(script, number);
	if (!image)
		return 0;
	script->image = *image;
	script->image_number = number;
	script->bias = walk->at.bias;
	if (image->language == LANGUAGE_PYTHON)
		found = begin_python(walk, script);
	else if (image->language == LANGUAGE_PHP)
		found = begin_php(walk, script);
	else if (image->language == LANGUAGE_PERL)
		found = begin_perl(walk, script);
	return found ? read_script_frames(script) : 0;
}

/* Whether it is the native frame that runs `words`: the walk has stepped over it. */
static __always_inline bool runs_script(struct script_walk *script, struct walk *walk, __u64 pc,
					__u64 sp)
{
	if (script->image.language == LANGUAGE_PERL)
		return runs_perl(walk, script, pc);
	if (script->function_size)
		return pc - script->function <= script->function_size ||
		       pc - script->cold <= script->cold_size;
	return script->entry && script->entry - sp < walk->sp - sp;
}

#endif
