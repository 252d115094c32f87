// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/elf/symbol_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The ELF virtual addresses of a section; empty if it has no code. */
struct code {
	uint64_t start;
	uint64_t limit;
};

struct table {
	Elf_Data *symbols;
	size_t count;
	const char *names;
	size_t names_size; /* up to the last '\0', so that every name ends */
	struct code *sections;
	size_t section_count;
	GElf_Half machine;
};

static int find_names(struct table *t, Elf *elf, GElf_Word index)
{
	Elf_Scn *scn = elf_getscn(elf, index);
	GElf_Shdr section;
	Elf_Data *data;
	const char *last;

	if (!scn || !gelf_getshdr(scn, &section) || section.sh_type != SHT_STRTAB)
		return -EINVAL;
	data = elf_getdata(scn, NULL);
	if (!data || !data->d_buf)
		return -EINVAL;
	t->names = data->d_buf;
	last = memrchr(t->names, '\0', data->d_size);
	t->names_size = last ? last + 1 - t->names : 0;
	return 0;
}

static int find_code(struct table *t, Elf *elf)
{
	Elf_Scn *scn = NULL;

	if (elf_getshdrnum(elf, &t->section_count))
		return -EINVAL;
	t->sections = calloc(t->section_count + 1, sizeof(*t->sections));
	if (!t->sections)
		return -ENOMEM;
	while ((scn = elf_nextscn(elf, scn))) {
		struct code *code = &t->sections[elf_ndxscn(scn)];
		GElf_Shdr section;

		if (!gelf_getshdr(scn, &section) || !(section.sh_flags & SHF_EXECINSTR))
			continue;
		code->start = section.sh_addr;
		if (__builtin_add_overflow(section.sh_addr, section.sh_size, &code->limit))
			code->limit = UINT64_MAX;
	}
	return 0;
}

/* Returns 0, -EINVAL for a corrupt table, or -ENOMEM. */
static int open_table(struct table *t, Elf *elf, Elf_Scn *scn, const GElf_Shdr *section)
{
	GElf_Ehdr header;
	size_t entry = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	int err;

	*t = (struct table){ .symbols = elf_getdata(scn, NULL) };
	if (!t->symbols || !t->symbols->d_buf || !entry || !gelf_getehdr(elf, &header))
		return -EINVAL;
	t->count = t->symbols->d_size / entry;
	t->machine = header.e_machine;
	err = find_names(t, elf, section->sh_link);
	return err ? err : find_code(t, elf);
}

/* Mapping symbols of ARM and RISC-V ($a, $x, ...), local labels (.L...), annobin's notes. */
static bool is_tool_label(const char *name)
{
	return *name == '$' || *name == '.';
}

static enum cover_binding binding_of(const GElf_Sym *sym)
{
	switch (GELF_ST_BIND(sym->st_info)) {
	case STB_LOCAL:
		return COVER_LOCAL;
	case STB_WEAK:
		return COVER_WEAK;
	default:
		return COVER_GLOBAL;
	}
}

static bool decode(const struct table *t, size_t i, struct cover_symbol *symbol)
{
	const struct code *code;
	GElf_Sym sym;
	int type;

	if (!gelf_getsym(t->symbols, i, &sym) || sym.st_shndx == SHN_UNDEF ||
	    sym.st_shndx >= t->section_count || sym.st_name >= t->names_size)
		return false;
	type = GELF_ST_TYPE(sym.st_info);
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	/* The lowest bit of the address marks Thumb functions. */
	if (t->machine == EM_ARM && type == STT_FUNC)
		sym.st_value &= ~1ULL;
	code = &t->sections[sym.st_shndx];
	if (sym.st_value < code->start || sym.st_value >= code->limit)
		return false;
	*symbol = (struct cover_symbol){
		.start = sym.st_value,
		.limit = code->limit,
		.name = t->names + sym.st_name,
		.sized = sym.st_size != 0,
		.function = type != STT_NOTYPE,
		.binding = binding_of(&sym),
	};
	if (!*symbol->name || (!symbol->function && is_tool_label(symbol->name)))
		return false;
	if (symbol->sized && sym.st_size < code->limit - sym.st_value)
		symbol->limit = sym.st_value + sym.st_size;
	return true;
}

int symbol_table_offer(struct batch *b, struct cover *c, Elf *elf, GElf_Word type,
		       size_t *functions)
{
	GElf_Shdr section;
	Elf_Scn *scn = elf_find_type(elf, type, &section);
	struct cover_symbol symbol;
	struct table t;
	int err;

	if (!scn)
		return 0;
	err = open_table(&t, elf, scn, &section);
	for (size_t i = 1; !err && i < t.count; i++) {
		if (i % 65536 == 0 && batch_stopped(b))
			break;
		if (!decode(&t, i, &symbol))
			continue;
		*functions += symbol.function;
		cover_offer(c, &symbol);
	}
	free(t.sections);
	if (err != -EINVAL)
		return err;
	error_set(&b->why, 0, "corrupt symbol table: %s", elf_errmsg(-1));
	return 0;
}
