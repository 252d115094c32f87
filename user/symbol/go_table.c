// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/go_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

/* The first four bytes */
#define MAGIC_1_2  0xfffffffb
#define MAGIC_1_16 0xfffffffa
#define MAGIC_1_18 0xfffffff0
#define MAGIC_1_20 0xfffffff1

/* "magic, 0, 0, quantum, pointer size", then up to eight words */
#define HEADER_START ((size_t)8)
/* Bound: format. */
#define HEADER_MAX (HEADER_START + 8 * 8)

/*
 * Linkers make tables of a tenth of it.
 * Bound: files: bytes of Go's table; then: code has no names; seen: as code without symbols, with
 * the reason.
 */
#define TABLE_MAX ((uint64_t)1024 * 1024 * 1024)

/*
 * The table of a position-independent program, and the description of the module, are searched for
 * in sections of data, in so many bytes in all; relocations are read twice.
 * Bound: files: bytes in which Go's table is searched, and places that may be it; then: code has no
 * names; seen: as code without symbols, with the reason.
 */
#define SEARCH_MAX  ((uint64_t)256 * 1024 * 1024)
#define SEARCH_STEP ((size_t)64 * 1024)
#define FOUND_MAX   16

/*
 * Of a function: names as those of batch.c, inlined functions as those of DWARF.
 * Bound: files: bytes of names, inlined functions of an address, and of all; then: names are cut;
 * lines are missing; seen: not seen.
 */
#define NAME_MAX_SIZE ((size_t)64 * 1024)
#define NAMES_MAX     ((size_t)64 * 1024 * 1024)
#define SHORT_NAME    ((size_t)256)
#define DEPTH_MAX     1024
#define FRAMES_MAX    ((size_t)4 * 1024 * 1024)

/*
 * Programs are read in steps; a step is two numbers of up to five bytes. All programs of a real
 * table are far shorter than WORK_LEAST, and one function's has some hundred bytes.
 */
#define PROGRAM_STEP ((size_t)4096)
/* Bound: format. */
#define STEP_MAX   10
#define WORK_LEAST ((uint64_t)256 * 1024 * 1024)
#define WORK_EACH  ((uint64_t)64 * 1024)

/* struct _func without its arrays. Bound: format. */
#define INFO_MAX ((size_t)48)

/* Addresses between two calls of batch_stopped() */
#define ASK_STOP 1024

/*
 * What may be between the last function and the end of the section of text: alignment.
 * Bound: format.
 */
#define SECTION_ROOM 256

/*
 * Words of struct moduledata (runtime/symtab.go), which is the same from 1.18 on up to `text`. What
 * stands after it depends on the version; inlined calls are at the address before the slice of text
 * sections, or since 1.26 before the table's end, which comes in between.
 */
enum {
	MODULE_HEADER = 0,
	MODULE_PARTS = 1, /* slices: address, length, capacity */
	MODULE_INDEX = 16,
	MODULE_MIN_PC = 20,
	MODULE_MAX_PC = 21,
	MODULE_TEXT = 22,
	MODULE_SECTIONS_FROM = 38, /* in 1.18, 1.27 and with some to come */
	MODULE_SECTIONS_TO = 60,
	MODULE_WORDS = 64,
};

#define FUNCTION_TOP	 1 /* flag: it has no caller */
#define PCDATA_INLINED	 2
#define FUNCDATA_INLINED 3
#define NO_FUNCDATA	 UINT32_MAX

/* What the table says about a function. */
struct function {
	uint64_t start, limit;
	uint32_t name;	/* in names */
	uint32_t stack; /* program of the size of the stack frame */
	uint32_t files; /* program of the file's number */
	uint32_t lines; /* program of the line */
	uint32_t unit;	/* what the file's number is relative to */
	uint32_t start_line;
	uint32_t inlined; /* program of the innermost inlined call; 0: none */
	uint64_t calls;	  /* offset of its inlined calls */
	uint8_t flags;
};

/* --- The file as it is in memory --- */

static bool is_code(Elf *elf, uint64_t start, uint64_t limit)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr section;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &section) && (section.sh_flags & SHF_EXECINSTR) &&
		    start >= section.sh_addr && limit > start &&
		    limit - section.sh_addr <= section.sh_size)
			return true;
	return false;
}

