/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_PYTHON_H
#define PROFIL_SYMBOL_PYTHON_H

#include "bpf/language.h"
#include "symbol/elf_file.h"

/*
 * Describes the image if it is CPython's interpreter, 3.11 to 3.14, or the C library that has the
 * threads' data. Else *image is all 0.
 */
void python_find(struct elf_file *file, struct language_image *image);

#define PYTHON_TEXT_SIZE 512

/*
 * Writes the text of a string object, in UTF-8, as `size` bytes of it were copied; "": unknown. A
 * text that is too long ends with "...".
 */
void python_text(unsigned int version, const uint8_t *object, size_t size,
		 char text[static PYTHON_TEXT_SIZE]);

/* Returns the line of an instruction of the code; 0: unknown. */
uint32_t python_line(const struct language_code *code, uint32_t instruction);

#endif
