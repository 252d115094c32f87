/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DWARF_H
#define PROFIL_SYMBOL_DWARF_H

#include "symbol/batch.h"
#include "symbol/elf_file.h"

/*
 * Sets the source lines and inlined functions of a batch's addresses, which are sorted ELF virtual
 * addresses of an image. Functions that have a name keep it; others get it from DWARF. elf: the
 * file with the debug information; root: as for debug_file_find(); image: the program's path, next
 * to which split debug files may be. Addresses that DWARF does not describe stay as they are; if
 * debug information is corrupt or missing, the profile gets a warning. Returns 0 or -ENOMEM.
 *
 * The files are untrusted. They are read by this reader, not libdw, so that it can run in the
 * profiler's own process: it checks every offset against its section, does not recurse, allocates
 * no memory by what a header claims, and spends a budget per section (section.h). Files are read,
 * not mapped: a file that is truncated meanwhile is corrupt, not a SIGBUS.
 */
int dwarf_resolve(struct batch *b, const struct elf_file *elf, int root, const char *image);

/* Whether the file has debug information. */
bool dwarf_is_in(const struct elf_file *elf);

#endif
