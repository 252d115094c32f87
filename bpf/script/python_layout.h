/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the walk reads of Python's structures. tests/cli/python_layout.sh compares the versions of
 * user/script/python_layouts.h with Python's headers. Includes nothing: see language.h.
 */
#ifndef PROFIL_BPF_PYTHON_LAYOUT_H
#define PROFIL_BPF_PYTHON_LAYOUT_H

/*
 * Where Python keeps what the walk reads: offsets in bytes. The names are CPython's.
 */
struct python_layout {
	unsigned long long runtime;   /* ELF virtual address of _PyRuntime */
	unsigned long long code_type; /* and of PyCode_Type */
	unsigned short key;	      /* in _PyRuntime: autoTSSkey._key */
	/*
	 * In _PyRuntime, PyInterpreterState and PyThreadState: the lists of interpreters and of
	 * their threads; 0: not known.
	 */
	unsigned short interpreters, interpreter_next, interpreter_threads, thread_next;
	unsigned short thread_id;		      /* in PyThreadState */
	unsigned short cframe;			      /* up to 3.12; 0: none */
	unsigned short cframe_frame, cframe_previous; /* in _PyCFrame */
	unsigned short frame;			      /* in PyThreadState: current_frame */
	unsigned short frame_code, frame_previous, frame_instruction; /* in _PyInterpreterFrame */
	unsigned short frame_entry;				      /* is_entry (3.11) or owner */
	unsigned short entry_owner; /* the least owner of a frame that is no function's; 0: 3.11 */
	unsigned short code_line, code_file, code_name, code_table, code_first;
	unsigned short code_version; /* 32 bits, other ones of each code object; 0: none */
	unsigned short string_text;  /* where the text of an ASCII string begins */
};

#endif
