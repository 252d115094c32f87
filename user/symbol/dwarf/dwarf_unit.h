/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DWARF_UNIT_H
#define PROFIL_SYMBOL_DWARF_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/section.h"

/*
 * Units, abbreviations and entries of .debug_info, of DWARF 2 to 5.
 *
 * Why this is not libdw (0.188): it unpacks all .debug_* sections before the first question, which
 * takes 626 MB for a single address of Debian's radosgw-admin, whose debug file has 179. This takes
 * 100 for it, 406 for 3,000 addresses all over the program, and 72 for these where there is no room
 * to keep sections whole. And libdw trusts what it reads, so that it would have to run in a process
 * of its own.
 */

/* In the order of the names in dwarf_unit.c. */
enum dwarf_section_kind {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_LINE,
	DWARF_STR,
	DWARF_LINE_STR,
	DWARF_STR_OFFSETS,
	DWARF_ADDR,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_ARANGES,
	DWARF_SECTIONS
};

/* The attributes that are of use here. */
enum dwarf_attribute {
	ATTR_SIBLING,
	ATTR_NAME,
	ATTR_LINKAGE_NAME,
	ATTR_LOW_PC,
	ATTR_HIGH_PC,
	ATTR_RANGES,
	ATTR_ORIGIN,
	ATTR_SPECIFICATION,
	ATTR_DECL_FILE,
	ATTR_DECL_LINE,
	ATTR_CALL_FILE,
	ATTR_CALL_LINE,
	ATTR_CALL_COLUMN,
	ATTR_LANGUAGE,
	ATTR_STMT_LIST,
	ATTR_COMP_DIR,
	ATTR_STR_OFFSETS_BASE,
	ATTR_ADDR_BASE,
	ATTR_RANGES_BASE, /* of .debug_rnglists; DWARF 4 with split files: of .debug_ranges */
	ATTR_DWO_NAME,
	ATTR_DWO_ID,
	ATTR_COUNT
};

enum dwarf_class {
	CLASS_OTHER,
	CLASS_ADDRESS,
	CLASS_ADDRESS_INDEX, /* in .debug_addr */
	CLASS_CONSTANT,
	CLASS_OFFSET,	   /* in some section */
	CLASS_LIST_INDEX,  /* in .debug_rnglists */
	CLASS_REFERENCE,   /* offset in .debug_info */
	CLASS_ALTERNATE,   /* offset in .debug_info of the alternate file */
	CLASS_STRING,	   /* offset in the section `strings` */
	CLASS_STRING_INDEX /* in .debug_str_offsets */
};

/* A string by the place where it stands; to be read when all are known, in order. */
struct dwarf_text {
	struct dwarf_section *section; /* NULL: none */
	uint64_t offset;
};

struct dwarf_value {
	enum dwarf_class class;
	uint64_t number;
	struct dwarf_section *strings; /* CLASS_STRING */
};

/* A file with debug information; zero-initialised, with its elf_file and room, to
 * dwarf_file_open(). */
struct dwarf_file {
	struct elf_file elf;
	bool owned;	/* dwarf_file_close() closes it */
	bool split;	/* .dwo or .dwp: sections are named so */
	uint64_t *room; /* to keep sections whole, as for dwarf_section_open() */
	/*
	 * What the linker has left out, as --gc-sections does, still has its lines and functions:
	 * they begin at 0 or 1, below all code, and may be longer than what is below it.
	 */
	uint64_t code_start;
	struct dwarf_section sections[DWARF_SECTIONS];
	struct dwarf_file *alternate;	   /* of dwz; NULL: none */
	const struct dwarf_unit *skeleton; /* of a split file's unit, in the main file */
	/* Of a .dwp: where the unit's part of each section begins. */
	uint64_t part[DWARF_SECTIONS];

	/* private to dwarf_entry.c */
	struct dwarf_abbreviations *abbreviations; /* those used last */

	/* private to dwarf_unit.c */
	struct dwarf_span {
		uint64_t offset, limit;
	} * spans; /* of the units that are known, in order */
	size_t span_count, span_room;
	bool all_known;
};

