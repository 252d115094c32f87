/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Languages whose functions ticks can name: what is known of their interpreters, and what their
 * code objects are called. Each has a file of its own, which ends with its description
 * (script/description.h).
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

/*
 * An interpreter without code made at run time, or with little of it: its own functions have the
 * samples of the program's. What hints say of it.
 */
struct interpreter {
	/* Bound: size. */
	const char *images[5];	  /* file name patterns, for fnmatch(3), up to a NULL */
	const char *names;	  /* prefix of the program's functions in files of names; or NULL */
	const char *functions[2]; /* prefix and suffix of those that interpret, of a program that
				     does much else; or NULLs */
	const char *hint;
	/*
	 * Its functions are in call stacks by call frame information (-g), of these versions, in
	 * these builds. language: NULL: they are not.
	 */
	const char *language, *builds;
	unsigned int major, minor_least, minor_most;
};

/* The interpreters of a language whose functions ticks can name. */
const struct interpreter *language_interpreter(enum language language);

#endif
