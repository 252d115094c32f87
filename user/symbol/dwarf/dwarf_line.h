/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DWARF_LINE_H
#define PROFIL_SYMBOL_DWARF_LINE_H

#include "profile/profile.h"
#include "symbol/dwarf/dwarf_unit.h"

/* A unit's table of source lines in .debug_line: its files, and the program that makes lines. */
struct dwarf_lines {
	const struct dwarf_unit *unit; /* NULL: none is open */
	struct profile *p;	       /* owns the files' names */

	/* private to dwarf_line.c */
	unsigned int version, offset_size;
	unsigned int instruction_size, line_range, opcode_base;
	int line_base;
	uint8_t operands[256]; /* of standard opcodes */
	uint64_t program, limit;
	struct dwarf_text *directories;
	size_t directory_count, directory_room;
	struct dwarf_source {
		struct dwarf_text name;
		uint64_t directory;
		const char *path; /* NULL: not made yet */
	} * sources;
	size_t source_count, source_room;
	bool moved; /* a name was read: up to DWARF 4 they stand in the section of the program */
};

struct dwarf_row {
	uint64_t address;
	uint64_t file;
	uint32_t line, column;
};

/* Told of a row, which holds from its address up to limit. Returns 0 or an error that ends it. */
typedef int dwarf_row_told(void *context, const struct dwarf_row *row, uint64_t limit);

/*
 * Reads the names of the files. unit must stay as long as the table is open. Returns 0, -EINVAL
 * when there is no table or a corrupt one, or -ENOMEM; then it is closed.
 */
int dwarf_lines_open(struct dwarf_lines *t, const struct dwarf_unit *unit, struct profile *p);
void dwarf_lines_close(struct dwarf_lines *t);

/* Tells all rows. Returns 0, -EINVAL when the program is corrupt, or what `tell` returned. */
int dwarf_lines_run(struct dwarf_lines *t, dwarf_row_told *tell, void *context);

/* The whole path of a file by its number, as a string of p's; *path is NULL when not known. */
int dwarf_lines_file(struct dwarf_lines *t, uint64_t number, const char **path);

#endif
