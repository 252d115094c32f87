// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/entry.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/cfi/x86_decode.h"
#include "symbol/demangle.h"
#include "symbol/elf/debug_file.h"
#include "symbol/elf_file.h"
#include "symbol/go_table.h"
#include "symbol/symbol_table.h"

/* Debug files with the wrong checksum may have so many bytes. Bound: pace. */
#define CHECKSUM_BYTES (1ULL << 30)

/* Bound: files: bytes of a function's code; then: its calls are not recorded, which is an error. */
#define CODE_BYTES_MAX (1 << 20)

struct search {
	const char *function;
	size_t size;	    /* of its name */
	uint64_t address;   /* ELF virtual address */
	uint64_t bytes;	    /* of its code */
	unsigned int found; /* different addresses */
};

/* Whether a symbol has the name, mangled or not, with or without parameters. */
static bool has_name(const struct search *s, const char *name)
{
	bool same = strcmp(name, s->function) == 0;
	char *shown = same || (name[0] != '_' && name[0] != 'R') ? NULL : demangle(name);

	if (shown)
		same = strncmp(shown, s->function, s->size) == 0 &&
		       (!shown[s->size] || shown[s->size] == '(');
	free(shown);
	return same;
}

/* Adds the functions of this name in a table. Returns 0, also without the table, or -errno. */
static int search_table(struct search *s, struct elf_file *file, GElf_Word type, struct error *e)
{
	struct symbol_reader reader;
	const char *name;
	GElf_Sym symbol;
	int err = symbol_reader_open(&reader, file, type, e);

	while (!err && symbol_reader_next(&reader, &symbol, &name)) {
		if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
		    (s->found && symbol.st_value == s->address) || !has_name(s, name))
			continue;
		s->address = symbol.st_value;
		s->bytes = symbol.st_size;
		s->found++;
	}
	symbol_reader_close(&reader);
	return err;
}

static bool is_of_go(const struct elf_file *file, uint64_t address)
{
	struct go_table go;
	bool is;

	go_table_open(&go, file, false);
	is = go.is_unreadable || (address >= go.start && address < go.limit);
	go_table_close(&go);
	return is;
}

enum ending {
	GOES_ON,
	ENDS,
	JUMPS, /* perhaps to another function */
	UNKNOWN
};

static enum ending ending_x86(const uint8_t *code, size_t size, size_t at, size_t *length)
{
	struct x86_instruction i;

	if (!x86_decode(code + at, size - at, &i))
		return UNKNOWN;
	*length = i.size;
	if (i.flow == X86_JUMP && i.has_target)
		return (int64_t)at + i.target < 0 || (int64_t)at + i.target >= (int64_t)size
			       ? ENDS
			       : GOES_ON;
	return i.flow == X86_RETURN ? ENDS : i.flow == X86_JUMP_INDIRECT ? JUMPS : GOES_ON;
}

/* The Arm architecture's manual: "Branches, Exception Generating and System instructions". */
static enum ending ending_arm64(const uint8_t *code, size_t size, size_t at, size_t *length)
{
	uint32_t word;
	int64_t to;

	if (size - at < sizeof(word))
		return UNKNOWN;
	memcpy(&word, code + at, sizeof(word));
	word = le32toh(word);
	*length = sizeof(word);
	if ((word & 0xfc000000) == 0x14000000) {
		to = (int64_t)at + (int64_t)((int32_t)(word << 6) >> 6) * 4;
		return to < 0 || to >= (int64_t)size ? ENDS : GOES_ON;
	}
	if ((word & 0xfffffc1f) == 0xd65f0000 || word == 0xd65f0bff || word == 0xd65f0fff)
		return ENDS;
	return (word & 0xfffffc1f) == 0xd61f0000 ? JUMPS : GOES_ON;
}

/* Lists the instructions that end the function. Returns 0 or -errno with e set. */
static int find_returns(const struct search *s, const struct elf_file *file, const char *path,
			struct symbol_entry *entry, struct error *e)
{
	GElf_Ehdr header;
	uint8_t *code = s->bytes <= CODE_BYTES_MAX ? malloc(s->bytes + 1) : NULL;
	const char *why = NULL;
	size_t length = 0;

	if (!gelf_getehdr(file->elf, &header) ||
	    (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64))
		why = "its code is not of a machine that is known";
	else if (!s->bytes || s->bytes > CODE_BYTES_MAX)
		why = "the symbol says no length, or one above 1 MiB";
	else if (!code)
		why = "out of memory";
	else if (elf_source_read(&file->source, code, s->bytes, entry->offset) != s->bytes)
		why = "its code cannot be read";
	/* First what ends it in any case; else jumps to what a pointer says. */
	for (enum ending of = ENDS; of <= JUMPS && !why && !entry->count; of++)
		for (size_t at = 0; at < s->bytes && !why; at += length) {
			enum ending is = header.e_machine == EM_X86_64
						 ? ending_x86(code, s->bytes, at, &length)
						 : ending_arm64(code, s->bytes, at, &length);

			if (is == UNKNOWN)
				why = "its code has an instruction that is not known";
			else if (is == of && entry->count == entry->max)
				why = "it returns at too many places";
			else if (is == of)
				entry->returns[entry->count++] = entry->offset + at;
		}
	if (!why && !entry->count)
		why = "it never returns";
	free(code);
	return why ? error_set(e, 0, "cannot follow calls of \"%s\" in %s: %s", s->function, path,
			       why)
		   : 0;
}

int symbol_find_entry(int fd, int root, const char *path, const char *function,
		      struct symbol_entry *entry, struct error *e)
{
	struct search s = { .function = function, .size = strlen(function) };
	struct elf_file file = { 0 }, debug = { 0 }, mini = { 0 };
	uint64_t checksum_bytes = CHECKSUM_BYTES;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0), err;

	if (own < 0)
		return error_set(e, errno, "cannot open %s", path);
	err = elf_file_open(&file, own, NULL, e);
	if (err)
		return err;
	err = search_table(&s, &file, SHT_SYMTAB, e);
	if (!err && !s.found && debug_file_find(&file, root, path, &checksum_bytes, &debug))
		err = search_table(&s, &debug, SHT_SYMTAB, e);
	if (!err && !s.found && debug_data_unpack(&file, &mini))
		err = search_table(&s, &mini, SHT_SYMTAB, e);
	if (!err && !s.found)
		err = search_table(&s, &file, SHT_DYNSYM, e);
	if (!err && s.found > 1) {
		err = error_set(e, 0, "%s has %u functions \"%s\"", path, s.found, function);
	} else if (!err && !s.found) {
		err = error_set(e, 0,
				"%s has no function \"%s\": it may be inlined everywhere, or be "
				"without a symbol",
				path, function);
		error_hint(e,
			   "nm -C FILE, or nm -CD FILE if it is stripped, lists those that it has");
	} else if (!err && entry->returns && is_of_go(&file, s.address)) {
		err = error_set(e, 0,
				"%s is a program in Go, whose functions may go on in other threads",
				path);
	} else if (!err && !elf_address_bytes(file.elf, s.address, &entry->offset)) {
		err = error_set(e, 0, "%s has no code where its function \"%s\" is to be", path,
				function);
	}
	if (!err && entry->returns)
		err = find_returns(&s, &file, path, entry, e);
	elf_file_close(&file);
	elf_file_close(&debug);
	elf_file_close(&mini);
	return err;
}