static struct dwarf_cursor cursor_of(const struct go_table *t, const uint8_t *bytes, size_t size)
{
	return (struct dwarf_cursor){
		.at = bytes,
		.end = bytes + size,
		.big_endian = elf_getident(t->file->elf, NULL)[EI_DATA] == ELFDATA2MSB,
	};
}

/* Counts bytes that may be read repeatedly. False: this malicious file takes too long. */
static bool take_work(struct go_table *t, uint64_t bytes)
{
	if (t->work_left < bytes)
		return false;
	t->work_left -= bytes;
	return true;
}

/*
 * Calls `found` with each relocation that adds the load bias to an address: its place, and that
 * address. The bytes of that place in the file may be something else.
 */
static void each_relocation(struct go_table *t,
			    void (*found)(void *context, uint64_t place, uint64_t address),
			    void *context)
{
	static const struct {
		GElf_Half machine;
		uint64_t type;
	} relatives[] = {
		{ EM_X86_64, R_X86_64_RELATIVE },
		{ EM_AARCH64, R_AARCH64_RELATIVE },
		{ EM_RISCV, R_RISCV_RELATIVE },
		{ EM_S390, R_390_RELATIVE },
	};
	const size_t count = sizeof(relatives) / sizeof(*relatives);
	GElf_Ehdr header;
	Elf_Scn *scn = NULL;
	GElf_Shdr section;
	size_t i = 0;

	if (!gelf_getehdr(t->file->elf, &header) || header.e_type != ET_DYN || t->pointer != 8)
		return;
	while (i < count && relatives[i].machine != header.e_machine)
		i++;
	if (i == count)
		return;
	while ((scn = elf_nextscn(t->file->elf, scn))) {
		struct dwarf_section table;

		if (!gelf_getshdr(scn, &section) || section.sh_type != SHT_RELA ||
		    !(section.sh_flags & SHF_ALLOC) || section.sh_size > TABLE_MAX)
			continue;
		dwarf_section_open_at(&table, t->file, section.sh_offset, section.sh_size);
		for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= table.size;) {
			size_t step = SEARCH_STEP / sizeof(Elf64_Rela) * sizeof(Elf64_Rela);
			struct dwarf_cursor c = dwarf_section_cursor(&table, at, step);

			if (c.bad || (size_t)(c.end - c.at) < sizeof(Elf64_Rela) ||
			    !take_work(t, c.end - c.at))
				break;
			while ((size_t)(c.end - c.at) >= sizeof(Elf64_Rela)) {
				uint64_t place = dwarf_number(&c, 8), info = dwarf_number(&c, 8),
					 address = dwarf_number(&c, 8);

				at += sizeof(Elf64_Rela);
				if (ELF64_R_TYPE(info) == relatives[i].type)
					found(context, place, address);
			}
		}
		dwarf_section_close(&table);
	}
}

/* --- Searching data for a number --- */

struct search {
	uint64_t number, ignored;  /* bits that may differ */
	size_t size;		   /* of the number */
	uint64_t left;		   /* bytes to search */
	uint64_t found[FOUND_MAX]; /* ELF virtual addresses */
	size_t count;
};

static void search_section(const struct go_table *t, struct search *s, const GElf_Shdr *section)
{
	struct dwarf_section data;

	dwarf_section_open_at(&data, t->file, section->sh_offset, section->sh_size);
	for (uint64_t at = 0; s->left && s->count < FOUND_MAX && at < data.size;) {
		struct dwarf_cursor c = dwarf_section_cursor(&data, at, SEARCH_STEP);
		size_t got = c.bad ? 0 : c.end - c.at;

		if (got < s->size || got > s->left)
			break;
		s->left -= got;
		for (size_t i = 0; i + t->pointer <= got && s->count < FOUND_MAX; i += t->pointer) {
			struct dwarf_cursor word = c;

			word.at += i;
			if ((dwarf_number(&word, s->size) & ~s->ignored) == s->number)
				s->found[s->count++] = section->sh_addr + at + i;
		}
		at += got;
	}
	dwarf_section_close(&data);
}

