/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SCRIPT_PYTHON_LAYOUTS_H
#define PROFIL_SCRIPT_PYTHON_LAYOUTS_H

#include "bpf/script/language.h"

#define SAME_SINCE_3_12                                                                  \
	.frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .entry_owner = 3, \
	.code_line = 68, .code_file = 112, .code_name = 128, .code_table = 136,          \
	.code_version = 92, .string_text = 40

/*
 * By minor version: from the headers of each (pycore_frame.h, pycore_runtime.h, cpython/code.h).
 * They were the same in the releases that were compared: 3.11.2 and 3.11.7; 3.12.1; 3.13.0, 3.13.5
 * and 3.13.18; 3.14.10. Where they are not, a thread is found to be no Python thread, and its
 * stacks have native frames alone. tests/cli/python_layout.sh compares them with the headers here.
 */
static const struct language_image python_layouts[] = {
	{
		.language = LANGUAGE_PYTHON,
		.version = 0x30b,
		.python = {
			.key = 592 + 4,
			.interpreters = 40,
			.interpreter_threads = 16,
			.thread_next = 8,
			.thread_id = 152,
			.cframe = 56,
			.cframe_frame = 8,
			.cframe_previous = 16,
			.frame_code = 32,
			.frame_previous = 48,
			.frame_instruction = 56,
			.frame_entry = 68,
			.code_line = 72,
			.code_file = 112,
			.code_name = 128,
			.code_table = 136,
			.code_first = 184,
			.string_text = 48,
		},
	},
	{
		.language = LANGUAGE_PYTHON,
		.version = 0x30c,
		.python = {
			SAME_SINCE_3_12,
			.key = 1544 + 4,
			.interpreters = 40,
			.interpreter_threads = 72,
			.thread_next = 8,
			.thread_id = 136,
			.cframe = 56,
			.cframe_frame = 0,
			.cframe_previous = 8,
			.frame_entry = 70,
			.code_first = 192,
		},
	},
	{
		.language = LANGUAGE_PYTHON,
		.version = 0x30d,
		.python = {
			SAME_SINCE_3_12,
			.key = 2160 + 4,
			.interpreters = 632,
			.interpreter_next = 7264,
			.interpreter_threads = 7344,
			.thread_next = 8,
			.thread_id = 152,
			.frame = 72,
			.frame_entry = 70,
			.code_first = 200,
		},
	},
	{
		.language = LANGUAGE_PYTHON,
		.version = 0x30e,
		.python = {
			SAME_SINCE_3_12,
			.key = 2336 + 4,
			.thread_id = 152,
			.frame = 72,
			.frame_entry = 74,
			.code_first = 208,
		},
	},
};

#endif
