// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/cfi/cfi_frames.h"

#include <dwarf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/sum.h"

/*
 * The largest browsers have a tenth of each limit.
 * Bound: files: bytes, FDEs and CIEs of call frame information, and of the code that it spans;
 * then: the image has no rows: stacks end in its code; seen: as images without call frame
 * information, with the reason.
 */
#define SECTION_MAX ((uint64_t)128 * 1024 * 1024)
#define FDES_MAX    2000000
#define CIES_MAX    250000
#define SPAN_MAX    ((uint64_t)16 * 1024 * 1024 * 1024)

/*
 * How often the size of a section its records and their rows take in memory, at most.
 * Bound: files: how often its size a section takes in memory; then: less of it is read, or none;
 * seen: as images without call frame information, with the reason.
 */
#define MEMORY_FACTOR 8

struct dwarf_cursor cfi_cursor(const struct cfi_frames *f, const struct cfi_section *s,
			       uint32_t offset, uint32_t size)
{
	return (struct dwarf_cursor){
		.at = s->bytes + offset,
		.end = s->bytes + offset + size,
		.big_endian = f->big_endian,
	};
}

/* Reads a number by the format in an encoding. False: unknown format, or DW_EH_PE_omit. */
static bool read_encoded(struct dwarf_cursor *c, uint8_t encoding, uint8_t address_size,
			 uint64_t *value)
{
	static const uint8_t sizes[8] = {
		[DW_EH_PE_udata2] = 2,
		[DW_EH_PE_udata4] = 4,
		[DW_EH_PE_udata8] = 8,
	};
	uint8_t format = encoding & 0x0f, size = sizes[format & 7];

	if (format == DW_EH_PE_absptr)
		size = address_size;
	if (format == DW_EH_PE_uleb128)
		*value = dwarf_uleb(c);
	else if (format == DW_EH_PE_sleb128)
		*value = dwarf_sleb(c);
	else if (size)
		*value = dwarf_number(c, size);
	else
		return false;
	if (size && format & DW_EH_PE_signed)
		*value = (int64_t)(*value << (64 - 8 * size)) >> (64 - 8 * size);
	return true;
}

/* Reads an address, which may be relative to its place in section s. 0 stays 0: no address. */
static bool read_address(const struct cfi_section *s, struct dwarf_cursor *c, uint8_t encoding,
			 uint8_t address_size, uint64_t *address)
{
	uint64_t at = s->address + (c->at - s->bytes);

	if (!read_encoded(c, encoding, address_size, address) || c->bad)
		return false;
	switch (encoding & 0xf0) {
	case DW_EH_PE_absptr:
		break;
	case DW_EH_PE_pcrel:
		if (*address)
			*address += at;
		break;
	default:
		return false;
	}
	if (address_size == 4)
		*address &= UINT32_MAX;
	return true;
}

bool cfi_address(const struct cfi_cie *cie, struct dwarf_cursor *c, uint64_t *address)
{
	return read_address(cie->section, c, cie->encoding, cie->address_size, address);
}

/* Reads augmentation data by its letters. False: an unknown letter has data of unknown size. */
static bool read_augmentation(struct cfi_cie *cie, struct dwarf_cursor *c, const char *letters)
{
	struct dwarf_cursor data = *c;
	uint64_t unused;

	if (*letters == 'z') {
		uint64_t size = dwarf_uleb(c);

		cie->sized = true;
		data = *c;
		dwarf_skip(c, size);
		data.end = c->at;
		letters++;
	}
	for (; *letters; letters++)
		switch (*letters) {
		case 'P': {
			uint8_t encoding = dwarf_number(&data, 1);

			if (encoding != DW_EH_PE_omit &&
			    ((encoding & 0x70) == DW_EH_PE_aligned ||
			     !read_encoded(&data, encoding, cie->address_size, &unused)))
				return false;
			break;
		}
		case 'L':
			dwarf_skip(&data, 1);
			break;
		case 'R':
			cie->encoding = dwarf_number(&data, 1);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* ARM: return addresses are signed with another key */
		case 'G': /* ARM: the stack has memory tags */
			break;
		default:
			return cie->sized && !data.bad;
		}
	if (!cie->sized)
		*c = data;
	return !data.bad;
}