static void note_relocation(void *context, uint64_t place, uint64_t address)
{
	struct search *s = context;

	if (address == s->number && s->count < FOUND_MAX)
		s->found[s->count++] = place;
}

/* Words of the index: the start of a function, and where it is described, for each; the end. */
static bool index_word(struct go_table *t, uint64_t number, uint64_t *value)
{
	return dwarf_section_element(&t->parts[GO_INDEX], 0, number, t->field, value);
}

/* --- The module, for where code and inlined calls are --- */

struct module {
	uint64_t address;
	size_t word;
	uint64_t words[MODULE_WORDS];
};

static void relocate_word(void *context, uint64_t place, uint64_t address)
{
	struct module *m = context;

	if (place >= m->address && place - m->address < m->word * MODULE_WORDS &&
	    (place - m->address) % m->word == 0)
		m->words[(place - m->address) / m->word] = address;
}

/*
 * Reads the module at an address. Only the right one has the addresses of all parts of the table.
 * Sets the start of code, and where inlined calls are. Returns whether it is the module.
 */
static bool read_module(struct go_table *t, const uint64_t *parts, uint64_t address)
{
	struct module m = { .address = address, .word = t->pointer };
	uint8_t bytes[MODULE_WORDS * 8];
	uint64_t offset, size = elf_address_bytes(t->file->elf, address, &offset), first, last;
	struct dwarf_cursor c;
	size_t got;

	size = MIN(size, MODULE_WORDS * t->pointer);
	got = elf_source_read(&t->file->source, bytes, size, offset);
	c = cursor_of(t, bytes, got);
	for (size_t i = 0; i < got / t->pointer; i++)
		m.words[i] = dwarf_number(&c, t->pointer);
	each_relocation(t, relocate_word, &m);
	for (size_t i = 0; i < GO_HEADER_PARTS; i++)
		if (m.words[MODULE_PARTS + 3 * i] != t->address + parts[i])
			return false;
	if (m.words[MODULE_HEADER] != t->address ||
	    m.words[MODULE_INDEX] != t->address + parts[GO_INFOS] ||
	    m.words[MODULE_INDEX + 1] != t->count + 1 || !index_word(t, 0, &first) ||
	    !index_word(t, 2 * t->count, &last) ||
	    m.words[MODULE_MIN_PC] != m.words[MODULE_TEXT] + first ||
	    m.words[MODULE_MAX_PC] != m.words[MODULE_TEXT] + last)
		return false;
	t->text = m.words[MODULE_TEXT];
	/* One section of text: {its offset in all text, the offset of its end, its address} */
	for (size_t i = MODULE_SECTIONS_FROM; i <= MODULE_SECTIONS_TO && !t->calls_address; i++) {
		uint64_t from, to;

		if (m.words[i + 1] != 1 || m.words[i + 2] != 1 ||
		    elf_address_bytes(t->file->elf, m.words[i], &offset) <
			    2 * (uint64_t)t->pointer ||
		    elf_source_read(&t->file->source, bytes, 2 * t->pointer, offset) !=
			    2 * t->pointer)
			continue;
		c = cursor_of(t, bytes, 2 * t->pointer);
		from = dwarf_number(&c, t->pointer);
		to = dwarf_number(&c, t->pointer);
		if (from || to < last || to - last > SECTION_ROOM)
			continue;
		t->calls_address = m.words[i - 1];
		if (t->calls_address == t->address + t->size)
			t->calls_address = m.words[i - 2];
	}
	return true;
}

/* Finds the module: it begins with the table's address. Returns whether it was found. */
static bool find_module(struct go_table *t, const uint64_t *parts)
{
	struct search s = { .number = t->address, .size = t->pointer, .left = SEARCH_MAX };
	Elf_Scn *scn = NULL;
	GElf_Shdr section;
	bool found = false;
	size_t tried = 0;

	/* .go.module, .noptrdata, .data, .data.rel.ro */
	while (!found && (scn = elf_nextscn(t->file->elf, scn))) {
		if (!gelf_getshdr(scn, &section) || section.sh_type == SHT_NOBITS ||
		    !(section.sh_flags & SHF_WRITE) || !(section.sh_flags & SHF_ALLOC))
			continue;
		search_section(t, &s, &section);
		for (; tried < s.count && !found; tried++)
			found = read_module(t, parts, s.found[tried]);
	}
	if (!found && s.count < FOUND_MAX)
		each_relocation(t, note_relocation, &s);
	for (; tried < s.count && !found; tried++)
		found = read_module(t, parts, s.found[tried]);
	return found;
}

