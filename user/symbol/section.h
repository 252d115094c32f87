/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_SECTION_H
#define PROFIL_SYMBOL_SECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/elf_file.h"

/*
 * A section with debug information, which may have gigabytes: a window of it is in memory. A
 * compressed section is inflated as far as it is read. It is kept whole if there is room; else
 * reading from front to back takes one pass, and seeking backwards part of a pass.
 *
 * Malicious files can make a reader visit a section again and again, so each section has budgets
 * for the bytes read and the bytes used: a multiple of its size.
 */
struct dwarf_section {
	uint64_t size; /* 0: no section, or it cannot be read */

	/* private to section.c */
	struct elf_source source;
	bool big_endian;
	uint64_t at, stored;   /* offset and size in the file */
	uint64_t used, filled; /* of the budgets */
	/* Bound: files: a section that could not be decompressed; then: nothing is read of it. */
	bool failed;	/* corrupt: inflating failed */
	bool whole;	/* the window grows to the whole section */
	uint8_t *bytes; /* the window: `held` bytes from offset `from` on */
	size_t room, held;
	uint64_t from;
	struct dwarf_inflater *inflater; /* NULL: not compressed */
	uint64_t *room_left;		 /* the section has taken `size` of it; NULL: it has not */
};

/*
 * Opens the section `name`: ".debug_info", ".debug_info.dwo". The caller keeps the file open while
 * the section is open. *room: how many bytes of compressed sections may still be kept whole; the
 * section takes its part and returns it when closed. room NULL: none may. Returns 0, also if there
 * is no such section (size is 0), -EINVAL (unknown compression or implausible size), -ENOTSUP
 * (compressed with zstd, but libzstd is missing), -EFBIG (compressed with zstd, but there is no
 * room to keep it) or -ENOMEM.
 */
int dwarf_section_open(struct dwarf_section *s, const struct elf_file *file, const char *name,
		       uint64_t *room);

/* The same for a part of the file without a section header, up to the end of the file. */
void dwarf_section_open_at(struct dwarf_section *s, const struct elf_file *file, uint64_t offset,
			   uint64_t size);
void dwarf_section_close(struct dwarf_section *s);

/*
 * Returns up to `want` bytes at an offset, valid until the next call for this section, and sets
 * *got to their number. NULL: the offset is outside the section, or the section cannot be read.
 */
const uint8_t *dwarf_section_read(struct dwarf_section *s, uint64_t offset, size_t want,
				  size_t *got);

/* Takes bytes from the section's budget for bytes used. False: the budget is exhausted. */
bool dwarf_section_use(struct dwarf_section *s, uint64_t bytes);

/* The string at an offset, valid until the next call for this section; NULL: none. */
const char *dwarf_section_string(struct dwarf_section *s, uint64_t offset);

/* Reads a number of `size` bytes. False: it is not in the section, or cannot be read. */
bool dwarf_section_number(struct dwarf_section *s, uint64_t offset, size_t size, uint64_t *number);

/* The same for number `index` of a table at offset `base`. */
bool dwarf_section_element(struct dwarf_section *s, uint64_t base, uint64_t index, size_t size,
			   uint64_t *number);

/* Reads one number after the other. At the end it reads 0 and sets `bad`. */
struct dwarf_cursor {
	const uint8_t *at, *end;
	bool big_endian;
	bool bad;
};

/* A cursor over the bytes of dwarf_section_read(); without bytes, it is bad and .at is NULL. */
struct dwarf_cursor dwarf_section_cursor(struct dwarf_section *s, uint64_t offset, size_t want);

uint64_t dwarf_number(struct dwarf_cursor *c, size_t size); /* of 1 to 8 bytes */
uint64_t dwarf_uleb(struct dwarf_cursor *c);
int64_t dwarf_sleb(struct dwarf_cursor *c);
void dwarf_skip(struct dwarf_cursor *c, uint64_t bytes);
void dwarf_skip_string(struct dwarf_cursor *c);

/* DWARF's "initial length" of what follows. *offset_size becomes 4 or 8: the size of offsets. */
uint64_t dwarf_length(struct dwarf_cursor *c, unsigned int *offset_size);

#endif
