/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_INFLATE_H
#define PROFIL_SYMBOL_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Unpacks a compressed section from front to back, of zlib, or of zstd where its library is: it is
 * loaded when a section asks for it, for most files do without.
 */
struct dwarf_inflater;

/* Where the compressed bytes stand, and how many bytes they are to be unpacked. */
struct dwarf_packed {
	int fd;
	uint64_t at, stored;
	uint64_t size;
	bool zstd;
};

/*
 * returns: the reader will go back to what it has read. Then places are kept from which unpacking
 * can go on, if it is zlib's; of zstd it begins anew.
 * Returns 0, -ENOTSUP (there is no library for zstd) or -ENOMEM.
 */
int dwarf_inflater_new(struct dwarf_inflater **f, const struct dwarf_packed *packed, bool returns);
void dwarf_inflater_free(struct dwarf_inflater *f); /* NULL is fine */

/* How many bytes have been unpacked up to now. */
uint64_t dwarf_inflater_offset(const struct dwarf_inflater *f);

/* Unpacks the next `size` bytes. Returns how many there are: less when it ends, or is corrupt. */
size_t dwarf_inflate(struct dwarf_inflater *f, uint8_t *to, size_t size);

/*
 * Goes to a place at the offset or before it, from where unpacking goes on. Returns 0, or a
 * negative errno: it cannot.
 */
int dwarf_inflate_seek(struct dwarf_inflater *f, uint64_t offset);

#endif
