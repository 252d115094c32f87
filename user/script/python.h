/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SCRIPT_PYTHON_H
#define PROFIL_SCRIPT_PYTHON_H

#include "script/language.h"

/* CPython, 3.11 to 3.14: see script/language.h and the table of language.c. */
#define PYTHON_SYMBOLS                                    \
	{                                                 \
		"_PyRuntime", "PyCode_Type", "Py_Version" \
	}

void python_find(struct elf_file *file, const struct language_symbol *symbols,
		 struct language_image *image);
void python_trim(struct language_code *code);
void python_name(const struct language_code *code, char *name, char *file);
void python_version(const struct elf_file *file, const struct language_symbol *symbols,
		    char text[static LANGUAGE_VERSION_SIZE]);
uint32_t python_line(const struct language_code *code, uint32_t instruction);

#endif
