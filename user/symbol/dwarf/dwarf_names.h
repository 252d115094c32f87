/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DWARF_NAMES_H
#define PROFIL_SYMBOL_DWARF_NAMES_H

#include "profile/profile.h"
#include "symbol/dwarf/dwarf_line.h"
#include "symbol/dwarf/dwarf_unit.h"
#include "util/index.h"

/*
 * The functions that entries of .debug_info are of: their names, files and lines. They are noted
 * first, and then found out all together, from front to back in each section: entries refer to
 * others anywhere, and a section that is compressed is best read once.
 *
 * Reading happens in two passes. dwarf_names_read() takes what is in the unit at hand, which is
 * most, while that is in memory, for to come back later may mean to read and inflate it again.
 * dwarf_names_resolve() takes what is in other units, and all strings, when it is known which are
 * wanted, and so in the order in which they stand: each section is then gone through once.
 */
struct dwarf_function {
	const char *name;	 /* as shown; NULL: not known */
	const char *system_name; /* as in a symbol table, if it has such a name, else as above */
	const char *file;	 /* NULL: not known */
	uint32_t line;		 /* 0: not known */

	/* private to dwarf_names.c */
	struct dwarf_file *where;
	uint64_t entry;
	uint64_t at; /* the entry that is to be read next for it */
	struct dwarf_file *at_file;
	bool pending, done;
	bool qualified; /* its name has to tell what it is in, for its linkage name does not */
	struct dwarf_text plain, linkage;
	uint32_t first_scope, scope_count;
};

struct dwarf_names {
	struct profile *p;
	struct dwarf_function *functions;
	size_t count, room;
	struct dwarf_text *scopes; /* names of namespaces and types, outermost first */
	size_t scope_count, scope_room;
	struct index index;
};

/* The number of the function with an entry at this offset. Returns 0 or -ENOMEM. */
int dwarf_names_add(struct dwarf_names *n, struct dwarf_file *file, uint64_t entry, uint32_t *id);

/*
 * Finds out about functions [from, count) what the unit that is just being read tells, when it is
 * small enough to be at hand. lines: its table, which may not be open. Returns 0 or -ENOMEM.
 */
int dwarf_names_read(struct dwarf_names *n, const struct dwarf_unit *unit,
		     const struct dwarf_lines *lines, size_t from);

/*
 * Finds out about functions [from, count), whose files must still be open. What cannot be read
 * stays unknown. Returns 0 or -ENOMEM.
 */
int dwarf_names_resolve(struct dwarf_names *n, size_t from);

/* Forgets which entries functions are of, but not the functions: their file is to be closed. */
void dwarf_names_forget(struct dwarf_names *n);
void dwarf_names_free(struct dwarf_names *n);

#endif