/* --- Opening --- */

/*
 * Opens the table of `size` bytes at an offset of the file, which is in memory at t->address.
 * Returns 0, or -EINVAL and sets t->why.
 */
static int open_table(struct go_table *t, uint64_t offset, bool lines)
{
	static const uint32_t magics[] = { MAGIC_1_2, MAGIC_1_16, MAGIC_1_18, MAGIC_1_20 };
	uint8_t bytes[HEADER_MAX];
	size_t got = elf_source_read(&t->file->source, bytes, sizeof(bytes), offset), layout = 0;
	struct dwarf_cursor c = cursor_of(t, bytes, got);
	uint64_t parts[GO_HEADER_PARTS + 1] = { 0 }; /* offsets, in this order; and the end */
	uint64_t index = HEADER_START + t->pointer, first, last, calls_at, size;
	uint32_t magic = dwarf_number(&c, 4);
	GElf_Shdr section;
	GElf_Ehdr header;
	bool is_split;

	while (layout < sizeof(magics) / sizeof(*magics) && magics[layout] != magic)
		layout++;
	if (layout == sizeof(magics) / sizeof(*magics) || dwarf_number(&c, 2))
		return error_set(&t->why, 0, "its .gopclntab is of an unknown layout (%#x)", magic);
	t->layout = layout;
	t->quantum = dwarf_number(&c, 1);
	if (dwarf_number(&c, 1) != t->pointer || !t->quantum)
		return error_set(&t->why, 0, "its .gopclntab is corrupt: its header");
	t->field = t->layout >= GO_1_18 ? 4 : t->pointer;
	t->count = dwarf_number(&c, t->pointer);
	if (t->count > t->size / 2 / t->field)
		return error_set(&t->why, 0, "its .gopclntab is corrupt: too many functions");
	if (t->layout >= GO_1_16) {
		dwarf_skip(&c, t->pointer); /* the number of files */
		if (t->layout >= GO_1_18)
			t->text = dwarf_number(&c, t->pointer);
		for (size_t i = 0; i < GO_HEADER_PARTS; i++) {
			parts[i] = dwarf_number(&c, t->pointer);
			if (i && parts[i] < parts[i - 1])
				return error_set(&t->why, 0,
						 "its .gopclntab is corrupt: its parts");
		}
		index = parts[GO_INFOS];
	}
	if (c.bad || index > t->size || t->size - index < (2 * t->count + 1) * t->field)
		return error_set(&t->why, 0, "its .gopclntab is corrupt: it is too short");
	size = (2 * t->count + 1) * t->field;
	dwarf_section_open_at(&t->parts[GO_INDEX], t->file, offset + index, size);
	if (t->layout < GO_1_16) {
		got = elf_source_read(&t->file->source, bytes, 4, offset + index + size);
		c = cursor_of(t, bytes, got);
		parts[GO_UNITS] = dwarf_number(&c, 4);
		if (c.bad || parts[GO_UNITS] > t->size)
			return error_set(&t->why, 0, "its .gopclntab is corrupt: its files");
	}
	parts[GO_HEADER_PARTS] = t->size;
	for (size_t i = 0; i < GO_HEADER_PARTS; i++)
		dwarf_section_open_at(&t->parts[i], t->file, offset + parts[i],
				      parts[t->layout < GO_1_16 ? GO_HEADER_PARTS : i + 1] -
					      parts[i]);
	/* Of large programs code is in sections, with gaps between them. */
	is_split = gelf_getehdr(t->file->elf, &header) &&
		   (header.e_machine == EM_PPC64 || header.e_machine == EM_ARM);
	/* Since 1.26 the header lacks the start of code; relocations may set it before. */
	if (t->layout >= GO_1_18 && (lines || !t->text || is_split) && !find_module(t, parts) &&
	    !t->text)
		return error_set(&t->why, 0,
				 "its .gopclntab does not say where its code is, and its "
				 "runtime.firstmoduledata cannot be found");
	if (t->layout >= GO_1_18 && is_split && !t->calls_address)
		return error_set(&t->why, 0, "its .gopclntab is of code in several sections");
	if (!index_word(t, 0, &first) || !index_word(t, 2 * t->count, &last) ||
	    __builtin_add_overflow(first, t->text, &first) ||
	    __builtin_add_overflow(last, t->text, &last) || !is_code(t->file->elf, first, last))
		return error_set(&t->why, 0, "the functions of its .gopclntab are not in its code");
	if (t->layout == GO_1_16 && elf_find_section(t->file->elf, ".rodata", &section)) {
		/* The table has the addresses of inlined calls. */
		t->calls_address = section.sh_addr;
		dwarf_section_open_at(&t->parts[GO_CALLS], t->file, section.sh_offset,
				      section.sh_size);
	} else if (t->calls_address) {
		size = elf_address_bytes(t->file->elf, t->calls_address, &calls_at);
		if (size)
			dwarf_section_open_at(&t->parts[GO_CALLS], t->file, calls_at, size);
	}
	t->start = first;
	t->limit = last;
	return 0;
}

