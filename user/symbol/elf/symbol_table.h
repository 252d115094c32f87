/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_SYMBOL_TABLE_H
#define PROFIL_SYMBOL_SYMBOL_TABLE_H

#include "symbol/batch.h"
#include "symbol/cover.h"
#include "symbol/elf_file.h"

/*
 * Offers the symbols of an ELF file's table of this type (SHT_SYMTAB, SHT_DYNSYM) to the cover, at
 * their ELF virtual addresses, and adds the number of functions to *functions. The names are valid
 * as long as elf. Returns 0, also if there is no such table, or it is corrupt (sets b->why), or
 * -ENOMEM.
 */
int symbol_table_offer(struct batch *b, struct cover *c, Elf *elf, GElf_Word type,
		       size_t *functions);

#endif
