/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_INFLATE_H
#define PROFIL_SYMBOL_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/elf_file.h"

/*
 * Decompresses a section from front to back: zlib, or zstd, whose library is loaded when a section
 * needs it.
 */
struct dwarf_inflater;

/* The compressed bytes. */
struct dwarf_packed {
	struct elf_source source;
	uint64_t at, stored; /* offset in the file, and size */
	uint64_t size;	     /* decompressed */
	bool zstd;
};

/*
 * seeks: the reader will seek backwards. Then zlib's state is saved at marks, to continue from
 * there; zstd always restarts at the beginning. Sets *f. Returns 0, -ENOTSUP (no zstd library) or
 * -ENOMEM.
 */
int dwarf_inflater_new(struct dwarf_inflater **f, const struct dwarf_packed *packed, bool seeks);
void dwarf_inflater_free(struct dwarf_inflater *f); /* NULL is fine */

/* The offset in the decompressed section. */
uint64_t dwarf_inflater_offset(const struct dwarf_inflater *f);

/* Decompresses the next `size` bytes. Returns their number, less at the end or if corrupt. */
size_t dwarf_inflate(struct dwarf_inflater *f, uint8_t *to, size_t size);

/* Seeks to the nearest possible offset at or before this one. Returns 0 or a negative errno. */
int dwarf_inflate_seek(struct dwarf_inflater *f, uint64_t offset);

#endif