static void close_parts(struct go_table *t)
{
	for (size_t i = 0; i < GO_PARTS; i++)
		dwarf_section_close(&t->parts[i]);
}

static int open_section(struct go_table *t, const GElf_Shdr *section, uint64_t address, bool lines)
{
	int err;

	t->address = address;
	t->size = section->sh_size - (address - section->sh_addr);
	t->text = t->calls_address = 0;
	err = open_table(t, section->sh_offset + (address - section->sh_addr), lines);
	if (err)
		close_parts(t);
	return err;
}

void go_table_open(struct go_table *t, const struct elf_file *file, bool lines)
{
	/* External linkers merge it with other data of position-independent programs. */
	struct search s = { .number = MAGIC_1_18, .ignored = 1, .size = 4, .left = SEARCH_MAX };
	GElf_Shdr section, unused;
	int err = -EINVAL;

	*t = (struct go_table){ .file = file, .work_left = WORK_LEAST };
	t->pointer = gelf_getclass(file->elf) == ELFCLASS64 ? 8 : 4;
	if (elf_find_section(file->elf, ".gopclntab", &section) ||
	    elf_find_section(file->elf, ".data.rel.ro.gopclntab", &section)) {
		err = open_section(t, &section, section.sh_addr, lines);
	} else if (elf_find_section(file->elf, ".note.go.buildid", &unused) &&
		   elf_find_section(file->elf, ".data.rel.ro", &section)) {
		search_section(t, &s, &section);
		error_set(&t->why, 0, "its .gopclntab cannot be found");
		for (size_t i = 0; i < s.count && err; i++)
			err = open_section(t, &section, s.found[i], lines);
	} else {
		return;
	}
	t->is_unreadable = err != 0;
}

void go_table_close(struct go_table *t)
{
	if (t->limit)
		close_parts(t);
	array_free_texts(t->copies, t->copy_count);
	*t = (struct go_table){ 0 };
}

/* --- Functions --- */

/*
 * A program is a list of steps: a number to add to the value, which is -1 at first, and the size of
 * the code that has it.
 */
struct program {
	struct go_table *table;
	struct dwarf_cursor c;
	const uint8_t *window;
	uint64_t at; /* of the window */
	uint32_t value;
	uint64_t start, limit; /* of the code that has the value */
	bool began;
};

static struct program open_program(struct go_table *t, uint32_t program, uint64_t start)
{
	return (struct program){ .table = t, .at = program, .value = -1, .limit = start };
}

