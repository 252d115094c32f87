// SPDX-License-Identifier: GPL-2.0-only
#include "script/context.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script/c_library.h"
#include "script/description.h"
#include "script/language.h"
#include "symbol/symbol_table.h"
#include "util/number.h"

/* The known programs: X(name), each in a file of its own. */
#define CONTEXT_PROGRAMS(X) X(opentelemetry) X(php_request) X(postgresql)

#define CONTEXT_PROGRAM_EXTERN(name) extern const struct context_program context_##name;
CONTEXT_PROGRAMS(CONTEXT_PROGRAM_EXTERN)
#undef CONTEXT_PROGRAM_EXTERN

static const struct context_program *const programs[] = {
#define CONTEXT_PROGRAM(name) &context_##name,
	CONTEXT_PROGRAMS(CONTEXT_PROGRAM)
#undef CONTEXT_PROGRAM
};
#define PROGRAMS (sizeof(programs) / sizeof(*programs))

static const char *const kind_names[CONTEXT_KINDS] = {
	[CONTEXT_STRING] = "string",
	[CONTEXT_POINTER] = "pointer",
	[CONTEXT_U32] = "u32",
	[CONTEXT_U64] = "u64",
};

/* Relocations by which an image finds thread-local variables, of each machine. */
struct machine {
	GElf_Half number;
	uint32_t module, distance, descriptor;
};

static const struct machine machines[] = {
	{ EM_X86_64, R_X86_64_DTPMOD64, R_X86_64_TPOFF64, R_X86_64_TLSDESC },
	{ EM_AARCH64, R_AARCH64_TLS_DTPMOD, R_AARCH64_TLS_TPREL, R_AARCH64_TLSDESC },
};

/* What is found while the symbols of a file are read. */
struct search {
	const struct context_wishes *wishes;
	struct context_variable of_wishes[CONTEXT_WISHES_MAX]; /* kind 0: not found */
	struct context_variable of_programs[PROGRAMS][CONTEXT_VARIABLES];
	bool has_symbol[PROGRAMS][CONTEXT_SYMBOLS_MAX];
	uint64_t first_size[PROGRAMS]; /* of the first variable */
	const struct machine *machine; /* NULL: thread-local variables are not found */
	bool is_program;
	int64_t begin; /* of a program's thread-local data, from the thread pointer */
	struct c_library_symbols library;
};

/*
 * Where the thread-local data of a program begin: at their end, the thread pointer points on
 * x86-64, and two words before them on arm64.
 */
static void find_thread_local(struct search *s, struct elf_file *file)
{
	size_t i = 0;
	GElf_Phdr segment;
	GElf_Ehdr header;
	bool is_program;
	uint64_t at, bytes, entry[2], align;

	if (!gelf_getehdr(file->elf, &header) || header.e_ident[EI_CLASS] != ELFCLASS64)
		return;
	for (size_t m = 0; m < sizeof(machines) / sizeof(*machines); m++)
		if (machines[m].number == header.e_machine)
			s->machine = &machines[m];
	is_program = header.e_type == ET_EXEC;
	if (!is_program && elf_next_segment(file->elf, &i, PT_DYNAMIC, &segment)) {
		at = segment.p_offset;
		bytes = segment.p_filesz;
		for (; bytes >= sizeof(entry); bytes -= sizeof(entry), at += sizeof(entry)) {
			if (elf_source_read(&file->source, entry, sizeof(entry), at) !=
				    sizeof(entry) ||
			    entry[0] == DT_NULL)
				break;
			is_program |= entry[0] == DT_FLAGS_1 && entry[1] & DF_1_PIE;
		}
	}
	s->is_program = is_program;
	i = 0;
	if (!is_program || !elf_next_segment(file->elf, &i, PT_TLS, &segment))
		return;
	align = segment.p_align ?: 1;
	if (header.e_machine == EM_X86_64)
		s->begin = -((segment.p_memsz + align - 1) / align * align);
	else
		s->begin = (16 + align - 1) / align * align;
}

/*
 * Sets where a variable is. Of a library's that is thread-local, place_thread_local() goes on.
 * Returns false if that cannot be known.
 */
