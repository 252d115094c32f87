// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/demangle.h"
#include "symbol/elf/debug_file.h"
#include "symbol/elf_file.h"
#include "symbol/go_table.h"
#include "symbol/symbol_table.h"

/* Debug files with the wrong checksum may have so many bytes. Bound: pace. */
#define CHECKSUM_BYTES (1ULL << 30)

struct search {
	const char *function;
	size_t size;	    /* of its name */
	uint64_t address;   /* ELF virtual address */
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

int symbol_find_entry(int fd, int root, const char *path, const char *function, uint64_t *offset,
		      struct error *e)
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
	} else if (!err && is_of_go(&file, s.address)) {
		err = error_set(e, 0,
				"%s is a program in Go, which moves its stacks: a probe at the "
				"return of a function would crash it",
				path);
	} else if (!err && !elf_address_bytes(file.elf, s.address, offset)) {
		err = error_set(e, 0, "%s has no code where its function \"%s\" is to be", path,
				function);
	}
	elf_file_close(&file);
	elf_file_close(&debug);
	elf_file_close(&mini);
	return err;
}