/* Reads the next step. False: the program ends, or is corrupt, or cannot be read. */
static bool next_step(struct program *p)
{
	struct go_table *t = p->table;
	const uint8_t *step;
	uint32_t delta;

	if (!p->at)
		return false;
	if (p->c.end - p->c.at < STEP_MAX) {
		if (!read_budget_take(t->file->source.budget, 0))
			return false;
		p->at += p->window ? p->c.at - p->window : 0;
		p->c = dwarf_section_cursor(&t->parts[GO_PROGRAMS], p->at, PROGRAM_STEP);
		p->window = p->c.at;
	}
	step = p->c.at;
	delta = dwarf_uleb(&p->c);
	if (p->c.bad || (!delta && p->began))
		return false;
	p->value += delta & 1 ? ~(delta >> 1) : delta >> 1;
	p->start = p->limit;
	p->limit += dwarf_uleb(&p->c) * t->quantum;
	p->began = true;
	return !p->c.bad && take_work(t, p->c.at - step);
}

/*
 * The value that a program has at an address; -1: none. With an address beyond the function's end,
 * *end becomes that end.
 */
static int32_t program_value(struct go_table *t, uint32_t program, uint64_t start, uint64_t address,
			     uint64_t *end)
{
	struct program p = open_program(t, program, start);

	while (next_step(&p)) {
		if (end)
			*end = p.limit;
		if (address < p.limit)
			return p.value;
	}
	return -1;
}

/* Reads what the table says about a function, by its number. False: nothing. */
static bool read_function(struct go_table *t, uint64_t number, struct function *f)
{
	uint64_t at, start, limit, unused;
	struct dwarf_cursor c;
	uint32_t programs, functions;

	if (!index_word(t, 2 * number, &start) || !index_word(t, 2 * number + 1, &at) ||
	    !index_word(t, 2 * number + 2, &limit) || start >= limit || limit > t->limit - t->text)
		return false;
	*f = (struct function){ .start = start + t->text, .limit = limit + t->text };
	/* struct _func: runtime/runtime2.go */
	c = dwarf_section_cursor(&t->parts[GO_INFOS], at, INFO_MAX);
	if (dwarf_number(&c, t->field) != start)
		return false;
	f->name = dwarf_number(&c, 4);
	dwarf_skip(&c, 2 * 4); /* arguments, deferreturn */
	f->stack = dwarf_number(&c, 4);
	f->files = dwarf_number(&c, 4);
	f->lines = dwarf_number(&c, 4);
	programs = dwarf_number(&c, 4);
	if (t->layout >= GO_1_16)
		f->unit = dwarf_number(&c, 4);
	if (t->layout >= GO_1_20)
		f->start_line = dwarf_number(&c, 4);
	dwarf_skip(&c, 1); /* what the runtime knows it by */
	f->flags = dwarf_number(&c, 1);
	dwarf_skip(&c, 1);
	functions = dwarf_number(&c, 1);
	if (c.bad || f->start_line > INT32_MAX)
		return false;
	if (programs <= PCDATA_INLINED || functions <= FUNCDATA_INLINED || !t->parts[GO_CALLS].size)
		return true;
	/* Before 1.18 the second array is one of addresses, which are aligned. */
	at += t->field + (t->layout >= GO_1_20 ? 10 : 9) * 4;
	if (dwarf_section_element(&t->parts[GO_INFOS], at, PCDATA_INLINED, 4, &unused))
		f->inlined = unused;
	at += (uint64_t)programs * 4;
	if (t->layout < GO_1_18)
		at = (at + t->pointer - 1) / t->pointer * t->pointer;
	if (!dwarf_section_element(&t->parts[GO_INFOS], at, FUNCDATA_INLINED, t->field,
				   &f->calls) ||
	    f->calls == (t->layout < GO_1_18 ? 0 : NO_FUNCDATA))
		f->inlined = 0;
	else if (t->layout < GO_1_18)
		f->calls -= t->calls_address;
	return true;
}

/* Reads what the table says about the function around an address. False: nothing. */
static bool find_function(struct go_table *t, uint64_t address, struct function *f)
{
	uint64_t low = 0, high = t->count, start, code = address - t->text;

	if (address < t->start || address >= t->limit)
		return false;
	/* Addresses are sorted: most are in the last one's function, or after it. */
	if (index_word(t, 2 * t->last, &start) && start <= code)
		low = t->last;
	while (low + 1 < high) {
		uint64_t middle = low + (high - low) / 2;

		if (!index_word(t, 2 * middle, &start))
			return false;
		if (start <= code)
			low = middle;
		else
			high = middle;
	}
	t->last = low;
	return read_function(t, low, f) && address >= f->start && address < f->limit;
}