static bool set_place(const struct search *s, const GElf_Sym *symbol, struct context_variable *v)
{
	*v = (struct context_variable){ .address = symbol->st_value };
	if (GELF_ST_TYPE(symbol->st_info) != STT_TLS)
		return true;
	v->place = s->is_program ? CONTEXT_OF_THREAD : CONTEXT_PLACES;
	v->offset = symbol->st_value + (s->is_program ? s->begin : 0);
	v->address = 0;
	return s->machine;
}

/*
 * Of a relocation that is of a thread-local symbol of the image itself, whose address is `value`,
 * or of its module: sets where the variable is, whose place in the module is in v->offset.
 */
static void place_thread_local(const struct machine *m, const GElf_Rela *r, bool is_module,
			       uint64_t value, struct context_variable *v)
{
	uint32_t type = GELF_R_TYPE(r->r_info);
	struct context_variable found = *v;

	if (!is_module && value + r->r_addend != v->offset)
		return;
	found.address = r->r_offset;
	if (type == m->module) {
		found.place = is_module ? CONTEXT_BY_MODULE : CONTEXT_BY_INDEX;
		found.offset = is_module ? v->offset : 0;
	} else if (type == m->distance || type == m->descriptor) {
		found.place = type == m->distance ? CONTEXT_BY_DISTANCE : CONTEXT_BY_DESCRIPTOR;
		found.offset = is_module ? v->offset - r->r_addend : 0;
	} else {
		return;
	}
	*v = found;
}

/* Bound: files: tables of relocations that are read; then: those of others are not found. */
#define RELOCATION_TABLES 4

/*
 * Finds where the dynamic linker writes how far a library's thread-local variable is, or whence its
 * address is to be computed: each image with code that uses it has such a place.
 */
static void find_place(const struct search *s, struct elf_file *file, struct context_variable *v)
{
	struct context_variable of_module = *v;
	struct dwarf_section relocations, symbols;
	GElf_Shdr section, linked;
	Elf_Scn *scn = NULL;
	int tables = 0;

	while (v->place == CONTEXT_PLACES && tables < RELOCATION_TABLES &&
	       (scn = elf_nextscn(file->elf, scn))) {
		if (!gelf_getshdr(scn, &section) || section.sh_type != SHT_RELA ||
		    !gelf_getshdr(elf_getscn(file->elf, section.sh_link), &linked) ||
		    linked.sh_type != SHT_DYNSYM)
			continue;
		tables++;
		dwarf_section_open_at(&relocations, file, section.sh_offset, section.sh_size);
		dwarf_section_open_at(&symbols, file, linked.sh_offset, linked.sh_size);
		for (uint64_t at = 0; v->place == CONTEXT_PLACES; at += sizeof(Elf64_Rela)) {
			struct dwarf_cursor c =
				dwarf_section_cursor(&relocations, at, sizeof(Elf64_Rela));
			GElf_Rela r = { .r_offset = dwarf_number(&c, 8) };
			uint64_t number;

			r.r_info = dwarf_number(&c, 8);
			r.r_addend = dwarf_number(&c, 8);
			if (c.bad)
				break;
			if (GELF_R_TYPE(r.r_info) != s->machine->module &&
			    GELF_R_TYPE(r.r_info) != s->machine->distance &&
			    GELF_R_TYPE(r.r_info) != s->machine->descriptor)
				continue;
			number = GELF_R_SYM(r.r_info);
			if (!number) {
				place_thread_local(s->machine, &r, true, 0, &of_module);
				continue;
			}
			c = dwarf_section_cursor(&symbols, number * sizeof(Elf64_Sym),
						 sizeof(Elf64_Sym));
			dwarf_skip(&c, offsetof(Elf64_Sym, st_shndx));
			number = dwarf_number(&c, 2);
			if (number != SHN_UNDEF)
				place_thread_local(s->machine, &r, false, dwarf_number(&c, 8), v);
		}
		dwarf_section_close(&symbols);
		dwarf_section_close(&relocations);
	}
	/* As far as the image itself knows, others cannot provide it. */
	if (v->place == CONTEXT_PLACES)
		*v = of_module;
}

