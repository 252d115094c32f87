/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DWARF_SPLIT_H
#define PROFIL_SYMBOL_DWARF_SPLIT_H

#include "symbol/dwarf/dwarf_unit.h"

/* Debug information that stands in other files than where it is looked for. */

/*
 * The file that dwz(1) has moved to what is the same in several: by its build ID under
 * /usr/lib/debug, else by the name in .gnu_debugaltlink; only one with the build ID there is
 * taken. root as for debug_file_find(). Returns 0, also when none is named, -ENOENT when it is
 * not there, or an error as dwarf_section_open().
 */
int dwarf_open_alternate(struct dwarf_file *file, int root);

/*
 * The unit that a skeleton unit stands for: in IMAGE.dwp, or in the .dwo file that it names, or
 * one of this name beside the image; only one with the same ID is taken. image: its path. Returns
 * 0, -ENOENT when it is not there, or an error as dwarf_section_open(); with 0, close *file.
 */
int dwarf_open_split(const struct dwarf_unit *skeleton, int root, const char *image,
		     struct dwarf_file *file, struct dwarf_unit *unit);

#endif