static const char *find_name(struct go_table *t, uint32_t name)
{
	const char *text = dwarf_section_string(&t->parts[GO_NAMES], name);

	return text && *text ? text : NULL;
}

int go_table_offer(struct go_table *t, struct batch *b, struct cover *c, bool *all)
{
	struct function f = { 0 };

	*all = true;
	t->work_left = WORK_LEAST;
	for (size_t i = 0; i < b->count; i++) {
		uint64_t address = b->addresses[i].address, end = 0;
		struct cover_symbol symbol = { .sized = true,
					       .function = true,
					       .binding = COVER_GLOBAL };
		const char *name;
		char *copy;

		if (i % ASK_STOP == 0 && batch_stopped(b))
			break;
		if (address >= f.start && address < f.limit)
			continue;
		name = find_function(t, address, &f) ? find_name(t, f.name) : NULL;
		if (!name) {
			f.limit = 0;
			*all = false;
			continue;
		}
		/* The next function may start after a gap. */
		if (b->extents)
			program_value(t, f.lines, f.start, UINT64_MAX, &end);
		copy = strndup(name, t->copy_bytes < NAMES_MAX ? NAME_MAX_SIZE : SHORT_NAME);
		if (!copy || array_add(t->copies, t->copy_count, t->copy_room, copy)) {
			free(copy);
			return -ENOMEM;
		}
		t->copy_bytes += strlen(copy);
		symbol.start = f.start;
		symbol.limit = end > f.start && end < f.limit ? end : f.limit;
		symbol.name = copy;
		cover_offer(c, &symbol);
	}
	return 0;
}

/* --- Lines --- */

/* The path of an address's source file, valid until the next call; NULL: unknown. */
static const char *find_file(struct go_table *t, const struct function *f, uint64_t address)
{
	int32_t number = program_value(t, f->files, f->start, address, NULL);
	uint64_t offset;
	const char *path;

	if (number < 0 ||
	    !dwarf_section_element(&t->parts[GO_UNITS], 0, (uint64_t)f->unit + number, 4,
				   &offset) ||
	    offset == UINT32_MAX)
		return NULL;
	path = dwarf_section_string(&t->parts[GO_FILES], offset);
	return path && *path ? path : NULL;
}

/* Sets the line and the file, as the profile has it, of an address; both are 0 if unknown. */
static int find_line(struct go_table *t, struct profile *p, const struct function *f,
		     uint64_t address, uint32_t *line, const char **file)
{
	int32_t found = program_value(t, f->lines, f->start, address, NULL);
	const char *path = found > 0 ? find_file(t, f, address) : NULL;

	*line = 0;
	*file = NULL;
	if (!path)
		return 0;
	*line = found;
	return profile_string(p, path, file);
}

/* An inlined call. */
struct call {
	uint32_t name, start_line;
	uint64_t caller; /* an address in the function around it */
};

/* struct inlinedCall: runtime/symtab.go, since 1.21 runtime/symtabinl.go. False: there is none. */
static bool find_call(struct go_table *t, const struct function *f, int32_t number,
		      struct call *call)
{
	size_t size = t->layout >= GO_1_20 ? 16 : 20;
	struct dwarf_cursor c;
	uint64_t before, at;

	if (number < 0 || __builtin_add_overflow(f->calls, size * number, &at))
		return false;
	c = dwarf_section_cursor(&t->parts[GO_CALLS], at, size);
	dwarf_skip(&c, t->layout >= GO_1_20 ? 4 : 12);
	call->name = dwarf_number(&c, 4);
	call->caller = f->start + dwarf_number(&c, 4);
	call->start_line = t->layout >= GO_1_20 ? dwarf_number(&c, 4) : 0;
	if (c.bad || call->caller >= f->limit || call->start_line > INT32_MAX)
		return false;
	/* It must be the start of a name. */
	return !call->name ||
	       (dwarf_section_number(&t->parts[GO_NAMES], call->name - 1, 1, &before) && !before);
}