static enum context_rule rule_of(const struct context_wish *wish)
{
	for (size_t p = 0; p < PROGRAMS; p++)
		for (size_t i = 0; i < CONTEXT_VARIABLES && programs[p]->variables[i].symbol; i++)
			if (strcmp(programs[p]->variables[i].symbol, wish->symbol) == 0)
				return programs[p]->variables[i].rule;
	return strcmp(wish->label, context_label_name(NULL, CONTEXT_LABEL_QUERY)) == 0
		       ? CONTEXT_SQL
		       : CONTEXT_PLAIN;
}

/* Describes the variable of a wish. size: its own, of a symbol; 0: unknown. */
static void set_wish(struct search *s, size_t number, uint64_t size, struct context_variable v)
{
	const struct context_wish *wish = &s->wishes->wishes[number];

	v.label = number;
	v.rule = rule_of(wish);
	v.kind = wish->kind;
	if (v.kind == CONTEXT_NONE)
		v.kind = size == 4	      ? CONTEXT_U32
			 : size == 8 || !size ? CONTEXT_POINTER
					      : CONTEXT_STRING;
	v.length = wish->length;
	if (!v.length)
		v.length = v.kind == CONTEXT_STRING && size && size < CONTEXT_LENGTH
				   ? size
				   : CONTEXT_LENGTH;
	s->of_wishes[number] = v;
}

static void take_symbol(struct search *s, const char *path, const char *name,
			const GElf_Sym *symbol)
{
	const char *slash = strrchr(path, '/');
	struct context_variable v = { 0 };

	if (symbol->st_shndx == SHN_UNDEF)
		return;
	c_library_take_symbol(&s->library, name, symbol);
	for (size_t i = 0; i < s->wishes->count; i++) {
		const struct context_wish *wish = &s->wishes->wishes[i];

		if (s->of_wishes[i].kind || strcmp(name, wish->symbol) != 0 ||
		    (wish->image[0] && strcmp(wish->image, path) != 0 &&
		     strcmp(wish->image, slash ? slash + 1 : path) != 0))
			continue;
		if (set_place(s, symbol, &v))
			set_wish(s, i, symbol->st_size, v);
	}
	for (size_t p = 0; p < PROGRAMS && s->wishes->knows_programs; p++) {
		for (size_t i = 0; i < CONTEXT_SYMBOLS_MAX && programs[p]->symbols[i]; i++)
			s->has_symbol[p][i] |= strcmp(name, programs[p]->symbols[i]) == 0;
		for (size_t i = 0; i < CONTEXT_VARIABLES && programs[p]->variables[i].symbol; i++)
			if (strcmp(name, programs[p]->variables[i].symbol) == 0 &&
			    set_place(s, symbol, &v)) {
				v.address += programs[p]->variables[i].within;
				v.label = programs[p]->variables[i].label;
				v.kind = programs[p]->variables[i].kind;
				v.rule = programs[p]->variables[i].rule;
				v.part = programs[p]->variables[i].part;
				v.length = CONTEXT_LENGTH;
				s->of_programs[p][i] = v;
				if (!i)
					s->first_size[p] = symbol->st_size;
			}
	}
}

static void read_symbols(struct search *s, struct elf_file *file, const char *path, GElf_Word type)
{
	struct symbol_reader reader;
	struct error ignored;
	const char *name;
	GElf_Sym symbol;

	if (symbol_reader_open(&reader, file, type, &ignored) == 0)
		while (symbol_reader_next(&reader, &symbol, &name))
			take_symbol(s, path, name, &symbol);
	symbol_reader_close(&reader);
}

/* Whether the file has all symbols by which the program is known, and its first variable. */
static bool is_program(const struct search *s, size_t number)
{
	bool has_all = s->of_programs[number][0].kind;

	for (size_t i = 0; i < CONTEXT_SYMBOLS_MAX && programs[number]->symbols[i]; i++)
		has_all &= s->has_symbol[number][i];
	return has_all;
}

/* Whether a label of a program is also one that was asked for. */
static bool is_wished(const struct context_wishes *wishes, unsigned int label)
{
	for (size_t i = 0; i < wishes->count; i++)
		if (strcmp(wishes->wishes[i].label, context_label_name(wishes, label)) == 0)
			return true;
	return false;
}

/* As context_find(). *unknown: as context_unknown_version() returns it. */
static void find(struct elf_file *file, const char *path, const struct context_wishes *wishes,
		 struct context_image *image, const char **unknown)
{
	const char *slash = strrchr(path, '/');
	struct search s = { .wishes = wishes };
	size_t placed = 0, before;
	bool lacks = false;

