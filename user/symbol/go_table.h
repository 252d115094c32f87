/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_GO_TABLE_H
#define PROFIL_SYMBOL_GO_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/batch.h"
#include "symbol/cover.h"
#include "symbol/elf_file.h"
#include "symbol/section.h"

/*
 * The table by which Go's runtime finds the function, the file and the line of an address, and the
 * caller on the stack (.gopclntab), which every Go program has, stripped or not. It names Go's
 * functions as Go itself does, not those of C. The layouts are those of Go's runtime/symtab.go and
 * cmd/link.
 */
enum go_layout {
	GO_1_2,	 /* up to 1.15 */
	GO_1_16, /* and 1.17 */
	GO_1_18, /* and 1.19 */
	GO_1_20, /* and later */
};

/* Parts of the table: those that the header has, in its order and the table's; and others. */
enum go_part {
	GO_NAMES,
	GO_UNITS,
	GO_FILES,
	GO_PROGRAMS,
	GO_INFOS,
	GO_HEADER_PARTS,
	GO_INDEX = GO_HEADER_PARTS,
	GO_CALLS, /* inlined calls, and what follows in memory */
	GO_PARTS
};

struct go_table {
	uint64_t start, limit; /* ELF virtual addresses of Go's code; both 0: no table */
	/*
	 * Bound: files: a table of Go that cannot be used; then: code has no names; seen: as code
	 * without symbols, with the reason.
	 */
	bool is_unreadable; /* the program is Go's, but its table cannot be used: why says why */
	struct error why;

	/* private to go_table.c */
	const struct elf_file *file;
	enum go_layout layout;
	uint64_t address, size; /* of the table */
	unsigned int pointer, quantum;
	uint64_t text;	    /* what functions' offsets are relative to; 0: they are addresses */
	uint64_t count;	    /* of functions */
	unsigned int field; /* the size of each of the two numbers of an index entry */
	uint64_t last;	    /* the entry that was found last */
	struct dwarf_section parts[GO_PARTS]; /* Go before 1.16: names and infos are all of it */
	uint64_t calls_address;		      /* 0: unknown */
	uint64_t work_left;		      /* bytes that may be read repeatedly */
	size_t frames_left;		      /* lines that may be set */
	char **copies;			      /* of names, for the cover */
	size_t copy_count, copy_room, copy_bytes;
};

/*
 * Opens the table of a file, which stays open. lines: it is also asked for lines. Without a table,
 * or one of unknown layout, it has no code. To be closed in any case.
 */
void go_table_open(struct go_table *t, const struct elf_file *file, bool lines);
void go_table_close(struct go_table *t);

/*
 * Offers the functions of the batch's addresses, which are sorted, to the cover; the names are
 * valid as long as the table is open. Sets *all to whether each address is in one. Returns 0 or
 * -ENOMEM.
 */
int go_table_offer(struct go_table *t, struct batch *b, struct cover *c, bool *all);

/*
 * Sets the source lines and inlined functions of the batch's addresses that have no line, as
 * dwarf_resolve() does. Returns 0 or -ENOMEM.
 */
int go_table_lines(struct go_table *t, struct batch *b);

/* Code of one function where its stack frame has the same size. */
struct go_frame {
	uint64_t start, limit; /* ELF virtual addresses */
	int32_t size;	       /* in bytes, without the return address that a call pushes */
	bool is_first;	       /* of its function */
	bool is_outermost;     /* the function has no caller */
	const char *name;      /* the function's; NULL: unknown, or a wrapper that calls it */
};

/* Valid during the call. Returns 0, or a negative errno, which ends the listing. */
typedef int go_frame_found(void *context, const struct go_frame *frame);

/* Lists all frames, by ascending address. Returns 0, or what `found` returned. */
int go_table_frames(struct go_table *t, go_frame_found *found, void *context);

#endif
