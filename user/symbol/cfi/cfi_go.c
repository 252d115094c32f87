// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/cfi/cfi_go.h"

#include <assert.h>
#include <string.h>

#include "symbol/symbol_table.h"

/*
 * Since Go 1.17 a symbol of assembly ends with ".abi0", unless it has the ABI of compiled code.
 * Then the name alone is that of compiled code, which calls the assembly.
 */
static const struct {
	const char *name;
	enum unwind_switch kind;
} functions[] = {
	{ "runtime.systemstack", UNWIND_SWITCH_CALLED },
	{ "runtime.asmcgocall", UNWIND_SWITCH_CALLED },
	{ "runtime.morestack", UNWIND_SWITCH_INTERRUPTED },
	{ "runtime.mcall", UNWIND_SWITCH_ENDS },
	{ "runtime.goexit", UNWIND_SWITCH_ENDS }, /* what a goroutine returns to */
	{ "runtime.cgocallback", UNWIND_SWITCH_BACK },
	{ "runtime.mstart", UNWIND_SWITCH_ENDS }, /* a thread's first function */
	{ "runtime.rt0_go", UNWIND_SWITCH_ENDS }, /* the program's */
	{ "runtime.nanotime1", UNWIND_SWITCH_BP },
	{ "runtime.walltime", UNWIND_SWITCH_BP },
	{ "time.now", UNWIND_SWITCH_BP },
};

#define FUNCTION_COUNT (sizeof(functions) / sizeof(*functions))

static_assert(FUNCTION_COUNT <= CFI_SWITCHES_MAX, "all functions have room");

/* The functions found, by their numbers in the table above. */
struct found {
	uint64_t starts[FUNCTION_COUNT]; /* 0: not found */
	bool assembly[FUNCTION_COUNT];	 /* by the name with ".abi0" */
};

static void offer(struct found *found, const char *name, uint64_t start)
{
	for (size_t i = 0; i < FUNCTION_COUNT; i++) {
		size_t length = strlen(functions[i].name);
		bool assembly;

		if (strncmp(name, functions[i].name, length) != 0)
			continue;
		assembly = strcmp(name + length, ".abi0") == 0;
		if (!assembly && (name[length] || found->assembly[i]))
			continue;
		found->starts[i] = start;
		found->assembly[i] = assembly;
	}
}

void cfi_switches_read(struct cfi_switches *s, struct elf_file *file)
{
	struct symbol_reader reader;
	struct found found = { 0 };
	struct error ignored;
	GElf_Shdr section;
	const char *name;
	GElf_Sym symbol;

	if (!elf_find_section(file->elf, ".note.go.buildid", &section))
		return;
	if (symbol_reader_open(&reader, file, SHT_SYMTAB, &ignored) == 0)
		while (symbol_reader_next(&reader, &symbol, &name))
			if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC &&
			    symbol.st_shndx != SHN_UNDEF && (*name == 'r' || *name == 't'))
				offer(&found, name, symbol.st_value);
	symbol_reader_close(&reader);
	for (size_t i = 0; i < FUNCTION_COUNT; i++)
		if (found.starts[i])
			s->all[s->count++] =
				(struct cfi_switch){ found.starts[i], functions[i].kind };
}

const struct cfi_switch *cfi_switches_find(const struct cfi_switches *s, uint64_t start)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->all[i].start == start)
			return &s->all[i];
	return NULL;
}
