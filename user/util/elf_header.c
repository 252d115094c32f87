// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/elf_header.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

/* The bytes of a structure in the file. */
struct part {
	const uint8_t *bytes;
	size_t size;
	bool wide, big_endian;
};

static uint64_t number_at(const struct part *p, size_t at, size_t size)
{
	uint64_t value = 0;

	if (at > p->size || size > p->size - at)
		return 0;
	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)p->bytes[at + i] << 8 * (p->big_endian ? size - 1 - i : i);
	return value;
}

/* A member of Elf64_TYPE or Elf32_TYPE. */
#define FIELD(p, type, member)                                      \
	((p)->wide ? number_at(p, offsetof(Elf64_##type, member),   \
			       sizeof(((Elf64_##type *)0)->member)) \
		   : number_at(p, offsetof(Elf32_##type, member),   \
			       sizeof(((Elf32_##type *)0)->member)))

static struct part part_of(const struct elf_header *h, const void *bytes, size_t size)
{
	return (struct part){ bytes, size, h->wide, h->big_endian };
}

bool elf_header_read(struct elf_header *h, const void *bytes, size_t size)
{
	struct part p = { .bytes = bytes, .size = size };

	*h = (struct elf_header){ 0 };
	if (size < SELFMAG || memcmp(bytes, ELFMAG, SELFMAG) != 0)
		return false;
	h->class = number_at(&p, EI_CLASS, 1);
	h->data = number_at(&p, EI_DATA, 1);
	h->wide = p.wide = h->class == ELFCLASS64;
	h->big_endian = p.big_endian = h->data == ELFDATA2MSB;
	h->type = FIELD(&p, Ehdr, e_type);
	h->machine = FIELD(&p, Ehdr, e_machine);
	h->segments = FIELD(&p, Ehdr, e_phoff);
	h->segment_size = FIELD(&p, Ehdr, e_phentsize);
	h->segment_count = FIELD(&p, Ehdr, e_phnum);
	h->sections = FIELD(&p, Ehdr, e_shoff);
	h->section_count = FIELD(&p, Ehdr, e_shnum);
	h->names = FIELD(&p, Ehdr, e_shstrndx);
	return true;
}

size_t elf_header_size(const struct elf_header *h)
{
	return h->wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
}

size_t elf_segment_size(const struct elf_header *h)
{
	return h->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
}

size_t elf_section_size(const struct elf_header *h)
{
	return h->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
}

struct elf_segment elf_segment_read(const struct elf_header *h, const void *bytes, size_t size)
{
	struct part p = part_of(h, bytes, size);

	return (struct elf_segment){
		.type = FIELD(&p, Phdr, p_type),
		.flags = FIELD(&p, Phdr, p_flags),
		.offset = FIELD(&p, Phdr, p_offset),
		.size = FIELD(&p, Phdr, p_filesz),
		.address = FIELD(&p, Phdr, p_vaddr),
		.align = FIELD(&p, Phdr, p_align),
	};
}

void elf_section_read(const struct elf_header *h, const void *bytes, size_t size, uint64_t *offset,
		      uint64_t *section_size)
{
	struct part p = part_of(h, bytes, size);

	*offset = FIELD(&p, Shdr, sh_offset);
	*section_size = FIELD(&p, Shdr, sh_size);
}

const uint8_t *elf_find_build_id(const struct elf_header *h, const void *notes, size_t size,
				 uint64_t align, size_t *id_size)
{
	const uint64_t unit = align == 8 ? 8 : 4;
	uint64_t at = 0;

	/* Sums of these 32-bit sizes do not overflow. */
	while (at <= size && size - at >= sizeof(Elf32_Nhdr)) {
		struct part p = part_of(h, (const uint8_t *)notes + at, size - at);
		uint64_t name_size = number_at(&p, offsetof(Elf32_Nhdr, n_namesz), 4);
		uint64_t content_size = number_at(&p, offsetof(Elf32_Nhdr, n_descsz), 4);
		uint64_t type = number_at(&p, offsetof(Elf32_Nhdr, n_type), 4);
		uint64_t name = at + sizeof(Elf32_Nhdr);
		uint64_t content = (name + name_size + unit - 1) & -unit;

		if (content > size || content_size > size - content)
			return NULL;
		if (type == NT_GNU_BUILD_ID && content_size && name_size == sizeof(ELF_NOTE_GNU) &&
		    memcmp((const uint8_t *)notes + name, ELF_NOTE_GNU, name_size) == 0) {
			*id_size = content_size;
			return (const uint8_t *)notes + content;
		}
		at = (content + content_size + unit - 1) & -unit;
	}
	return NULL;
}

size_t elf_read_build_id(int fd, uint8_t *id, size_t most)
{
	uint8_t bytes[4096];
	ssize_t size = pread(fd, bytes, sizeof(bytes), 0);
	struct elf_header h;
	size_t found = 0;

	if (size < 0 || !elf_header_read(&h, bytes, size))
		return 0;
	for (size_t i = 0; i < h.segment_count && !found; i++) {
		uint64_t at = h.segments + i * elf_segment_size(&h);
		const uint8_t *note = NULL;
		struct elf_segment s;

		if (h.segments > (size_t)size || at > (size_t)size)
			break;
		s = elf_segment_read(&h, bytes + at, size - at);
		if (s.type == PT_NOTE && s.offset <= (size_t)size && s.size <= size - s.offset)
			note = elf_find_build_id(&h, bytes + s.offset, s.size, s.align, &found);
		if (found > most)
			return 0;
		if (note)
			memcpy(id, note, found);
	}
	return found;
}

unsigned int elf_bits(int fd)
{
	uint8_t ident[EI_CLASS + 1];
	struct elf_header h;

	if (fd < 0 || pread(fd, ident, sizeof(ident), 0) != sizeof(ident) ||
	    !elf_header_read(&h, ident, sizeof(ident)))
		return 0;
	return h.class == ELFCLASS32 ? 32 : 64;
}