/* lines: an array of DEPTH_MAX lines. */
static int set_lines(struct go_table *t, struct batch *b, const struct function *f, size_t i,
		     struct profile_line *lines)
{
	struct profile *p = b->p;
	uint32_t location = b->addresses[i].location, count = 0;
	const struct profile_location *l = &p->locations[location];
	uint64_t address = b->addresses[i].address;
	bool more = true;

	for (size_t depth = 0; more && depth < DEPTH_MAX; depth++) {
		int32_t number = program_value(t, f->inlined, f->start, address, NULL);
		struct profile_function function = { .file = "" };
		struct profile_line at = { 0 };
		const char *file, *name = NULL;
		struct call call;
		int err = find_line(t, p, f, address, &at.line, &file);

		more = find_call(t, f, number, &call);
		if (more) {
			name = find_name(t, call.name);
			function.start_line = call.start_line;
			function.file = file ?: "";
			address = call.caller;
		} else {
			uint32_t unused;
			const char *own;

			/* Its own file, although code of others may be inlined at the address. */
			err = err ?: find_line(t, p, f, f->start, &unused, &own);
			if (l->line_count) {
				const struct profile_function *known =
					&p->functions[p->lines[l->first_line].function];

				function.name = known->name;
				function.system_name = known->system_name;
			} else {
				name = find_name(t, f->name);
			}
			function.start_line = f->start_line;
			function.file = own ?: "";
		}
		if (name)
			function.name = function.system_name = name;
		if (!err && function.name)
			err = profile_add_function(p, &function, &at.function);
		if (err)
			return err;
		if (!function.name && !more)
			return 0;
		if (!function.name)
			continue; /* its code counts as its caller's */
		if (file && file != p->functions[at.function].file)
			at.file = file;
		lines[count++] = at;
		if (t->frames_left-- == 0)
			break;
	}
	/* One that is not complete could be the wrong stack. */
	if (more || !count || (count == 1 && !lines->line))
		return 0;
	return profile_set_lines(p, location, lines, count);
}

int go_table_lines(struct go_table *t, struct batch *b)
{
	struct profile_line *lines = t->limit ? calloc(DEPTH_MAX, sizeof(*lines)) : NULL;
	struct function f = { 0 };
	int err = lines || !t->limit ? 0 : -ENOMEM;

	t->work_left = WORK_LEAST + WORK_EACH * b->count;
	t->frames_left = FRAMES_MAX;
	t->last = 0;
	for (size_t i = 0; lines && !err && i < b->count && t->frames_left; i++) {
		const struct profile_location *l = &b->p->locations[b->addresses[i].location];
		uint64_t address = b->addresses[i].address;

		if (i % ASK_STOP == 0 && batch_stopped(b))
			break;
		if (l->line_count && b->p->lines[l->first_line].line)
			continue;
		if ((address >= f.start && address < f.limit) || find_function(t, address, &f))
			err = set_lines(t, b, &f, i, lines);
	}
	free(lines);
	return err;
}

/* --- Frames --- */

int go_table_frames(struct go_table *t, go_frame_found *found, void *context)
{
	struct function f;
	int err = 0;

	t->work_left = WORK_LEAST;
	for (uint64_t i = 0; i < t->count && !err; i++) {
		struct go_frame frame = { .is_first = true };
		struct program p;
		const char *file;

		if (!read_function(t, i, &f))
			continue;
		/* Functions in assembly have a wrapper of the same name, for compiled code. */
		file = find_file(t, &f, f.start);
		if (!file || strcmp(file, "<autogenerated>") != 0)
			frame.name = find_name(t, f.name);
		frame.is_outermost = f.flags & FUNCTION_TOP;
		for (p = open_program(t, f.stack, f.start); !err && next_step(&p);) {
			frame.start = p.start;
			frame.limit = MIN(p.limit, f.limit);
			frame.size = p.value;
			if (frame.start < frame.limit)
				err = found(context, &frame);
			frame.is_first = false;
		}
	}
	return err;
}