/* Reads a CIE. Skips one of an unknown format, and so its FDEs. */
static int read_cie(struct cfi_frames *f, const struct cfi_section *s, uint32_t offset,
		    struct dwarf_cursor *c, struct error *e)
{
	struct cfi_cie cie = { .section = s, .offset = offset };
	uint8_t version = dwarf_number(c, 1);
	const char *letters = (const char *)c->at;
	const uint8_t *end = memchr(letters, '\0', c->end - c->at);

	if (!end || (version != 1 && version != 3 && version != 4))
		return 0;
	c->at = end + 1;
	cie.address_size = f->wide ? 8 : 4;
	if (version == 4) {
		cie.address_size = dwarf_number(c, 1);
		if (dwarf_number(c, 1)) /* segments */
			return 0;
	}
	if (cie.address_size != 4 && cie.address_size != 8)
		return 0;
	if (strncmp(letters, "eh", 2) == 0) { /* GCC 2: the address of exception tables */
		dwarf_skip(c, cie.address_size);
		letters += 2;
	}
	cie.code_align = dwarf_uleb(c);
	cie.data_align = dwarf_sleb(c);
	cie.return_register = version == 1 ? dwarf_number(c, 1) : dwarf_uleb(c);
	if (!read_augmentation(&cie, c, letters) || c->bad)
		return 0;
	if (f->cie_count == CIES_MAX)
		return error_set(e, 0, "it has more than %d CIEs of call frame information",
				 CIES_MAX);
	cie.instructions = c->at - s->bytes;
	cie.size = c->end - c->at;
	if (array_reserve(&f->cies, &f->cie_room, f->cie_count + 1, sizeof(*f->cies)))
		return error_no_memory(e);
	f->cies[f->cie_count++] = cie;
	return 0;
}

static int compare_cie(const void *offset, const void *cie)
{
	return compare_u64(*(const uint64_t *)offset, ((const struct cfi_cie *)cie)->offset);
}

/* The section's CIE at an offset; NULL: there is none before its FDE. */
static const struct cfi_cie *find_cie(const struct cfi_frames *f, uint64_t offset)
{
	size_t count = f->cie_count - f->first_cie;
	const struct cfi_cie *last;

	if (!count)
		return NULL;
	last = &f->cies[f->cie_count - 1];
	if (last->offset == offset) /* as for nearly all FDEs */
		return last;
	return bsearch(&offset, last + 1 - count, count, sizeof(*last), compare_cie);
}

/*
 * Clips an FDE to its executable segment. False: it is in none. A linker that drops a function
 * keeps its FDE, at 0 or the highest address.
 */
static bool clip_to_code(struct cfi_frames *f, struct cfi_fde *fde)
{
	const struct elf_range *code;

	for (size_t i = 0; fde->start && i < f->code_count; i++) {
		code = &f->code[(f->last_code + i) % f->code_count];
		if (fde->start < code->start || fde->start >= code->limit)
			continue;
		f->last_code = code - f->code;
		if (fde->limit > code->limit)
			fde->limit = code->limit;
		return true;
	}
	return false;
}

static int read_fde(struct cfi_frames *f, const struct cfi_section *s, uint64_t cie_offset,
		    struct dwarf_cursor *c, struct error *e)
{
	const struct cfi_cie *cie = find_cie(f, cie_offset);
	struct cfi_fde fde = { 0 };
	uint64_t size;

	if (!cie)
		return 0;
	fde.cie = cie - f->cies;
	if (!cfi_address(cie, c, &fde.start) ||
	    !read_encoded(c, cie->encoding, cie->address_size, &size))
		return 0;
	if (cie->sized)
		dwarf_skip(c, dwarf_uleb(c));
	if (c->bad || !size || __builtin_add_overflow(fde.start, size, &fde.limit) ||
	    !clip_to_code(f, &fde))
		return 0;
	if (f->fde_count == FDES_MAX)
		return error_set(e, 0, "it has more than %d FDEs of call frame information",
				 FDES_MAX);
	fde.instructions = c->at - s->bytes;
	fde.size = c->end - c->at;
	if (array_reserve(&f->fdes, &f->fde_room, f->fde_count + 1, sizeof(*f->fdes)))
		return error_no_memory(e);
	f->fdes[f->fde_count++] = fde;
	return 0;
}