struct dwarf_unit {
	struct dwarf_file *file;
	uint64_t offset, limit; /* in .debug_info, with its header */
	uint64_t first;		/* its first entry */
	uint64_t abbreviations;
	unsigned int version, offset_size, address_size, type;
	uint64_t id; /* of a skeleton or split unit; 0: none */
	unsigned int tag, language;
	uint64_t low_pc;
	uint64_t str_offsets_base, addr_base, ranges_base;
	bool has_lines;
	uint64_t lines; /* in .debug_line */
	struct dwarf_value low, high, ranges;
	struct dwarf_text name, directory, dwo_name;
};

struct dwarf_die {
	uint64_t offset, next; /* `next`: what follows, its first child if it has any */
	unsigned int tag;      /* 0: the end of a list of children */
	bool children;
	uint32_t have; /* bits by enum dwarf_attribute */
	struct dwarf_value values[ATTR_COUNT];
};

/* Returns 0, or an error as dwarf_section_open(). Close it in any case. */
int dwarf_file_open(struct dwarf_file *file);
void dwarf_file_close(struct dwarf_file *file);

/*
 * The unit whose header is at this offset, with what its own entry says. Returns 0, -EINVAL for
 * one that is corrupt or of another version, or -ENOMEM.
 */
int dwarf_unit_read(struct dwarf_file *file, uint64_t offset, struct dwarf_unit *unit);

/* Whether it is so small that all of it can be held. */
bool dwarf_unit_is_small(const struct dwarf_unit *unit);

/* Has a small unit at hand, until another part of .debug_info is read: entries refer to others. */
void dwarf_unit_hold(const struct dwarf_unit *unit);

/*
 * The unit that holds an entry: one that dwarf_note_unit() was told of, else all headers are read.
 * Returns 0, -EINVAL when there is none, or -ENOMEM.
 */
int dwarf_unit_of(struct dwarf_file *file, uint64_t entry, uint64_t *unit);

/* Told in the order in which they stand. Returns 0 or -ENOMEM. */
int dwarf_note_unit(const struct dwarf_unit *unit);

/*
 * Reads all units, the corrupt ones left out, and notes them. tell (may be NULL) is told of each,
 * and returns 0 or an error that ends it. Returns that, 0 or -ENOMEM.
 */
int dwarf_find_units(struct dwarf_file *file,
		     int (*tell)(void *context, const struct dwarf_unit *unit), void *context);

enum dwarf_wanted {
	DWARF_ENTRY,		/* the entry, with all values */
	DWARF_CODE,		/* functions, on the way through a unit */
	DWARF_CODE_OF_FUNCTION, /* the same, inside of a function */
};

/*
 * Reads an entry. Where code is wanted, values are read of those alone whose tag is of use, and
 * what is below some is left out: `next` is then their sibling. Returns 0, -EINVAL or -ENOMEM.
 */
int dwarf_die_read(const struct dwarf_unit *unit, uint64_t offset, enum dwarf_wanted wanted,
		   struct dwarf_die *die);

/* Frees what reading entries leaves in the file. */
void dwarf_forget_abbreviations(struct dwarf_file *file);

static inline bool dwarf_has(const struct dwarf_die *die, enum dwarf_attribute attribute)
{
	return die->have >> attribute & 1;
}

/* CLASS_OTHER: there is none. */
static inline struct dwarf_value dwarf_value(const struct dwarf_die *die,
					     enum dwarf_attribute attribute)
{
	return dwarf_has(die, attribute) ? die->values[attribute] : (struct dwarf_value){ 0 };
}

/* Its value, or 0 when there is none that is a constant. */
uint64_t dwarf_constant(const struct dwarf_die *die, enum dwarf_attribute attribute);

/* Where a string stands; .section is NULL when there is none. */
struct dwarf_text dwarf_text(const struct dwarf_unit *unit, const struct dwarf_value *value);

static inline struct dwarf_text dwarf_text_of(const struct dwarf_unit *unit,
					      const struct dwarf_die *die,
					      enum dwarf_attribute attribute)
{
	struct dwarf_value value = dwarf_value(die, attribute);

	return dwarf_text(unit, &value);
}

/* Address number `index` in .debug_addr. */
bool dwarf_address(const struct dwarf_unit *unit, uint64_t index, uint64_t *address);

#endif
