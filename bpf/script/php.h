/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PHP's frames at a tick. Each call of the interpreter's function, execute_ex(), runs the PHP
 * functions up to the next one that is marked as such a call's first. Those of functions that are
 * written in C are among them: behind the interpreter's function that called them.
 */
#ifndef PROFIL_BPF_PHP_H
#define PROFIL_BPF_PHP_H

#include "code_objects.h"

static __always_inline __u64 php_field(const struct php_walk *php, __u32 offset)
{
	asm("" : "+r"(offset)); /* makes the compiler use the register that it checks */
	if (offset > PHP_FUNCTION_BYTES - 8)
		return 0;
	return *(const __u64 *)(php->function + offset);
}

static __always_inline __u64 php_hash(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 32;
}

/* Returns a hash of a string: of the hash that PHP has of most, and its length; else of its text.
 */
WALK_FUNCTION __u64 hash_php_string(struct script_walk *script, __u64 address, __u64 hash)
{
	__u64 *text;
	__u32 words;

	if (!script || !address)
		return hash;
	text = script->php.text;
	if (bpf_probe_read_user(text, 16, (void *)(address + PHP_STRING_HASH)))
		return hash;
	hash = php_hash(php_hash(hash, text[0]), text[1]);
	if (text[0])
		return hash;
	words = read_object(text, PHP_TEXT_WORDS * 8, address + PHP_STRING_TEXT) / 8;
	for (__u32 i = 0; i < PHP_TEXT_WORDS && i < words; i++)
		hash = php_hash(hash, text[i]);
	return hash;
}

/* Copies a string object, up to `size` bytes of it. Returns how many. */
static __always_inline __u32 read_php_string(void *to, __u32 size, __u64 address)
{
	return address ? read_object(to, size, address) : 0;
}

/* Sends what names the function that was read. */
WALK_FUNCTION int send_php_code(struct script_walk *script, __u64 address, __u64 mark, __u32 kind)
{
	const struct php_function *function;
	struct language_code *code;
	__u64 file = 0, name = 0;

	if (!script)
		return 0;
	function = (const struct php_function *)script->php.function;
	code = &script->code;
	code->line = 0;
	code->kind = kind;
	if (function->type != PHP_INTERNAL_FUNCTION) {
		file = php_field(&script->php, script->image.php.file);
		code->line = php_field(&script->php, script->image.php.file + 8);
	}
	if (function->scope)
		READ_USER(name, function->scope + PHP_CLASS_NAME);
	code->name_bytes = read_php_string(code->name, LANGUAGE_NAME_BYTES, function->name);
	code->file_bytes = read_php_string(code->file, LANGUAGE_FILE_BYTES, file);
	code->lines_at = 0;
	code->lines_bytes = read_php_string(code->lines, LANGUAGE_NAME_BYTES, name);
	send_code(script, address, mark, true);
	return 0;
}

/*
 * Adds the function that was read. A closure's zend_op_array is a copy, and methods of traits share
 * their instructions: the function is known by these and by its class.
 */
WALK_FUNCTION int add_php_function(struct script_walk *script, __u32 kind, __u32 line)
{
	const struct php_function *function;
	struct php_walk *php;
	__u64 code, mark = 0, opcodes = 0, lines, file;

	if (!script)
		return false;
	php = &script->php;
	function = (const struct php_function *)php->function;
	if (function->type != PHP_INTERNAL_FUNCTION) {
		opcodes = php_field(php, script->image.php.opcodes);
		lines = php_field(php, script->image.php.file + 8);
		file = php_field(php, script->image.php.file);
		if (file != php->file) { /* else it is its caller's */
			php->file = file;
			php->file_hash = hash_php_string(script, file, 0);
		}
		mark = php_hash(php->file_hash, lines);
		/* An instruction of another function: it is not known where in this one it is. */
		if (line < (__u32)lines || line > lines >> 32)
			line = LANGUAGE_INSTRUCTION_UNKNOWN;
	}
	code = php_hash(php_hash(php_hash(kind, opcodes), function->scope), function->name);
	code = code >> 17 & ~15ULL; /* as language_word() has addresses */
	mark = hash_php_string(script, function->name, mark);
	if (is_code_wanted(script, code, mark))
		send_php_code(script, code, mark, kind);
	return add_script_frame(script, code, line);
}

/*
 * Reads the instruction at which a PHP function is. Returns its line; 0: unknown. From PHP 8.4 on
 * it may be a call of a function that is written in C which has no frame: adds it.
 */
static __always_inline __u32 read_php_instruction(struct script_walk *script, __u64 address)
{
	struct php_instruction instruction = { 0 };
	__u64 functions = 0, function = 0;

	if (READ_USER(instruction, address + PHP_INSTRUCTION_RESULT))
		return 0;
	/* An exception was thrown: this instruction of no function is in place of the one that did.
	 */
	if (instruction.opcode == PHP_HANDLE_EXCEPTION &&
	    (READ_USER(address,
		       script->bias + script->image.php.globals + script->image.php.thrower) ||
	     READ_USER(instruction, address + PHP_INSTRUCTION_RESULT)))
		return 0;
	if (script->image.php.frameless && (__u8)(instruction.opcode - PHP_FRAMELESS_CALL) < 4) {
		READ_USER(functions, script->bias + script->image.php.frameless);
		READ_USER(function, functions + instruction.extended_value * 8ULL);
		if (bpf_probe_read_user(script->php.function, sizeof(struct php_function),
					(void *)function) == 0 &&
		    script->php.function[0] == PHP_INTERNAL_FUNCTION)
			add_php_function(script, PHP_FUNCTION, LANGUAGE_INSTRUCTION_UNKNOWN);
		read_object(script->php.function, PHP_FUNCTION_BYTES,
			    script->php.frame_read.function);
	}
	return instruction.line;
}

