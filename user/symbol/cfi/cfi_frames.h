/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_CFI_FRAMES_H
#define PROFIL_SYMBOL_CFI_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/section.h"
#include "symbol/elf_file.h"
#include "util/error.h"

/*
 * The records of an ELF file's call frame information (DWARF 5, 6.4; LSB, Exception Frames): what
 * functions there are (FDEs), and what these have in common (CIEs). Every byte is looked at once:
 * the records of a hostile file cannot overlap, and there is a limit on each section's size and on
 * the records.
 */

/* .eh_frame or .debug_frame, as a whole. */
struct cfi_section {
	struct dwarf_section file;
	const uint8_t *bytes;
	size_t size;
	uint64_t address; /* ELF virtual address of its first byte */
	bool eh;	  /* in the form of .eh_frame */
	bool headless;	  /* no section header says where it ends: */
	uint64_t fdes;	  /* it has so many FDEs, or */
	bool terminated;  /* it ends at the first terminator */
};

struct cfi_cie {
	const struct cfi_section *section;
	uint32_t offset; /* within the section */
	uint32_t instructions, size;
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_register;
	uint8_t encoding; /* of addresses */
	uint8_t address_size;
	bool sized;  /* FDEs have augmentation data, after its size */
	bool signal; /* FDEs are of signal frames */
};

struct cfi_fde {
	uint64_t start, limit; /* ELF virtual addresses, within executable segments; never empty */
	uint32_t cie;
	uint32_t instructions, size; /* within the section */
};

struct cfi_frames {
	struct cfi_fde *fdes; /* sorted by start, then as in the file; they may overlap */
	size_t fde_count, fde_room;
	struct cfi_cie *cies;
	size_t cie_count, cie_room;

	/* private to cfi_frames.c */
	struct cfi_section sections[2];
	uint64_t room; /* for compressed sections */
	struct elf_range *code;
	size_t code_count, last_code;
	size_t first_cie; /* of the section being read */
	bool big_endian, wide;
};

/*
 * Reads .eh_frame, which is found without section headers too, and .debug_frame. file must stay
 * open and f stay in place until cfi_frames_free(), which is to be called in any case. Returns 0,
 * also when there are no records, -ENOMEM, or another negative errno and says in e what is wrong.
 */
int cfi_frames_read(struct cfi_frames *f, const struct elf_file *file, struct error *e);
void cfi_frames_free(struct cfi_frames *f);

/* Over some bytes of a section. */
struct dwarf_cursor cfi_cursor(const struct cfi_frames *f, const struct cfi_section *s,
			       uint32_t offset, uint32_t size);

/* Reads an address of an FDE. Returns false: it is coded in a way that no FDE uses. */
bool cfi_address(const struct cfi_cie *cie, struct dwarf_cursor *c, uint64_t *address);

#endif
