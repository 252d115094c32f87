// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/elf/plt.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/demangle.h"
#include "symbol/section.h"
#include "util/sum.h"

/*
 * Bound: files: sections of PLTs, and bytes of each; then: entries beyond have no names; seen: as
 * code without symbols.
 */
#define SECTIONS_MAX 4 /* .plt, .plt.got, .plt.sec, .plt.bnd */
#define BYTES_MAX    ((size_t)64 * 1024 * 1024)
#define NAME_SIZE    4096 /* longer names are truncated */

/* An address in a stub. */
struct stub {
	uint64_t slot;	   /* the GOT slot that the stub jumps through; 0: unknown */
	uint32_t location; /* PROFILE_NONE: named already */
};

/* A section of stubs. */
struct plt {
	const struct elf_range *range;
	const uint8_t *code;
	size_t size;
	uint64_t entry; /* a stub's size as the section's header has it */
};

/* x86-64: the operand of "jmp *DISTANCE(%rip)", which may follow endbr64. */
static uint64_t x86_slot(const struct plt *plt, uint64_t address)
{
	uint64_t size = plt->entry == 8 ? 8 : 16, start = plt->range->start,
		 at = (address - start) / size * size;
	uint32_t distance;

	for (; at + 6 <= plt->size && size >= 6; at++, size--) {
		const uint8_t *code = plt->code + at;

		if (code[0] != 0xff || code[1] != 0x25)
			continue;
		memcpy(&distance, code + 2, sizeof(distance));
		return start + at + 6 + (int32_t)le32toh(distance);
	}
	return 0;
}

static uint32_t instruction_at(const struct plt *plt, uint64_t at)
{
	uint32_t code;

	if (at > plt->size || plt->size - at < sizeof(code))
		return 0;
	memcpy(&code, plt->code + at, sizeof(code));
	return le32toh(code);
}

#define ARM64_BTI   0xd503245f
#define ARM64_STUB  6 /* instructions at most */
#define ARM64_PAGES 21

