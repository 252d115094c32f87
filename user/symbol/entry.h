/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_ENTRY_H
#define PROFIL_SYMBOL_ENTRY_H

#include <stdint.h>

#include "util/error.h"

/*
 * Sets *offset to that in an ELF file at which a function begins, by the symbols of the file or of
 * its debug file. fd: the open file, which stays open; root, path: as for debug_file_find(). The
 * name is that of the symbol, or as it is shown, with or without parameters. Returns 0, or a
 * negative errno with e set: it is not there, or there are several.
 */
int symbol_find_entry(int fd, int root, const char *path, const char *function, uint64_t *offset,
		      struct error *e);

#endif
