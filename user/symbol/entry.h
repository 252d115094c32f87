/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_ENTRY_H
#define PROFIL_SYMBOL_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

/* Where a function begins, and the instructions that end it: offsets in the file. */
struct symbol_entry {
	uint64_t offset, *returns; /* `max` of them at most; NULL: they are not asked for */
	size_t count, max;
};

/*
 * Finds a function, by the symbols of the ELF file or of its debug file. fd: the open file, which
 * stays open; root, path: as for debug_file_find(). The name is that of the symbol, or as it is
 * shown, with or without parameters. Of what ends it, jumps to other functions are known, but not
 * those through pointers, unless nothing else ends it. Returns 0, or a negative errno with e set:
 * it is not there, there are several, or its code is not understood.
 */
int symbol_find_entry(int fd, int root, const char *path, const char *function,
		      struct symbol_entry *entry, struct error *e);

#endif
