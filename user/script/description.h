/* SPDX-License-Identifier: GPL-2.0-only */
/* What a language is described by, in its file; and what these files share. */
#ifndef PROFIL_SCRIPT_DESCRIPTION_H
#define PROFIL_SCRIPT_DESCRIPTION_H

#include "script/language.h"

/* A variable or function that the image defines in its dynamic symbols; address 0: it does not. */
struct language_symbol {
	uint64_t address, size;
};

/* Opens a file of the caller's, to be closed by elf_file_close(), with a budget that lets a
 * recording wait for no long. */
bool language_open_file(int fd, struct read_budget *budget, struct elf_file *file);

/* Reads what a variable has in the file. Returns false if it has nothing there. */
bool language_read_variable(const struct elf_file *file, uint64_t address, void *to, size_t size);

/*
 * Appends a code point in UTF-8 at text[used], control characters as "?"; *used grows by up to 4.
 * Where there may be no room for more, appends "..." and returns false.
 */
bool language_put_utf8(char text[static LANGUAGE_TEXT_SIZE], size_t *used, uint32_t c);

/* Appends a text, in UTF-8 or Latin-1, likewise, and a NUL. Returns what is used then. */
size_t language_append(char text[static LANGUAGE_TEXT_SIZE], size_t used, const char *from,
		       bool utf8);

/* Dynamic symbols by which a language is known. Bound: size. */
#define LANGUAGE_SYMBOLS_MAX 8

struct language_description {
	const char *label;
	const char *symbols[LANGUAGE_SYMBOLS_MAX];
	/* Describes the image, if it is this language's. `symbols` are in the order above. */
	void (*find)(struct elf_file *file, const struct language_symbol *symbols,
		     struct language_image *image);
	/* As language_name(), language_trim() and language_line(). */
	void (*name)(const struct language_code *code, char *name, char *file);
	void (*trim)(struct language_code *code);
	/* NULL: instructions are counted by their lines. */
	uint32_t (*line)(const struct language_code *code, uint32_t instruction);
	/* Writes the interpreter's name and version, whether it is known or not; may be NULL. */
	void (*version)(const struct elf_file *file, const struct language_symbol *symbols,
			char text[static LANGUAGE_VERSION_SIZE]);
	struct interpreter interpreter;
};

#define LANGUAGE_DECLARATION(number, name) extern const struct language_description language_##name;
LANGUAGE_LIST(LANGUAGE_DECLARATION)
#undef LANGUAGE_DECLARATION

#endif