	*image = (struct context_image){ 0 };
	*unknown = NULL;
	if (!wishes || (!wishes->count && !wishes->knows_programs))
		return;
	find_thread_local(&s, file);
	for (size_t i = 0; i < wishes->count; i++) {
		const struct context_wish *wish = &wishes->wishes[i];

		if (wish->address && (strcmp(wish->image, path) == 0 ||
				      strcmp(wish->image, slash ? slash + 1 : path) == 0))
			set_wish(&s, i, 0, (struct context_variable){ .address = wish->address });
	}
	read_symbols(&s, file, path, SHT_DYNSYM);
	for (size_t i = 0; i < wishes->count; i++)
		lacks |= !s.of_wishes[i].kind && !wishes->wishes[i].address;
	if (lacks)
		read_symbols(&s, file, path, SHT_SYMTAB);
	for (size_t i = 0; i < wishes->count; i++)
		if (s.of_wishes[i].kind && image->count < CONTEXT_VARIABLES)
			image->variables[image->count++] = s.of_wishes[i];
	for (size_t p = 0; p < PROGRAMS && wishes->knows_programs; p++) {
		if (!is_program(&s, p))
			continue;
		if (programs[p]->complete)
			programs[p]->complete(file, s.first_size[p], s.of_programs[p]);
		if (!s.of_programs[p][0].kind)
			*unknown = programs[p]->name;
		before = image->count;
		for (size_t i = 0; i < CONTEXT_VARIABLES && programs[p]->variables[i].symbol; i++) {
			if (!before && i == programs[p]->fixed)
				image->fixed = image->count;
			if (s.of_programs[p][i].kind && image->count < CONTEXT_VARIABLES &&
			    !is_wished(wishes, s.of_programs[p][i].label))
				image->variables[image->count++] = s.of_programs[p][i];
			else if (i >= programs[p]->fixed)
				image->fixed = 0; /* perhaps it was the last one */
		}
	}
	if (wishes->knows_programs && s.machine && s.machine->number == EM_X86_64 &&
	    !context_find_go(file, s.is_program ? -s.begin : 0, image))
		*unknown = "Go";
	for (size_t i = 0; i < image->count; i++) {
		if (wishes->literal)
			image->variables[i].rule |= CONTEXT_LITERAL;
		if (image->variables[i].place == CONTEXT_PLACES)
			find_place(&s, file, &image->variables[i]);
		if (image->variables[i].place != CONTEXT_PLACES)
			image->variables[placed++] = image->variables[i];
	}
	while (image->count > placed)
		image->variables[--image->count] = (struct context_variable){ 0 };
	if (s.machine)
		image->vector = c_library_vector(file, s.machine->number, &s.library);
}

void context_find(struct elf_file *file, const char *path, const struct context_wishes *wishes,
		  struct context_image *image)
{
	const char *unknown;

	find(file, path, wishes, image, &unknown);
}

int context_version(const struct elf_file *file, const char *text, unsigned int version[static 3])
{
	size_t size, length = strlen(text);
	char *bytes = elf_section_bytes(file, ".rodata", CONTEXT_CONSTANTS_MAX, &size);
	const char *at = bytes, *end = bytes + size;
	char numbers[12];
	int count = 0;

	while (bytes && count < 1 && (at = memmem(at, end - at, text, length))) {
		at += length;
		snprintf(numbers, sizeof(numbers), "%.*s", (int)(end - at < 11 ? end - at : 11),
			 at);
		count = sscanf(numbers, "%3u.%3u.%3u", &version[0], &version[1], &version[2]);
	}
	free(bytes);
	return count > 0 ? count : 0;
}

bool context_takes_stacks(int fd)
{
	const struct context_wishes wishes = { .knows_programs = true };
	struct context_image image = { 0 };
	struct read_budget budget;
	struct elf_file file;

	if (language_is_interpreter(fd))
		return true;
	if (!language_open_file(fd, &budget, &file))
		return false;
	context_find(&file, "", &wishes, &image);
	elf_file_close(&file);
	return image.count;
}

