/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Languages whose functions ticks can name: what is known of their interpreters, and what their
 * code objects are called. Each has a file of its own, and a line in the table of language.c.
 */
#ifndef PROFIL_SCRIPT_LANGUAGE_H
#define PROFIL_SCRIPT_LANGUAGE_H

#include "bpf/script/language.h"
#include "symbol/elf_file.h"

/*
 * Describes the image if it is an interpreter of a version that is known, or the C library that has
 * the threads' data. Else *image is all 0.
 */
void language_find(struct elf_file *file, struct language_image *image);

/* Whether the file is an interpreter of a version that is known: the functions of its scripts have
 * names. fd: owned by the caller. */
bool language_is_interpreter(int fd);

#define LANGUAGE_VERSION_SIZE 64

/*
 * Which interpreter the file is, such as "Python 3.15.2"; "": none that is recognized. fd: as
 * above.
 */
void language_version(int fd, char text[static LANGUAGE_VERSION_SIZE]);

#define LANGUAGE_TEXT_SIZE 512

/*
 * Names a function: what it is called, and the file that it is in; "": unknown. In UTF-8, without
 * control characters; a text that is too long ends with "...".
 */
void language_name(const struct language_code *code, char name[static LANGUAGE_TEXT_SIZE],
		   char file[static LANGUAGE_TEXT_SIZE]);

/*
 * Clears what was copied with the texts of a function and names nothing: reference counts, hashes,
 * and what follows a text. What is left is the same in all processes that were forked from one.
 */
void language_trim(struct language_code *code);

/* Returns the line of an instruction of the code; 0: unknown. */
uint32_t language_line(const struct language_code *code, uint32_t instruction);

/* Returns what the language is called, such as "python". */
const char *language_label(unsigned int language);

/* --- For the languages --- */

/* A variable or function that the image defines in its dynamic symbols; address 0: it does not. */
struct language_symbol {
	uint64_t address, size;
};

/* Reads what a variable has in the file. Returns false if it has nothing there. */
bool language_read_variable(const struct elf_file *file, uint64_t address, void *to, size_t size);

/*
 * Appends a code point in UTF-8 at text[used], control characters as "?". Returns what is used
 * then: up to 4 bytes more.
 */
size_t language_put_utf8(char *text, size_t used, uint32_t c);

#endif
