/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DWARF_LINE_H
#define PROFIL_SYMBOL_DWARF_LINE_H

#include "profile/profile.h"
#include "symbol/dwarf/dwarf_unit.h"

/* A unit's line table in .debug_line: its files, and the program that generates the rows. */
struct dwarf_lines {
	const struct dwarf_unit *unit; /* NULL: not open */
	struct profile *p;	       /* owns the files' paths */

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
		const char *path; /* NULL: not read yet */
	} * sources;
	size_t source_count, source_room;
	bool moved; /* a name was read: up to DWARF 4 from the program's section */
};

struct dwarf_row {
	uint64_t address;
	uint64_t file;
	uint32_t line, column;
};

/* Called for a row, which covers [row->address, limit). Returns 0, or an error to end the run. */
typedef int dwarf_row_visit(void *context, const struct dwarf_row *row, uint64_t limit);

/*
 * Reads the header of a unit's line table. The caller keeps unit while the table is open. Returns
 * 0, or -EINVAL (no table, or corrupt) or -ENOMEM, and then the table is closed.
 */
int dwarf_lines_open(struct dwarf_lines *t, const struct dwarf_unit *unit, struct profile *p);
void dwarf_lines_close(struct dwarf_lines *t);

/* Calls visit() for all rows. Returns 0, -EINVAL if the program is corrupt, or visit()'s error. */
int dwarf_lines_run(struct dwarf_lines *t, dwarf_row_visit *visit, void *context);

/* Sets *path to the path of a file, owned by p; NULL: unknown. Returns 0 or -ENOMEM. */
int dwarf_lines_file(struct dwarf_lines *t, uint64_t number, const char **path);

#endif
