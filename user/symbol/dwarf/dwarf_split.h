/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DWARF_SPLIT_H
#define PROFIL_SYMBOL_DWARF_SPLIT_H

#include "symbol/dwarf/dwarf_unit.h"

/* Debug information in further files. */

/*
 * Opens file->alternate: the file to which dwz(1) has moved what several files have in common. It
 * is found by build ID under /usr/lib/debug, else by the name in .gnu_debugaltlink, and must have
 * the build ID there. root: as for debug_file_find(). Returns 0, also if the file has no link,
 * -ENOENT (not found), or an error of dwarf_section_open().
 */
int dwarf_open_alternate(struct dwarf_file *file, int root);

/*
 * Opens the split unit of a skeleton unit: in IMAGE.dwp, else in the .dwo file that the skeleton
 * names, else in a file of that name next to the image. It must have the same ID. image: its path;
 * root: as above. Returns 0, and the caller closes *file; or -ENOENT (not found), or an error of
 * dwarf_section_open().
 */
int dwarf_open_split(const struct dwarf_unit *skeleton, int root, const char *image,
		     struct dwarf_file *file, struct dwarf_unit *unit);

#endif
