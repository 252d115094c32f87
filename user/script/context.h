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

/* Whose labels are found by themselves, for people. */
#define CONTEXT_KNOWN "PostgreSQL, PHP, Go and OpenTelemetry"

/* Dynamic symbols by which a program is known. Bound: size. */
#define CONTEXT_SYMBOLS_MAX 4

/* A program whose context is in variables that it exports. */
struct context_program {
	const char *name; /* for people; NULL: all versions have labels */
	struct {
		const char *symbol;
		enum context_label label;
		enum context_kind kind;
		enum context_rule rule;
		unsigned char part;	/* see struct context_variable */
		unsigned short within;	/* the distance of the value in what the symbol is of */
	} variables[CONTEXT_VARIABLES]; /* up to a symbol NULL */
	/* Of these so many, the first, do not change any more once the last one has a value. */
	unsigned short fixed;
	/* Others that it defines, too: up to a NULL. */
	const char *symbols[CONTEXT_SYMBOLS_MAX];
	/*
	 * NULL, or completes the variables, in the order above: sets what differs between versions,
	 * and the kind of what is not known of this one to CONTEXT_NONE. size: of the first symbol.
	 */
	void (*complete)(struct elf_file *file, uint64_t size, struct context_variable *variables);
};

/* Bound: files: bytes of a program's constants, in which its version is; then: it is unknown. */
#define CONTEXT_CONSTANTS_MAX ((size_t)64 << 20)

/*
 * Finds where in the program's constants a version follows the text, and reads it: up to three
 * numbers with points between. Returns how many there are; 0: it is nowhere.
 */
int context_version(const struct elf_file *file, const char *text, unsigned int version[static 3]);

/*
 * Describes the labels of a Go program that sets any. thread_local_size: where the end of its
 * thread-local data is, to which the thread pointer points; 0: it has none. Returns false if it
 * sets some, and it is unknown where its version has them.
 */
bool context_find_go(struct elf_file *file, uint64_t thread_local_size,
		     struct context_image *image);

/*
 * Describes what is to be read of processes that map the image at this path. wishes: NULL: nothing.
 * Else *image is all 0.
 */
void context_find(struct elf_file *file, const char *path, const struct context_wishes *wishes,
		  struct context_image *image);

/*
 * Whether the file is an interpreter, or a program that is known: then call stacks are recorded,
 * even if none were asked for. fd: owned by the caller.
 */
bool context_takes_stacks(int fd);

/* Returns which known program the file is of, if its labels are not read as its version is unknown,
 * else NULL. fd: as above. */
const char *context_unknown_version(int fd);

/* Adds a wish: NAME=[IMAGE:]SYMBOL[:KIND[:LENGTH]]. Returns 0, or a negative errno with e set. */
int context_parse(const char *text, struct context_wishes *wishes, struct error *e);

/* Writes a text of which context_parse() makes this wish. Its size is enough if it is 320 bytes. */
void context_format(const struct context_wish *wish, char *text, size_t size);

#endif
