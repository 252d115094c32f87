/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_SYMBOL_TABLE_H
#define PROFIL_SYMBOL_SYMBOL_TABLE_H

#include "symbol/batch.h"
#include "symbol/cover.h"
#include "symbol/elf_file.h"
#include "symbol/section.h"

/*
 * Reads the symbols of an ELF file's table of this type (SHT_SYMTAB, SHT_DYNSYM) one after the
 * other. The table is read by windows: only its strings are in memory as a whole, because symbols
 * are not in their order.
 */
struct symbol_reader {
	struct dwarf_section table;
	struct dwarf_cursor cursor;
	uint64_t offset; /* in the table: the cursor's end */
	size_t entry;	 /* a symbol's size */
	bool wide;
	const char *strings;
	size_t strings_size; /* up to the last '\0', so that every name ends */
};

/*
 * Opens the table. There are no symbols if there is no table. Returns 0, or -EINVAL (corrupt) or
 * -ENOMEM, and sets e. To be closed in any case.
 */
int symbol_reader_open(struct symbol_reader *r, struct elf_file *file, GElf_Word type,
		       struct error *e);

/*
 * Reads the next symbol, but the first of all, which is none, and those whose name is out of range.
 * The name is valid as long as the file is open. False: there is none, or file's budget is
 * exceeded.
 */
bool symbol_reader_next(struct symbol_reader *r, GElf_Sym *symbol, const char **name);
void symbol_reader_close(struct symbol_reader *r);

/*
 * Offers the symbols of such a table to the cover, at their ELF virtual addresses, but those in b's
 * excluded code, and adds the number of all functions to *functions. The names are valid as long as
 * the file is open. Returns 0, also if there is no such table, or it is corrupt (sets b->why), or
 * -ENOMEM.
 */
int symbol_table_offer(struct batch *b, struct cover *c, struct elf_file *file, GElf_Word type,
		       size_t *functions);

#endif
