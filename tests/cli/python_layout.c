// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compares where profil takes Python's fields to be with the headers of one version of Python, and
 * prints the differences. Built and run by python_layout.sh.
 */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe_structs.h>
#endif

#include "layout.h"
#include "script/python_layouts.h"

#define FIELD(name, type, member) compare(#name, l->python.name, offsetof(type, member))

int main(void)
{
	const struct language_image *l = NULL;

	for (size_t i = 0; i < sizeof(python_layouts) / sizeof(*python_layouts); i++)
		if (python_layouts[i].version == PY_VERSION_HEX >> 16)
			l = &python_layouts[i];
	if (!l) {
		puts("there is no layout of version " PY_VERSION);
		return 1;
	}
#if PY_VERSION_HEX < 0x030c0000
	FIELD(key, _PyRuntimeState, gilstate.autoTSSkey._key);
#else
	FIELD(key, _PyRuntimeState, autoTSSkey._key);
#endif
	FIELD(thread_id, PyThreadState, thread_id);
	if (l->python.interpreters) {
		FIELD(interpreters, _PyRuntimeState, interpreters.head);
		FIELD(interpreter_next, PyInterpreterState, next);
		FIELD(interpreter_threads, PyInterpreterState, threads.head);
		FIELD(thread_next, PyThreadState, next);
	}
#if PY_VERSION_HEX < 0x030d0000
	FIELD(cframe, PyThreadState, cframe);
	FIELD(cframe_frame, _PyCFrame, current_frame);
	FIELD(cframe_previous, _PyCFrame, previous);
	FIELD(frame_code, _PyInterpreterFrame, f_code);
	FIELD(frame_instruction, _PyInterpreterFrame, prev_instr);
	compare("frame", l->python.frame, 0);
#else
	FIELD(frame, PyThreadState, current_frame);
	FIELD(frame_code, _PyInterpreterFrame, f_executable);
	FIELD(frame_instruction, _PyInterpreterFrame, instr_ptr);
	compare("cframe", l->python.cframe, 0);
	compare("free_threaded", 16, offsetof(_Py_DebugOffsets, free_threaded));
	compare("debug_offsets", 0, offsetof(_PyRuntimeState, debug_offsets));
#endif
	FIELD(frame_previous, _PyInterpreterFrame, previous);
#if PY_VERSION_HEX < 0x030c0000
	FIELD(frame_entry, _PyInterpreterFrame, is_entry);
	compare("entry_owner", l->python.entry_owner, 0);
#else
	FIELD(frame_entry, _PyInterpreterFrame, owner);
#if PY_VERSION_HEX < 0x030e0000
	compare("entry_owner", l->python.entry_owner, FRAME_OWNED_BY_CSTACK);
#else
	compare("entry_owner", l->python.entry_owner, FRAME_OWNED_BY_INTERPRETER);
#endif
#endif
	FIELD(code_line, PyCodeObject, co_firstlineno);
	FIELD(code_file, PyCodeObject, co_filename);
	FIELD(code_name, PyCodeObject, co_qualname);
	FIELD(code_table, PyCodeObject, co_linetable);
	FIELD(code_first, PyCodeObject, co_code_adaptive);
#if PY_VERSION_HEX < 0x030c0000
	compare("code_version", l->python.code_version, 0);
#else
	FIELD(code_version, PyCodeObject, co_version);
#endif
	compare("string_text", l->python.string_text, sizeof(PyASCIIObject));
	/* What the code takes to be the same in all versions */
	compare("ob_type", 8, offsetof(PyObject, ob_type));
	compare("a string's length", 16, offsetof(PyASCIIObject, length));
	compare("a string's state", 32, offsetof(PyASCIIObject, state));
	compare("the text of another one",
		l->python.string_text + (PY_VERSION_HEX < 0x030c0000 ? 24 : 16),
		sizeof(PyCompactUnicodeObject));
	compare("the size of bytes", 16, offsetof(PyVarObject, ob_size));
	compare("their text", 32, offsetof(PyBytesObject, ob_sval));
	return differences > 0;
}