/* arm64: the operands of "adrp x16, PAGE; ldr x17, [x16, OFFSET]", which may follow bti. */
static uint64_t arm64_slot(const struct plt *plt, uint64_t address)
{
	uint64_t start = plt->range->start, at = (address - start) & ~UINT64_C(3);

	if (instruction_at(plt, at) == ARM64_BTI)
		at += 4;
	for (int i = 0; i < ARM64_STUB; i++, at -= 4) {
		uint32_t page = instruction_at(plt, at), load = instruction_at(plt, at + 4);
		int64_t pages = (page >> 5 & 0x7ffff) << 2 | (page >> 29 & 3);

		if ((page & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211)
			continue;
		pages -= (pages >> (ARM64_PAGES - 1)) << ARM64_PAGES; /* it is signed */
		return ((start + at) & ~UINT64_C(0xfff)) + (pages << 12) + (load >> 10 & 0xfff) * 8;
	}
	return 0;
}

/* Finds the addresses in stubs; `stubs` has room for b->count. Returns their number. */
static size_t find_stubs(const struct batch *b, const struct elf_file *file, struct stub *stubs)
{
	struct dwarf_section code[SECTIONS_MAX] = { 0 };
	struct elf_range ranges[SECTIONS_MAX];
	struct plt plt[SECTIONS_MAX] = { 0 };
	size_t plt_count = elf_plt_ranges(file->elf, ranges, SECTIONS_MAX), count = 0;
	GElf_Ehdr header;
	GElf_Half machine = gelf_getehdr(file->elf, &header) ? header.e_machine : EM_NONE;

	for (size_t i = 0; i < b->count; i++)
		for (size_t j = 0; j < plt_count; j++) {
			const struct batch_address *a = &b->addresses[i];
			uint64_t slot = 0;
			GElf_Shdr section;

			if (a->address < ranges[j].start || a->address >= ranges[j].limit ||
			    batch_is_named(b, i))
				continue;
			if (!plt[j].range &&
			    gelf_getshdr(elf_getscn(file->elf, ranges[j].section), &section) &&
			    section.sh_type != SHT_NOBITS && section.sh_size <= BYTES_MAX) {
				dwarf_section_open_at(&code[j], file, section.sh_offset,
						      section.sh_size);
				plt[j].code = dwarf_section_read(&code[j], 0, section.sh_size,
								 &plt[j].size);
				plt[j].entry = section.sh_entsize;
			}
			plt[j].range = &ranges[j];
			if (plt[j].code && machine == EM_X86_64)
				slot = x86_slot(&plt[j], a->address);
			if (plt[j].code && machine == EM_AARCH64)
				slot = arm64_slot(&plt[j], a->address);
			stubs[count++] = (struct stub){ slot, a->location };
			break;
		}
	for (size_t j = 0; j < plt_count; j++)
		if (plt[j].code)
			dwarf_section_close(&code[j]);
	return count;
}

/* symbol: the stub's target; NULL: unknown. */
static int name_stub(struct batch *b, struct stub *stub, const char *symbol)
{
	char *demangled = symbol ? demangle(symbol) : NULL, name[NAME_SIZE], system_name[NAME_SIZE];
	struct profile_function f = { .name = name, .system_name = system_name, .file = "" };
	struct profile_line line = { 0 };
	int err;

	snprintf(name, sizeof(name), "%.4000s%s", demangled ?: symbol ?: "[plt]",
		 symbol ? "@plt" : "");
	snprintf(system_name, sizeof(system_name), "%.4000s%s", symbol ?: "[plt]",
		 symbol ? "@plt" : "");
	free(demangled);
	err = profile_add_function(b->p, &f, &line.function);
	err = err ?: profile_set_lines(b->p, stub->location, &line, 1);
	stub->location = PROFILE_NONE;
	return err;
}

static int by_slot(const void *one, const void *other)
{
	return compare_u64(((const struct stub *)one)->slot, ((const struct stub *)other)->slot);
}

/* Names a stub by the symbol of this number in the table of symbols that relocations refer to. */
static int name_by_symbol(struct batch *b, struct stub *stub, struct dwarf_section *symbols,
			  struct dwarf_section *strings, bool wide, uint64_t number)
{
	size_t entry = wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	const char *name;
	uint64_t offset;

	/* st_name is the first member. */
	if (!dwarf_section_number(symbols, number * entry, 4, &offset))
		return 0;
	name = dwarf_section_string(strings, offset);
	return name && *name ? name_stub(b, stub, name) : 0;
}

/* Names stubs by a section of relocations: these say which symbol the slots point to. */
static int name_by_relocations(struct batch *b, const struct elf_file *file,
			       const GElf_Shdr *section, struct stub *stubs, size_t count)
{
	bool wide = gelf_getclass(file->elf) == ELFCLASS64;
	size_t word = wide ? 8 : 4, entry = 3 * word;
	struct dwarf_section relocations, symbols, strings;
	GElf_Shdr table, names;
	int err = 0;

	if (section->sh_size > BYTES_MAX ||
	    !gelf_getshdr(elf_getscn(file->elf, section->sh_link), &table) ||
	    table.sh_type == SHT_NOBITS ||
	    !gelf_getshdr(elf_getscn(file->elf, table.sh_link), &names))
		return 0;
	dwarf_section_open_at(&relocations, file, section->sh_offset, section->sh_size);
	dwarf_section_open_at(&symbols, file, table.sh_offset, table.sh_size);
	dwarf_section_open_at(&strings, file, names.sh_offset, names.sh_size);
	for (uint64_t at = 0; at + entry <= relocations.size && !err; at += entry) {
		struct dwarf_cursor c = dwarf_section_cursor(&relocations, at, entry);
		uint64_t slot = dwarf_number(&c, word), info = dwarf_number(&c, word),
			 symbol = wide ? ELF64_R_SYM(info) : ELF32_R_SYM(info);
		size_t low = 0;

		if (c.bad)
			break;
		for (size_t high = count; low < high;)
			if (stubs[(low + high) / 2].slot < slot)
				low = (low + high) / 2 + 1;
			else
				high = (low + high) / 2;
		for (; symbol && low < count && stubs[low].slot == slot && !err; low++)
			if (stubs[low].location != PROFILE_NONE)
				err = name_by_symbol(b, &stubs[low], &symbols, &strings, wide,
						     symbol);
	}
	dwarf_section_close(&relocations);
	dwarf_section_close(&symbols);
	dwarf_section_close(&strings);
	return err;
}

int plt_name_all(struct batch *b, const struct elf_file *file)
{
	struct stub *stubs = calloc(b->count + 1, sizeof(*stubs));
	size_t count = stubs ? find_stubs(b, file, stubs) : 0;
	int err = stubs ? 0 : -ENOMEM, tables = 0;
	Elf_Scn *scn = NULL;
	GElf_Shdr section;

	if (count)
		qsort(stubs, count, sizeof(*stubs), by_slot);
	/* .rela.dyn and .rela.plt */
	while (count && !err && tables < 2 && (scn = elf_nextscn(file->elf, scn)))
		if (gelf_getshdr(scn, &section) && section.sh_type == SHT_RELA) {
			err = name_by_relocations(b, file, &section, stubs, count);
			tables++;
		}
	for (size_t i = 0; i < count && !err; i++)
		if (stubs[i].location != PROFILE_NONE)
			err = name_stub(b, &stubs[i], NULL);
	free(stubs);
	return err;
}