static int read_records(struct cfi_frames *f, struct cfi_section *s, struct error *e)
{
	struct dwarf_cursor c = cfi_cursor(f, s, 0, s->size);
	bool counted = s->fdes > 0;
	int err = 0;

	f->first_cie = f->cie_count;
	while (!err && c.end - c.at >= 4 && (!counted || s->fdes)) {
		uint32_t offset = c.at - s->bytes;
		struct dwarf_cursor record = c;
		unsigned int offset_size, id_size;
		uint64_t size = dwarf_length(&c, &offset_size), id, id_at;

		if (!size && s->terminated)
			break;
		record.at = c.at;
		dwarf_skip(&c, size);
		if (c.bad && !s->headless)
			return error_set(e, 0,
					 "corrupt %s: its record at 0x%" PRIx32 " is truncated",
					 s->eh ? ".eh_frame" : ".debug_frame", offset);
		record.end = c.at;
		if (!size || c.bad)
			continue;
		id_size = s->eh ? 4 : offset_size; /* of the field that names an FDE's CIE */
		id_at = record.at - s->bytes;
		id = dwarf_number(&record, id_size);
		if (record.bad)
			continue;
		if (id == (s->eh ? 0 : UINT64_MAX >> (64 - 8 * id_size))) {
			err = read_cie(f, s, offset, &record, e);
		} else {
			if (s->fdes)
				s->fdes--;
			err = read_fde(f, s, s->eh ? id_at - id : id, &record, e);
		}
	}
	return err;
}

/* Reads the whole section. */
static int load_section(struct cfi_section *s, const char *name, struct error *e)
{
	struct read_budget *budget = s->file.source.budget;
	uint64_t size = s->file.size, most = SECTION_MAX;

	if (budget && budget->memory / MEMORY_FACTOR < most)
		most = budget->memory / MEMORY_FACTOR;
	if (s->headless && size > most)
		size = most;
	if (size > most)
		return error_set(e, 0, "its %s is larger than %" PRIu64 " MiB", name, most >> 20);
	if (!size)
		return 0;
	s->bytes = dwarf_section_read(&s->file, 0, size, &s->size);
	if (s->bytes && s->size >= size)
		return 0;
	if (budget && budget->exceeded)
		return error_set(e, 0, "its %s is not read: there is too much to read in it", name);
	return error_set(e, 0, "corrupt %s: cannot read it", name);
}

static int open_section(struct cfi_frames *f, struct cfi_section *s, const struct elf_file *file,
			const char *name, struct error *e)
{
	GElf_Shdr section;
	int err;

	if (elf_find_section(file->elf, name, &section))
		s->address = section.sh_addr;
	err = dwarf_section_open(&s->file, file, name, &f->room);
	if (err == -ENOTSUP)
		return error_set(e, 0, "its %s is compressed with zstd, and there is no libzstd",
				 name);
	if (err == -EFBIG)
		return error_set(e, 0, "its %s is larger than %" PRIu64 " MiB", name,
				 SECTION_MAX >> 20);
	if (err == -ENOMEM)
		return error_no_memory(e);
	if (err)
		return error_set(e, 0, "corrupt %s: unknown compression or implausible size", name);
	return load_section(s, name, e);
}

/*
 * Finds .eh_frame in a file without section headers, by .eh_frame_hdr, which has its own segment:
 * that has the address of .eh_frame and the number of its FDEs.
 */
static int open_headless(struct cfi_frames *f, struct cfi_section *s, const struct elf_file *file,
			 struct error *e)
{
	uint8_t bytes[4 + 2 * 8], address_size = f->wide ? 8 : 4;
	struct cfi_section header = { .bytes = bytes };
	struct dwarf_cursor c = { .at = bytes + 4, .big_endian = f->big_endian };
	GElf_Phdr segment;
	size_t first = 0, size;
	uint64_t at;

	if (!elf_next_segment(file->elf, &first, PT_GNU_EH_FRAME, &segment))
		return 0;
	size = elf_source_read(&file->source, bytes, sizeof(bytes), segment.p_offset);
	header.address = segment.p_vaddr;
	c.end = bytes + size;
	if (size < 4 || bytes[0] != 1 ||
	    !read_address(&header, &c, bytes[1], address_size, &s->address))
		return 0;
	if (bytes[2] != DW_EH_PE_omit &&
	    (!read_encoded(&c, bytes[2], address_size, &s->fdes) || c.bad))
		s->fdes = 0;
	s->terminated = !s->fdes;
	size = elf_address_bytes(file->elf, s->address, &at);
	if (!size)
		return 0;
	s->headless = true;
	dwarf_section_open_at(&s->file, file, at, size);
	return load_section(s, ".eh_frame", e);
}

