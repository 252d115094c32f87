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
 * The records of an ELF file's call frame information (DWARF 5, 6.4; LSB, Exception Frames): one
 * FDE per function, and CIEs with what FDEs have in common. Files are untrusted: each byte is read
 * once, for records cannot overlap, and the size of sections and the number of records are limited.
 */

/* .eh_frame or .debug_frame, as a whole. */
struct cfi_section {
	struct dwarf_section file;
	const uint8_t *bytes;
	size_t size;
	uint64_t address; /* ELF virtual address of its first byte */
	bool eh;	  /* in the format of .eh_frame */
	bool headless;	  /* no section header gives its size: */
	uint64_t fdes;	  /* it ends after that many FDEs; 0: see terminated */
	bool terminated;  /* it ends at the first terminator */
};

struct cfi_cie {
	const struct cfi_section *section;
	uint32_t offset; /* in the section */
	uint32_t instructions, size;
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_register;
	uint8_t encoding; /* of addresses */
	uint8_t address_size;
	bool sized;  /* its FDEs have augmentation data, preceded by its size */
	bool signal; /* its FDEs describe signal frames */
};

struct cfi_fde {
	uint64_t start, limit; /* ELF virtual addresses, in an executable segment; never empty */
	uint32_t cie;
	uint32_t instructions, size; /* in the section */
};

/*
 * Linkers make one or two executable segments.
 * Bound: files: executable segments; then: functions in others are ignored; seen: not seen.
 */
#define CFI_CODE_MAX 64

struct cfi_frames {
	struct cfi_fde *fdes; /* sorted by start, then by position in the file; they may overlap */
	size_t fde_count, fde_room;
	struct cfi_cie *cies;
	size_t cie_count, cie_room;

	/* private to cfi_frames.c */
	struct cfi_section sections[2];
	uint64_t room; /* for compressed sections */
	struct elf_range code[CFI_CODE_MAX];
	size_t code_count, last_code;
	size_t first_cie; /* of the section being read */
	bool big_endian, wide;
};

/*
 * Reads .eh_frame, also of a file without section headers, and .debug_frame. Until
 * cfi_frames_free(), which must be called in any case, the caller keeps the file open and f in
 * place. Returns 0, also if there are no records, or a negative errno, and sets e.
 */
int cfi_frames_read(struct cfi_frames *f, const struct elf_file *file, struct error *e);
void cfi_frames_free(struct cfi_frames *f);

/* A cursor over `size` bytes of a section. */
struct dwarf_cursor cfi_cursor(const struct cfi_frames *f, const struct cfi_section *s,
			       uint32_t offset, uint32_t size);

/* Reads an address of an FDE. False: the encoding is invalid for an FDE. */
bool cfi_address(const struct cfi_cie *cie, struct dwarf_cursor *c, uint64_t *address);

#endif
