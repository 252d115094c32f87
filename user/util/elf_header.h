/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_ELF_HEADER_H
#define PROFIL_UTIL_ELF_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Fields of ELF files, of both classes and byte orders, from bytes that the caller has read and
 * does not trust. Nothing is read behind the `size` bytes at `bytes`: a field that is not wholly in
 * them is 0. Numbers are as in the file: offsets and sizes may be beyond its end.
 */
struct elf_header {
	uint8_t class, data; /* of e_ident; may be invalid */
	bool wide;	     /* ELFCLASS64; of all others the fields are those of ELFCLASS32 */
	bool big_endian;     /* ELFDATA2MSB */
	uint16_t type, machine;
	uint64_t segments, sections; /* offsets of the program headers, of the section headers */
	uint16_t segment_size, segment_count, section_count;
	uint16_t names; /* e_shstrndx */
};

/* Returns false, and all is 0, if the bytes do not begin as those of an ELF file. */
bool elf_header_read(struct elf_header *h, const void *bytes, size_t size);

/* The sizes of the class: of the ELF header, of a program header, of a section header. */
size_t elf_header_size(const struct elf_header *h);
size_t elf_segment_size(const struct elf_header *h);
size_t elf_section_size(const struct elf_header *h);

/* A program header. */
struct elf_segment {
	uint32_t type, flags;
	uint64_t offset, size; /* in the file */
	uint64_t address, align;
};

/* Reads a program header at `bytes`. */
struct elf_segment elf_segment_read(const struct elf_header *h, const void *bytes, size_t size);

/* Reads the place of a section in the file from its header at `bytes`. */
void elf_section_read(const struct elf_header *h, const void *bytes, size_t size, uint64_t *offset,
		      uint64_t *section_size);

/*
 * Finds the GNU build ID among the notes of a segment or section with this alignment. Returns where
 * it is in `notes`, and sets *id_size, above 0. NULL: none.
 */
const uint8_t *elf_find_build_id(const struct elf_header *h, const void *notes, size_t size,
				 uint64_t align, size_t *id_size);

/*
 * Reads the GNU build ID of an ELF file, of up to `most` bytes, into id. One read of the first 4
 * KiB, where linkers put the notes. Returns its size; 0: there is none there, it is longer, or the
 * file cannot be read.
 */
size_t elf_read_build_id(int fd, uint8_t *id, size_t most);

/* Returns 32 or 64, by an ELF file's class; 0: it is no ELF file, or cannot be read. */
unsigned int elf_bits(int fd);

#endif
