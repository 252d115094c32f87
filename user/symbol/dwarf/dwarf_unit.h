/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DWARF_UNIT_H
#define PROFIL_SYMBOL_DWARF_UNIT_H

#include <dwarf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/section.h"

/*
 * Units, abbreviations and entries of .debug_info, of DWARF 2 to 5.
 *
 * Why this is not libdw (0.188): libdw decompresses all .debug_* sections when it opens a file,
 * which takes 626 MB for a single address of Debian's radosgw-admin, with a debug file of 179 MB.
 * This reader takes 100 MB; for 3,000 addresses all over the program 406 MB, or 72 MB where there
 * is no room to keep sections whole. And libdw trusts what it reads, so that it would need a
 * process of its own.
 */

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

/* The attributes used. */
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

/* Where a string is. Strings are read later, in the order of the file. */
struct dwarf_text {
	struct dwarf_section *section; /* NULL: none */
	uint64_t offset;
};

struct dwarf_value {
	enum dwarf_class class;
	uint64_t number;
	struct dwarf_section *strings; /* CLASS_STRING */
};

/* The attributes of an entry that say where its code is, of CLASS_OTHER if missing. */
struct dwarf_code {
	struct dwarf_value low, high, ranges;
};

/* A file with debug information. Set elf, owned, split and room for dwarf_file_open(). */
struct dwarf_file {
	struct elf_file elf;
	bool owned;	/* dwarf_file_close() closes elf */
	bool split;	/* .dwo or .dwp: section names end with ".dwo" */
	uint64_t *room; /* as for dwarf_section_open() */
	/*
	 * The lowest address of code. Functions that the linker has dropped (--gc-sections) still
	 * have lines and entries, which start below it, at 0 or 1, but may reach into code.
	 */
	uint64_t code_start;
	struct dwarf_section sections[DWARF_SECTIONS];
	struct dwarf_file *alternate;	   /* dwz(1)'s file; NULL: none */
	const struct dwarf_unit *skeleton; /* of a split file: its unit in the main file */
	uint64_t part[DWARF_SECTIONS]; /* of a .dwp: where the unit's part of a section begins */

	/* private to dwarf_unit.c */
	struct dwarf_abbreviations *abbreviations; /* used last */
	struct dwarf_span {
		uint64_t offset, limit;
	} * spans; /* the known units, sorted */
	size_t span_count, span_room;
	bool all_known;
};

struct dwarf_unit {
	struct dwarf_file *file;
	uint64_t offset, limit; /* in .debug_info, including the header */
	uint64_t first;		/* offset of its first entry */
	uint64_t abbreviations;
	unsigned int version, offset_size, address_size, type;
	uint64_t id; /* of a skeleton or split unit; 0: none */
	unsigned int tag, language;
	uint64_t low_pc;
	uint64_t str_offsets_base, addr_base, ranges_base;
	bool has_lines;
	uint64_t lines; /* offset in .debug_line */
	struct dwarf_code code;
	struct dwarf_text name, directory, dwo_name;
};

struct dwarf_die {
	uint64_t offset, next; /* next: its first child if it has children, else what follows */
	unsigned int tag;      /* 0: the end of a list of children */
	bool children;
	uint32_t have; /* bit mask of enum dwarf_attribute */
	struct dwarf_value values[ATTR_COUNT];
};

/* Returns 0, or an error of dwarf_section_open(). To be closed in any case. */
int dwarf_file_open(struct dwarf_file *file);
void dwarf_file_close(struct dwarf_file *file);

/*
 * Reads the unit at an offset: its header and its first entry. Returns 0, -EINVAL (corrupt, or
 * unsupported version) or -ENOMEM.
 */
int dwarf_unit_read(struct dwarf_file *file, uint64_t offset, struct dwarf_unit *unit);

/* Whether a unit is small enough to keep it in memory as a whole. */
bool dwarf_unit_is_small(const struct dwarf_unit *unit);

