/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DWARF_NAMES_H
#define PROFIL_SYMBOL_DWARF_NAMES_H

#include "profile/profile.h"
#include "symbol/dwarf/dwarf_line.h"
#include "symbol/dwarf/dwarf_unit.h"
#include "util/table.h"

/*
 * Names, files and lines of functions, given their entries in .debug_info. Functions are added
 * first, then read together in the order of each section: an entry may refer to any other, and a
 * compressed section is best read once.
 *
 * They are read in two passes. dwarf_names_read() reads what is in the current unit, which is most,
 * while that is in memory. dwarf_names_resolve() reads the rest, in other units, and all strings,
 * in the order of the file, so that each section is read once.
 */
struct dwarf_function {
	/* private to dwarf_names.c, the key: */
	struct dwarf_file *where;
	uint64_t entry;

	const char *name;	 /* as shown; NULL: unknown */
	const char *system_name; /* the linkage name; without one, as above */
	const char *file;	 /* NULL: unknown */
	uint32_t line;		 /* 0: unknown */

	/* private to dwarf_names.c */
	uint64_t at; /* the entry to be read next */
	struct dwarf_file *at_file;
	bool pending, done;
	bool qualified; /* needs its scopes in the name, for lack of a linkage name */
	struct dwarf_text plain, linkage;
	uint32_t first_scope, scope_count;
};

struct dwarf_names {
	struct profile *p;
	TABLE(struct dwarf_function) functions;
	struct dwarf_text *scopes; /* names of namespaces and types, outermost first */
	size_t scope_count, scope_room;
};

/* Adds the function of an entry, unless it is known; sets its number. Returns 0 or -ENOMEM. */
int dwarf_names_add(struct dwarf_names *n, struct dwarf_file *file, uint64_t entry, uint32_t *id);

/*
 * Reads what a unit, if it is small, says about functions [from, count). lines: its line table,
 * open or not. Returns 0 or -ENOMEM.
 */
int dwarf_names_read(struct dwarf_names *n, const struct dwarf_unit *unit,
		     const struct dwarf_lines *lines, size_t from);

/*
 * Reads the rest of functions [from, count), whose files must still be open. What cannot be read
 * stays unknown. Returns 0 or -ENOMEM.
 */
int dwarf_names_resolve(struct dwarf_names *n, size_t from);

/* Forgets the entries of functions, but not the functions: call it before closing their file. */
void dwarf_names_forget(struct dwarf_names *n);
void dwarf_names_free(struct dwarf_names *n);

#endif
