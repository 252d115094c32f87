/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DWARF_H
#define PROFIL_SYMBOL_DWARF_H

#include "symbol/batch.h"
#include "symbol/elf_file.h"

/*
 * Gives the batch's addresses, which are the ELF file's own and sorted, their source lines and the
 * functions that are inlined there. An address that has a function keeps its name; one that has
 * none gets it from here. What DWARF does not know stays as it is; when that is because it is
 * corrupt, the profile is warned. Returns 0 or -ENOMEM.
 *
 * elf: the file with the debug information, not of the kernel; root as for debug_file_find().
 * image: the path of the program, beside which split debug files may be.
 *
 * This is a reader of our own that takes nothing on trust, so that it needs no process of its own:
 * every offset is checked against its section, nothing recurses, memory does not follow what a
 * header claims, and the work is bounded by some times the sections' size (dwarf_section.h). A
 * file that is truncated meanwhile, or changed, is a corrupt one, for it is read and not mapped.
 */
int dwarf_resolve(struct batch *b, const struct elf_file *elf, int root, const char *image);

/* Whether there is any. */
bool dwarf_is_in(const struct elf_file *elf);

#endif
