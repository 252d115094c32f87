// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/elf/plt.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/demangle.h"
#include "util/sum.h"

#define SECTIONS_MAX 4 /* .plt, .plt.got, .plt.sec, .plt.bnd */
#define BYTES_MAX    ((size_t)64 * 1024 * 1024)
#define NAME_SIZE    4096 /* longer names are truncated */

/* An address in a stub. */
struct stub {
	uint64_t slot;	   /* the GOT slot that the stub jumps through; 0: unknown */
	uint32_t location; /* PROFILE_NONE: named already */
};

static Elf_Data *data_of(Elf_Scn *scn, GElf_Shdr *section)
{
	if (!gelf_getshdr(scn, section) || section->sh_type == SHT_NOBITS ||
	    section->sh_size > BYTES_MAX)
		return NULL;
	return elf_getdata(scn, NULL);
}

/* x86-64: the operand of "jmp *DISTANCE(%rip)", which may follow endbr64. */
static uint64_t x86_slot(const Elf_Data *data, const GElf_Shdr *section,
			 const struct elf_range *plt, uint64_t address)
{
	uint64_t size = section->sh_entsize == 8 ? 8 : 16,
		 at = (address - plt->start) / size * size;
	uint32_t distance;

	for (; at + 6 <= data->d_size && size >= 6; at++, size--) {
		const uint8_t *code = (const uint8_t *)data->d_buf + at;

		if (code[0] != 0xff || code[1] != 0x25)
			continue;
		memcpy(&distance, code + 2, sizeof(distance));
		return plt->start + at + 6 + (int32_t)le32toh(distance);
	}
	return 0;
}

static uint32_t instruction_at(const Elf_Data *data, uint64_t at)
{
	uint32_t code;

	if (at > data->d_size || data->d_size - at < sizeof(code))
		return 0;
	memcpy(&code, (const uint8_t *)data->d_buf + at, sizeof(code));
	return le32toh(code);
}

#define ARM64_BTI   0xd503245f
#define ARM64_STUB  6 /* instructions at most */
#define ARM64_PAGES 21

/* arm64: the operands of "adrp x16, PAGE; ldr x17, [x16, OFFSET]", which may follow bti. */
static uint64_t arm64_slot(const Elf_Data *data, const GElf_Shdr *section,
			   const struct elf_range *plt, uint64_t address)
{
	uint64_t at = (address - plt->start) & ~UINT64_C(3);

	(void)section;
	if (instruction_at(data, at) == ARM64_BTI)
		at += 4;
	for (int i = 0; i < ARM64_STUB; i++, at -= 4) {
		uint32_t page = instruction_at(data, at), load = instruction_at(data, at + 4);
		int64_t pages = (page >> 5 & 0x7ffff) << 2 | (page >> 29 & 3);

		if ((page & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211)
			continue;
		pages -= (pages >> (ARM64_PAGES - 1)) << ARM64_PAGES; /* it is signed */
		return ((plt->start + at) & ~UINT64_C(0xfff)) + (pages << 12) +
		       (load >> 10 & 0xfff) * 8;
	}
	return 0;
}

/* Returns the GOT slot of a stub; 0: unknown. */
static uint64_t slot_of(Elf *elf, GElf_Half machine, const struct elf_range *plt, uint64_t address)
{
	GElf_Shdr section;
	Elf_Data *data = data_of(elf_getscn(elf, plt->section), &section);

	if (data && machine == EM_X86_64)
		return x86_slot(data, &section, plt, address);
	if (data && machine == EM_AARCH64)
		return arm64_slot(data, &section, plt, address);
	return 0;
}

/* Finds the addresses in stubs; `stubs` has room for b->count. Returns their number. */
static size_t find_stubs(const struct batch *b, Elf *elf, struct stub *stubs)
{
	struct elf_range plt[SECTIONS_MAX];
	size_t plt_count = elf_section_ranges(elf, ".plt", plt, SECTIONS_MAX), count = 0;
	GElf_Ehdr header;
	GElf_Half machine = gelf_getehdr(elf, &header) ? header.e_machine : EM_NONE;

	for (size_t i = 0; i < b->count; i++)
		for (size_t j = 0; j < plt_count; j++) {
			const struct batch_address *a = &b->addresses[i];

			if (a->address < plt[j].start || a->address >= plt[j].limit ||
			    batch_is_named(b, i))
				continue;
			stubs[count++] = (struct stub){
				slot_of(elf, machine, &plt[j], a->address),
				a->location,
			};
			break;
		}
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

/* Names stubs by a section of relocations: these say which symbol the slots point to. */
static int name_by_relocations(struct batch *b, Elf *elf, Elf_Scn *scn, struct stub *stubs,
			       size_t count)
{
	GElf_Shdr section, table;
	Elf_Data *relocations = data_of(scn, &section);
	Elf_Data *symbols = data_of(elf_getscn(elf, section.sh_link), &table);
	GElf_Rela r;
	GElf_Sym symbol;
	int err = 0;

	for (int i = 0; relocations && symbols && !err && gelf_getrela(relocations, i, &r); i++) {
		const char *name;
		size_t low = 0;

		for (size_t high = count; low < high;)
			if (stubs[(low + high) / 2].slot < r.r_offset)
				low = (low + high) / 2 + 1;
			else
				high = (low + high) / 2;
		if (low == count || stubs[low].slot != r.r_offset || !GELF_R_SYM(r.r_info) ||
		    stubs[low].location == PROFILE_NONE ||
		    !gelf_getsym(symbols, (int)GELF_R_SYM(r.r_info), &symbol))
			continue;
		name = elf_strptr(elf, table.sh_link, symbol.st_name);
		for (; name && *name && low < count && stubs[low].slot == r.r_offset && !err; low++)
			err = name_stub(b, &stubs[low], name);
	}
	return err;
}

int plt_name_all(struct batch *b, Elf *elf)
{
	struct stub *stubs = calloc(b->count + 1, sizeof(*stubs));
	size_t count = stubs ? find_stubs(b, elf, stubs) : 0;
	int err = stubs ? 0 : -ENOMEM, tables = 0;
	Elf_Scn *scn = NULL;
	GElf_Shdr section;

	if (count)
		qsort(stubs, count, sizeof(*stubs), by_slot);
	/* .rela.dyn and .rela.plt */
	while (count && !err && tables < 2 && (scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &section) && section.sh_type == SHT_RELA) {
			err = name_by_relocations(b, elf, scn, stubs, count);
			tables++;
		}
	for (size_t i = 0; i < count && !err; i++)
		if (stubs[i].location != PROFILE_NONE)
			err = name_stub(b, &stubs[i], NULL);
	free(stubs);
	return err;
}
