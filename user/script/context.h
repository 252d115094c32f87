/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds in images the variables whose values say for whom a thread works (capture/context.h): those
 * that are asked for by name, and those of known programs. Each program has a file of its own,
 * which ends with its description.
 */
#ifndef PROFIL_SCRIPT_CONTEXT_H
#define PROFIL_SCRIPT_CONTEXT_H

#include "capture/context.h"
#include "symbol/elf_file.h"

/* Dynamic symbols by which a program is known. Bound: size. */
#define CONTEXT_SYMBOLS_MAX 4

/* A program whose context is in variables that it exports. */
struct context_program {
	struct {
		const char *symbol;
		enum context_label label;
		enum context_kind kind;
		enum context_rule rule;
	} variables[CONTEXT_VARIABLES]; /* up to a symbol NULL */
	/* Others that it defines, too: up to a NULL. */
	const char *symbols[CONTEXT_SYMBOLS_MAX];
};

/*
 * Describes what is to be read of processes that map the image at this path. wishes: NULL: nothing.
 * Else *image is all 0.
 */
void context_find(struct elf_file *file, const char *path, const struct context_wishes *wishes,
		  struct context_image *image);

/* Whether the file is a program that is known. fd: owned by the caller. */
bool context_is_known(int fd);

/* Adds a wish: NAME=[IMAGE:]SYMBOL[:KIND[:LENGTH]]. Returns 0, or a negative errno with e set. */
int context_parse(const char *text, struct context_wishes *wishes, struct error *e);

#endif
