// SPDX-License-Identifier: GPL-2.0-only
#include "script/context.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "script/description.h"
#include "symbol/symbol_table.h"
#include "util/number.h"

/* The known programs: X(name), each in a file of its own. */
#define CONTEXT_PROGRAMS(X) X(postgresql)

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

/* What is found while the symbols of a file are read. */
struct search {
	const struct context_wishes *wishes;
	struct context_variable of_wishes[CONTEXT_WISHES_MAX]; /* kind 0: not found */
	struct context_variable of_programs[PROGRAMS][CONTEXT_VARIABLES];
	bool has_symbol[PROGRAMS][CONTEXT_SYMBOLS_MAX];
	uint64_t thread_local_size; /* of the program's own; 0: it is no program, or has none */
};

/*
 * The distance of the end of a program's thread-local data from their begin: at their end, the
 * thread pointer points. Where those of libraries are, only the C library knows.
 */
static uint64_t find_thread_local_size(struct elf_file *file)
{
	size_t i = 0;
	GElf_Phdr segment;
	GElf_Ehdr header;
	bool is_program;
	uint64_t at, bytes, entry[2];

	if (!gelf_getehdr(file->elf, &header) || header.e_machine != EM_X86_64 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
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
	i = 0;
	if (!is_program || !elf_next_segment(file->elf, &i, PT_TLS, &segment))
		return 0;
	if (segment.p_align < 2)
		return segment.p_memsz;
	return (segment.p_memsz + segment.p_align - 1) / segment.p_align * segment.p_align;
}

/* Sets where a variable is. Returns false if that cannot be known. */
static bool set_place(const struct search *s, const GElf_Sym *symbol, struct context_variable *v)
{
	v->is_thread_local = GELF_ST_TYPE(symbol->st_info) == STT_TLS;
	v->address = symbol->st_value;
	if (v->is_thread_local)
		v->address -= s->thread_local_size;
	return !v->is_thread_local || s->thread_local_size;
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
	v.rule = s->wishes->literal ? CONTEXT_LITERAL : rule_of(wish);
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
				v.label = programs[p]->variables[i].label;
				v.kind = programs[p]->variables[i].kind;
				v.rule = s->wishes->literal ? CONTEXT_LITERAL
							    : programs[p]->variables[i].rule;
				v.length = CONTEXT_LENGTH;
				s->of_programs[p][i] = v;
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

void context_find(struct elf_file *file, const char *path, const struct context_wishes *wishes,
		  struct context_image *image)
{
	const char *slash = strrchr(path, '/');
	struct search s = { .wishes = wishes };
	bool lacks = false;

	*image = (struct context_image){ 0 };
	if (!wishes || (!wishes->count && !wishes->knows_programs))
		return;
	s.thread_local_size = find_thread_local_size(file);
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
	for (size_t p = 0; p < PROGRAMS && wishes->knows_programs; p++)
		for (size_t i = 0; i < CONTEXT_VARIABLES && is_program(&s, p); i++)
			if (s.of_programs[p][i].kind && image->count < CONTEXT_VARIABLES &&
			    !is_wished(wishes, s.of_programs[p][i].label))
				image->variables[image->count++] = s.of_programs[p][i];
}

bool context_is_known(int fd)
{
	const struct context_wishes wishes = { .knows_programs = true };
	struct context_image image = { 0 };
	struct read_budget budget;
	struct elf_file file;

	if (!language_open_file(fd, &budget, &file))
		return false;
	context_find(&file, "", &wishes, &image);
	elf_file_close(&file);
	return image.count;
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
	for (int kind = CONTEXT_STRING; kind < CONTEXT_KINDS && colon; kind++)
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