/* Finds the executable segments. */
static int find_code(struct cfi_frames *f, Elf *elf, struct error *e)
{
	uint64_t start = UINT64_MAX, limit = 0;
	GElf_Phdr segment;

	for (size_t i = 0;
	     f->code_count < CFI_CODE_MAX && elf_next_segment(elf, &i, PT_LOAD, &segment);) {
		struct elf_range *code = &f->code[f->code_count];

		if (!(segment.p_flags & PF_X) ||
		    __builtin_add_overflow(segment.p_vaddr, segment.p_filesz, &code->limit))
			continue;
		code->start = segment.p_vaddr;
		f->code_count++;
		start = code->start < start ? code->start : start;
		limit = code->limit > limit ? code->limit : limit;
	}
	if (limit > start && limit - start > SPAN_MAX)
		return error_set(e, 0, "its code spans more than %" PRIu64 " GiB", SPAN_MAX >> 30);
	return 0;
}

#define DIGIT_BITS 11

/* Sorts FDEs by start, stably. A radix sort: qsort() would take a fourth of cfi_frames_read(). */
static int sort_fdes(struct cfi_frames *f, struct error *e)
{
	uint64_t first = UINT64_MAX, last = 0;
	const uint64_t mask = (1 << DIGIT_BITS) - 1;
	struct cfi_fde *from, *to;
	bool in_order = true;

	for (size_t i = 0; i < f->fde_count; i++) {
		uint64_t start = f->fdes[i].start;

		in_order = in_order && start >= last;
		first = start < first ? start : first;
		last = start > last ? start : last;
	}
	if (in_order)
		return 0;
	to = calloc(f->fde_count, sizeof(*to));
	if (!to)
		return error_no_memory(e);
	for (unsigned int shift = 0; (last - first) >> shift; shift += DIGIT_BITS) {
		uint32_t places[1 << DIGIT_BITS] = { 0 }, sum = 0;

		from = f->fdes;
		for (size_t i = 0; i < f->fde_count; i++)
			places[(from[i].start - first) >> shift & mask]++;
		for (size_t i = 0; i <= mask; i++) {
			uint32_t here = places[i];

			places[i] = sum;
			sum += here;
		}
		for (size_t i = 0; i < f->fde_count; i++)
			to[places[(from[i].start - first) >> shift & mask]++] = from[i];
		f->fdes = to;
		to = from;
	}
	free(to);
	f->fde_room = f->fde_count;
	return 0;
}

int cfi_frames_read(struct cfi_frames *f, const struct elf_file *file, struct error *e)
{
	struct cfi_section *eh = &f->sections[0], *debug = &f->sections[1];
	size_t size, eh_count;
	const char *ident = elf_getident(file->elf, &size);
	int err;

	*f = (struct cfi_frames){ .room = SECTION_MAX };
	eh->file.source.fd = debug->file.source.fd = -1;
	eh->eh = true;
	f->wide = ident[EI_CLASS] == ELFCLASS64;
	f->big_endian = ident[EI_DATA] == ELFDATA2MSB;
	err = find_code(f, file->elf, e);
	if (err || !f->code_count)
		return err;
	err = open_section(f, eh, file, ".eh_frame", e);
	if (!err && !eh->size)
		err = open_headless(f, eh, file, e);
	if (!err && eh->size)
		err = read_records(f, eh, e);
	if (err)
		return err;
	eh_count = f->fde_count;
	/* Go programs with C parts have both sections. A corrupt second one leaves the first. */
	err = open_section(f, debug, file, ".debug_frame", e);
	if (!err && debug->size)
		err = read_records(f, debug, e);
	if (err && err != -ENOMEM && eh_count) {
		f->fde_count = eh_count;
		err = 0;
	}
	return err ?: sort_fdes(f, e);
}

void cfi_frames_free(struct cfi_frames *f)
{
	dwarf_section_close(&f->sections[0].file);
	dwarf_section_close(&f->sections[1].file);
	free(f->fdes);
	free(f->cies);
	*f = (struct cfi_frames){ 0 };
}
