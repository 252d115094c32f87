/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_EXECUTABLE_H
#define PROFIL_TOOL_EXECUTABLE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/error.h"

/* A program's file, as execve(2) would take it. */
struct executable {
	enum executable_kind {
		EXECUTABLE_ELF,
		EXECUTABLE_SCRIPT, /* begins with #! */
		EXECUTABLE_OTHER,
		EXECUTABLE_UNREADABLE,
	} kind;
	char path[PATH_MAX];
	char interpreter[PATH_MAX]; /* of a script; the loader of an ELF file, "": it has none */
	unsigned char class;	    /* of an ELF file: ELFCLASS32, ELFCLASS64 */
	uint16_t machine;	    /* EM_X86_64 and the like */
	/* Running it adds privileges: secure-execution mode, see ld.so(8). */
	bool privileged;
};

/* Finds the file that execvp(3) would run. */
int executable_find(const char *name, char path[PATH_MAX], struct error *e);

/* Fills in *x. An unreadable file is a kind, not an error. */
int executable_read(const char *path, struct executable *x, struct error *e);

/*
 * The same for the file that has the loader: a script's is that of its interpreter. It is an error
 * when the interpreter or the loader does not exist.
 */
int executable_read_program(const char *path, struct executable *x, struct error *e);

/*
 * Whether the command runs scripts by an interpreter that is_interpreter() knows by its file: as
 * the program or a library of it, behind "#!", or behind env(1), nice(1) and their like.
 */
bool executable_runs_scripts(char *const *command, bool (*is_interpreter)(int fd));

#endif