const char *context_unknown_version(int fd)
{
	const struct context_wishes wishes = { .knows_programs = true };
	struct context_image image;
	struct read_budget budget;
	struct elf_file file;
	const char *unknown;

	if (!language_open_file(fd, &budget, &file))
		return NULL;
	find(&file, "", &wishes, &image, &unknown);
	elf_file_close(&file);
	return unknown;
}

/* --- What is asked for --- */

static bool is_name(const char *name)
{
	if (!*name || (*name >= '0' && *name <= '9'))
		return false;
	return !name[strspn(name, "abcdefghijklmnopqrstuvwxyz_.0123456789")];
}

static int copy_part(char *to, size_t size, const char *from, size_t length)
{
	if (length >= size)
		return -EINVAL;
	memcpy(to, from, length);
	to[length] = '\0';
	return 0;
}

/* Takes the last part behind a colon off the text; NULL: there is none. */
static const char *take_last(char *text)
{
	char *colon = strrchr(text, ':');

	if (colon)
		*colon = '\0';
	return colon ? colon + 1 : NULL;
}

static int parse_wish(const char *text, struct context_wish *wish)
{
	const char *equals = strchr(text, '='), *part;
	char rest[2 * CONTEXT_SYMBOL_SIZE + 32], *colon;
	uint64_t number;

	if (!equals || copy_part(wish->label, sizeof(wish->label), text, equals - text) ||
	    !is_name(wish->label) || copy_part(rest, sizeof(rest), equals + 1, strlen(equals + 1)))
		return -EINVAL;
	colon = strrchr(rest, ':');
	if (colon && number_parse(colon + 1, 1, CONTEXT_LENGTH, &number) == 0) {
		wish->length = number;
		take_last(rest);
		colon = strrchr(rest, ':');
	}
	for (int kind = CONTEXT_STRING; kind < CONTEXT_RECORD && colon; kind++)
		if (strcmp(colon + 1, kind_names[kind]) == 0)
			wish->kind = kind;
	if (wish->kind)
		take_last(rest);
	else if (wish->length)
		return -EINVAL; /* a length needs a kind, or an image that ends with a number */
	part = take_last(rest);
	if (part && (!*rest || copy_part(wish->image, sizeof(wish->image), rest, strlen(rest))))
		return -EINVAL;
	part = part ?: rest;
	if (!*part || copy_part(wish->symbol, sizeof(wish->symbol), part, strlen(part)))
		return -EINVAL;
	if (strncmp(part, "0x", 2) != 0)
		return 0;
	if (!wish->image[0] || !wish->kind || number_parse_hex(part, 1, UINT64_MAX, &wish->address))
		return -EINVAL;
	return 0;
}

void context_format(const struct context_wish *wish, char *text, size_t size)
{
	char address[24], length[8];

	snprintf(address, sizeof(address), "0x%" PRIx64, wish->address);
	snprintf(length, sizeof(length), ":%u", wish->length);
	snprintf(text, size, "%s=%s%s%s%s%s%s", wish->label, wish->image, wish->image[0] ? ":" : "",
		 wish->address ? address : wish->symbol, wish->kind ? ":" : "",
		 wish->kind ? kind_names[wish->kind] : "", wish->length ? length : "");
}

int context_parse(const char *text, struct context_wishes *wishes, struct error *e)
{
	struct context_wish wish = { 0 };

	if (wishes->count == CONTEXT_WISHES_MAX)
		return error_set(e, 0, "--label was given more than %d times", CONTEXT_WISHES_MAX);
	if (parse_wish(text, &wish)) {
		error_set(e, 0, "--label takes NAME=[IMAGE:]SYMBOL[:KIND[:LENGTH]], not \"%s\"",
			  text);
		error_hint(
			e,
			"query=debug_query_string, or tenant=server:current_tenant:u32: KIND is "
			"string, pointer, u32 or u64, LENGTH 1 to %d; NAME has small letters; an "
			"address, 0x..., needs IMAGE and KIND",
			CONTEXT_LENGTH);
		return -EINVAL;
	}
	for (size_t i = 0; i < wishes->count; i++)
		if (strcmp(wishes->wishes[i].label, wish.label) == 0)
			return error_set(e, 0, "--label gives \"%s\" two variables", wish.label);
	wishes->wishes[wishes->count++] = wish;
	return 0;
}
