// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/symbol_table.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/file_cache.h"

/* The ELF virtual addresses of a section; empty if it has no code. */
struct code {
	uint64_t start;
	uint64_t limit;
};

struct code_sections {
	struct code *all;
	size_t count;
	GElf_Half machine;
};

/*
 * Symbols that are read from the file at a time, by one of as many calls of symbol_reader_next().
 */
#define SYMBOLS_AT_ONCE 2048

/* Reads the table's strings as a whole, into file->strings[number]. */
static int read_strings(struct symbol_reader *r, struct elf_file *file, size_t number,
			GElf_Word index, struct error *e)
{
	Elf_Scn *scn = elf_getscn(file->elf, index);
	GElf_Shdr section;
	const char *last;
	size_t size;

	if (!scn || !gelf_getshdr(scn, &section) || section.sh_type != SHT_STRTAB)
		return error_set(e, 0, "corrupt symbol table: it has no strings");
	if (section.sh_offset > file->source.size ||
	    section.sh_size > file->source.size - section.sh_offset)
		return error_set(e, 0, "corrupt symbol table: its strings end beyond the file");
	size = section.sh_size;
	if (!read_budget_has_memory(file->source.budget, size))
		return error_set(e, 0, "its symbols' names are too large");
	free(file->strings[number]);
	file->strings[number] = malloc(size + 1);
	if (!file->strings[number])
		return error_no_memory(e);
	if (elf_source_read(&file->source, file->strings[number], size, section.sh_offset) != size)
		return error_set(e, 0, "cannot read its symbols' names");
	r->strings = file->strings[number];
	last = memrchr(r->strings, '\0', size);
	r->strings_size = last ? last + 1 - r->strings : 0;
	return 0;
}

int symbol_reader_open(struct symbol_reader *r, struct elf_file *file, GElf_Word type,
		       struct error *e)
{
	GElf_Shdr section;
	Elf_Scn *scn = elf_find_type(file->elf, type, &section);

	*r = (struct symbol_reader){ .wide = gelf_getclass(file->elf) == ELFCLASS64 };
	r->entry = r->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	dwarf_section_open_at(&r->table, file, 0, 0);
	if (!scn)
		return 0;
	if (section.sh_offset > file->source.size ||
	    section.sh_size > file->source.size - section.sh_offset)
		return error_set(e, 0, "corrupt symbol table: it ends beyond the file");
	dwarf_section_open_at(&r->table, file, section.sh_offset, section.sh_size);
	r->offset = r->entry;
	return read_strings(r, file, type == SHT_DYNSYM, section.sh_link, e);
}

static void decode_symbol(struct symbol_reader *r, GElf_Sym *symbol)
{
	struct dwarf_cursor *c = &r->cursor;

	/* There may be millions. */
	if (r->wide && c->big_endian == (BYTE_ORDER == BIG_ENDIAN)) {
		memcpy(symbol, c->at, sizeof(*symbol));
		c->at += sizeof(*symbol);
		return;
	}
	symbol->st_name = dwarf_number(c, 4);
	if (!r->wide) {
		symbol->st_value = dwarf_number(c, 4);
		symbol->st_size = dwarf_number(c, 4);
	}
	symbol->st_info = dwarf_number(c, 1);
	symbol->st_other = dwarf_number(c, 1);
	symbol->st_shndx = dwarf_number(c, 2);
	if (r->wide) {
		symbol->st_value = dwarf_number(c, 8);
		symbol->st_size = dwarf_number(c, 8);
	}
}

bool symbol_reader_next(struct symbol_reader *r, GElf_Sym *symbol, const char **name)
{
	struct dwarf_cursor *c = &r->cursor;

	do {
		if ((size_t)(c->end - c->at) < r->entry) {
			if (r->table.size < r->offset + r->entry)
				return false;
			*c = dwarf_section_cursor(&r->table, r->offset, SYMBOLS_AT_ONCE * r->entry);
			if (c->bad || (size_t)(c->end - c->at) < r->entry)
				return false;
			/* Up to a symbol's end */
			c->end -= (c->end - c->at) % r->entry;
			r->offset += c->end - c->at;
		}
		decode_symbol(r, symbol);
	} while (symbol->st_name >= r->strings_size);
	*name = r->strings + symbol->st_name;
	return true;
}

void symbol_reader_close(struct symbol_reader *r)
{
	dwarf_section_close(&r->table);
}

static int find_code(struct code_sections *sections, Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Ehdr header;

	if (elf_getshdrnum(elf, &sections->count) || !gelf_getehdr(elf, &header))
		return -EINVAL;
	sections->machine = header.e_machine;
	sections->all = calloc(sections->count + 1, sizeof(*sections->all));
	if (!sections->all)
		return -ENOMEM;
	while ((scn = elf_nextscn(elf, scn))) {
		struct code *code = &sections->all[elf_ndxscn(scn)];
		GElf_Shdr section;

		if (!gelf_getshdr(scn, &section) || !(section.sh_flags & SHF_EXECINSTR))
			continue;
		code->start = section.sh_addr;
		if (__builtin_add_overflow(section.sh_addr, section.sh_size, &code->limit))
			code->limit = UINT64_MAX;
	}
	return 0;
}

/* Sets *symbol if a table's symbol is one of code. Returns whether it is. */
static bool take_code(const struct code_sections *sections, GElf_Sym *sym, const char *name,
		      struct cover_symbol *symbol)
{
	const struct code *code;
	int type = GELF_ST_TYPE(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= sections->count)
		return false;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	/* The lowest bit of the address marks Thumb functions. */
	if (sections->machine == EM_ARM && type == STT_FUNC)
		sym->st_value &= ~1ULL;
	code = &sections->all[sym->st_shndx];
	if (sym->st_value < code->start || sym->st_value >= code->limit)
		return false;
	*symbol = (struct cover_symbol){
		.start = sym->st_value,
		.limit = code->limit,
		.name = name,
		.sized = sym->st_size != 0,
		.function = type != STT_NOTYPE,
		.binding = COVER_GLOBAL,
	};
	if (GELF_ST_BIND(sym->st_info) == STB_LOCAL)
		symbol->binding = COVER_LOCAL;
	else if (GELF_ST_BIND(sym->st_info) == STB_WEAK)
		symbol->binding = COVER_WEAK;
	if (!*name)
		return false;
	/* Mapping symbols of ARM and RISC-V ($a, $x, ...), local labels (.L...), annobin's notes */
	if (!symbol->function && (*name == '$' || *name == '.'))
		return false;
	if (symbol->sized && sym->st_size < code->limit - sym->st_value)
		symbol->limit = sym->st_value + sym->st_size;
	return true;
}

int symbol_table_offer(struct batch *b, struct cover *c, struct elf_file *file, GElf_Word type,
		       size_t *functions)
{
	struct code_sections sections = { 0 };
	struct symbol_reader reader;
	struct cover_symbol symbol;
	const char *name;
	GElf_Sym sym;
	int err = symbol_reader_open(&reader, file, type, &b->why);

	err = err ?: find_code(&sections, file->elf);
	for (size_t i = 1; !err && symbol_reader_next(&reader, &sym, &name); i++) {
		if (i % 65536 == 0 && batch_stopped(b))
			break;
		if (!take_code(&sections, &sym, name, &symbol))
			continue;
		*functions += symbol.function;
		if (symbol.start >= b->excluded_start && symbol.start < b->excluded_limit)
			continue;
		cover_offer(c, &symbol);
		if (b->recording)
			file_cache_add(b->recording, &symbol);
	}
	symbol_reader_close(&reader);
	free(sections.all);
	return err == -ENOMEM ? err : 0;
}