/* Reads a small unit into memory: its entries refer to each other. */
void dwarf_unit_load(const struct dwarf_unit *unit);

/*
 * Sets *unit to the offset of the unit around an entry: a unit noted by dwarf_note_unit(), else all
 * unit headers are read. Returns 0, -EINVAL (no such unit) or -ENOMEM.
 */
int dwarf_unit_of(struct dwarf_file *file, uint64_t entry, uint64_t *unit);

/* Notes a unit for dwarf_unit_of(). Units must be noted in order. Returns 0 or -ENOMEM. */
int dwarf_note_unit(const struct dwarf_unit *unit);

/*
 * Notes all units and calls visit(), which may be NULL, for each that is not corrupt. visit()
 * returns 0, or an error that ends the reading. Returns 0, that error or -ENOMEM.
 */
int dwarf_find_units(struct dwarf_file *file,
		     int (*visit)(void *context, const struct dwarf_unit *unit), void *context);

/* What an entry is read for. */
enum dwarf_wanted {
	DWARF_ENTRY,		/* all of its values */
	DWARF_CODE,		/* functions: values of other entries may be skipped */
	DWARF_CODE_OF_FUNCTION, /* the same, within a function */
};

/*
 * Reads an entry. If functions are wanted, the children of entries that cannot have any are
 * skipped: die->next is then the sibling. Returns 0, -EINVAL or -ENOMEM.
 */
int dwarf_die_read(const struct dwarf_unit *unit, uint64_t offset, enum dwarf_wanted wanted,
		   struct dwarf_die *die);

static inline bool dwarf_is_function(unsigned int tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
}

static inline bool dwarf_has(const struct dwarf_die *die, enum dwarf_attribute attribute)
{
	return die->have >> attribute & 1;
}

/* The value of an attribute, of CLASS_OTHER if the entry lacks it. */
static inline struct dwarf_value dwarf_value(const struct dwarf_die *die,
					     enum dwarf_attribute attribute)
{
	return dwarf_has(die, attribute) ? die->values[attribute] : (struct dwarf_value){ 0 };
}

static inline struct dwarf_code dwarf_code(const struct dwarf_die *die)
{
	return (struct dwarf_code){ dwarf_value(die, ATTR_LOW_PC), dwarf_value(die, ATTR_HIGH_PC),
				    dwarf_value(die, ATTR_RANGES) };
}

/*
 * Makes die->next the sibling, if the entry says where that is and it is not before the children.
 */
static inline void dwarf_skip_children(struct dwarf_die *die)
{
	if (!dwarf_has(die, ATTR_SIBLING) || die->values[ATTR_SIBLING].number <= die->next)
		return;
	die->next = die->values[ATTR_SIBLING].number;
	die->children = false;
}

/*
 * Reads a value of this form from another section; position: the cursor's offset there. Returns
 * false for a form that is unknown, or takes no bytes.
 */
bool dwarf_read_value(const struct dwarf_unit *unit, uint64_t form, struct dwarf_cursor *c,
		      uint64_t position, struct dwarf_value *v);

/* The value of an attribute that is a constant, else 0. */
uint64_t dwarf_constant(const struct dwarf_die *die, enum dwarf_attribute attribute);

/* Where the string of a value is; .section is NULL if it is not a string. */
struct dwarf_text dwarf_text(const struct dwarf_unit *unit, const struct dwarf_value *value);

static inline struct dwarf_text dwarf_text_of(const struct dwarf_unit *unit,
					      const struct dwarf_die *die,
					      enum dwarf_attribute attribute)
{
	struct dwarf_value value = dwarf_value(die, attribute);

	return dwarf_text(unit, &value);
}

/* Reads address number `index` of .debug_addr. False: it is not in the section. */
bool dwarf_address(const struct dwarf_unit *unit, uint64_t index, uint64_t *address);

#endif
