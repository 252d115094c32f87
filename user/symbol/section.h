/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_SECTION_H
#define PROFIL_SYMBOL_SECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/elf_file.h"

/*
 * A section with debug information, at any offset, in a window of it: sections of gigabytes are
 * not in memory as a whole. One that is compressed is inflated as far as it is asked for, and is
 * kept whole if there is room for it; else reading from front to back costs one pass, and going
 * back a part of one.
 *
 * A file from an enemy's hand may have its parts read over and over: what is read and what
 * is used of a section is counted, and ends at some times its size.
 */
struct dwarf_section {
	uint64_t size; /* 0: there is none, or it is not to be read */

	/* private to section.c */
	int fd;
	bool big_endian;
	uint64_t at, stored; /* in the file */
	uint64_t used, filled;
	bool failed;	/* to inflate: it is corrupt */
	bool whole;	/* the window is to become all of it */
	uint8_t *bytes; /* the window: bytes from `from` on, `held` of them */
	size_t room, held;
	uint64_t from;
	struct dwarf_inflater *inflater; /* NULL: not compressed */
	uint64_t *room_left;		 /* that it has taken `size` of; NULL: it has not */
};

/*
 * Finds a section by its name, as in ".debug_info" or ".debug_info.dwo". It reads from file->fd,
 * which must stay open. *room is how many bytes of compressed sections may still be kept whole; it
 * must outlive the section, which takes its part and gives it back. NULL: none may be.
 * Returns 0, also when there is no such section (size is 0), -EINVAL (unknown compression or
 * implausible size), -ENOTSUP (compressed with zstd, and there is no libzstd), -EFBIG (with zstd,
 * and there is not the room to keep it), or -ENOMEM.
 */
int dwarf_section_open(struct dwarf_section *s, const struct elf_file *file, const char *name,
		       uint64_t *room);

/* The same for a part of the file that no section header describes, as far as the file goes. */
void dwarf_section_open_at(struct dwarf_section *s, const struct elf_file *file, uint64_t offset,
			   uint64_t size);
void dwarf_section_close(struct dwarf_section *s);

/*
 * Up to `want` bytes from offset on; *got receives how many. They stay where they are until
 * the section is asked again. NULL: the section is not so long, or cannot be read.
 */
const uint8_t *dwarf_section_read(struct dwarf_section *s, uint64_t offset, size_t want,
				  size_t *got);

/* Counts that so many bytes were looked at. Returns false when it is too often. */
bool dwarf_section_use(struct dwarf_section *s, uint64_t bytes);

/* The string at an offset, which stays until the section is asked again; NULL: there is none. */
const char *dwarf_section_string(struct dwarf_section *s, uint64_t offset);

/* A number of `size` bytes. Returns false when the section is not so long, or cannot be read. */
bool dwarf_section_number(struct dwarf_section *s, uint64_t offset, size_t size, uint64_t *number);

/* The same for number `index` of a table that begins at `base`. */
bool dwarf_section_element(struct dwarf_section *s, uint64_t base, uint64_t index, size_t size,
			   uint64_t *number);

/*
 * Reads numbers one behind the other. Behind the end all are 0, and `bad` is set.
 */
struct dwarf_cursor {
	const uint8_t *at, *end;
	bool big_endian;
	bool bad;
};

/* Over up to `want` bytes of a section, as dwarf_section_read(); without bytes, .at is NULL. */
struct dwarf_cursor dwarf_section_cursor(struct dwarf_section *s, uint64_t offset, size_t want);

uint64_t dwarf_number(struct dwarf_cursor *c, size_t size); /* of 1 to 8 bytes */
uint64_t dwarf_uleb(struct dwarf_cursor *c);
int64_t dwarf_sleb(struct dwarf_cursor *c);
void dwarf_skip(struct dwarf_cursor *c, uint64_t bytes);
void dwarf_skip_string(struct dwarf_cursor *c);

/* The length of what follows. *offset_size becomes 4 or 8: the size of offsets in it. */
uint64_t dwarf_length(struct dwarf_cursor *c, unsigned int *offset_size);

#endif