/*
 * A frame without a function stands for the generators between one that runs and the one that the
 * program asked for a value (`yield from`): notes their frames.
 */
WALK_FUNCTION int read_php_generators(struct script_walk *script)
{
	__u64 generator, parent, class = 0, expected = 0, frame = 0;
	struct php_walk *php;

	if (!script)
		return 0;
	php = &script->php;
	generator = php->frame_read.object;
	if ((php->frame_read.call_info & 0xff) != PHP_OBJECT ||
	    READ_USER(class, generator + PHP_OBJECT_CLASS) ||
	    READ_USER(expected, script->bias + script->image.php.generator) || class != expected)
		return 0;
	for (int i = 0; i < PHP_GENERATORS_MAX; i++) {
		__u64 count = php->generator_count;

		asm("" : "+r"(count));
		if (READ_USER(parent, generator + PHP_GENERATOR_PARENT) || !parent ||
		    count >= PHP_GENERATORS_MAX ||
		    READ_USER(frame, generator + PHP_GENERATOR_FRAME))
			break;
		php->generators[count] = frame;
		php->generator_count = count + 1;
		generator = parent;
	}
	return 0;
}

/*
 * Reads the frame that is next. Returns whether the same call of execute_ex() runs the following
 * one. For the verifier, all state is in *script.
 */
WALK_FUNCTION int read_php_frame(struct script_walk *script)
{
	const struct php_function *function;
	struct php_frame *frame;
	struct php_walk *php;
	__u32 kind, info, line;
	__u64 last, address, opline;
	bool delegates;

	if (!script || !script->frames_left)
		return false;
	script->frames_left--;
	php = &script->php;
	frame = &php->frame_read;
	function = (const struct php_function *)php->function;
	last = (__u64)php->generator_count - 1;
	asm("" : "+r"(last)); /* makes the compiler use the register that it checks */
	delegates = last < PHP_GENERATORS_MAX;
	address = last < PHP_GENERATORS_MAX ? php->generators[last] : php->frame;
	if (!address || READ_USER(*frame, address) ||
	    (frame->function && read_object(php->function, PHP_FUNCTION_BYTES, frame->function) <
					sizeof(struct php_function))) {
		php->frame = php->generator_count = 0;
		return false;
	}
	if (delegates)
		php->generator_count = last;
	else
		php->frame = frame->previous;
	if (!frame->function) {
		if (!delegates)
			read_php_generators(script);
		return true;
	}
	if (function->type == PHP_INTERNAL_FUNCTION) {
		if (function->name) /* a fiber begins with a frame without one */
			add_php_function(script, PHP_FUNCTION, LANGUAGE_INSTRUCTION_UNKNOWN);
		return true;
	}
	if (function->type != PHP_USER_FUNCTION && function->type != PHP_EVAL_CODE) {
		php->frame = php->generator_count = 0;
		return false;
	}
	info = frame->call_info;
	kind = function->name			 ? PHP_FUNCTION
	       : !frame->previous		 ? PHP_MAIN
	       : function->type == PHP_EVAL_CODE ? PHP_EVAL
						 : PHP_INCLUDED;
	/* The frame has the instruction of the last call, or none yet: the register is up to date.
	 */
	opline = frame->opline;
	if (address == php->running && php->opline >= php_field(php, script->image.php.opcodes))
		opline = php->opline;
	line = read_php_instruction(script, opline);
	add_php_function(script, kind, line);
	return delegates || !(info & PHP_CALL_TOP);
}

/* Reads the PHP functions that one call of execute_ex() runs. */
static __always_inline void read_php_frames(struct script_walk *script)
{
	for (int i = 0; i < LANGUAGE_FRAMES_MAX && read_php_frame(script); i++)
		;
	if (!script->count)
		return;
	script->function = script->bias + script->image.php.function;
	script->function_size = script->image.php.function_size;
	script->cold = script->bias + script->image.php.cold;
	script->cold_size = script->image.php.cold_size;
}

/* Finds the frames of this process. Returns false if it runs no PHP function. */
WALK_FUNCTION int begin_php(struct walk *walk, struct script_walk *script)
{
	struct php_walk *php;

	if (!walk || !script)
		return false;
	php = &script->php;
	php->frame = php->generator_count = 0;
	php->file = php->file_hash = 0;
	php->running = walk->registers[14];
	php->opline = walk->registers[15];
	READ_USER(php->frame, script->bias + script->image.php.globals + script->image.php.current);
	return php->frame != 0;
}

static __always_inline bool has_php_frames(const struct script_walk *script)
{
	return script->php.frame;
}

#endif
