// SPDX-License-Identifier: GPL-2.0-only
#include "script/context.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/symbol_table.h"

/*
 * What a Go program gives to pprof.Do() or pprof.SetGoroutineLabels() is in the goroutine that a
 * thread runs, which the thread pointer leads to. tests/cli/go.sh records what the installed Go
 * has.
 */

/*
 * Where runtime.g has the labels, and runtime.m the current goroutine: from the debug information
 * of 1.19.8, 1.21.13, 1.22.12, 1.23.12, 1.24.4, 1.26.2 and 1.27.3. Of other versions nothing is
 * read.
 */
static const struct {
	unsigned int first, last; /* minor versions of Go 1 */
	enum context_kind kind;
	unsigned short labels, current;
} layouts[] = {
	{ 19, 19, CONTEXT_GO_MAP, 360, 192 },	{ 21, 22, CONTEXT_GO_MAP, 344, 192 },
	{ 23, 23, CONTEXT_GO_MAP, 352, 192 },	{ 24, 24, CONTEXT_GO_SLICE, 352, 192 },
	{ 26, 27, CONTEXT_GO_SLICE, 352, 184 },
};

/*
 * Bound: files: bytes of the names of a Go program's functions; then: it is taken to have no
 * labels.
 */
#define NAMES_MAX ((size_t)16 << 20)

/* Returns the minor version of Go 1 that has built the file; 0: another, or none. */
static unsigned int read_version(const struct elf_file *file)
{
	static const char magic[] = "\xff Go buildinf:";
	unsigned int version = 0;
	size_t size;
	char *info = elf_section_bytes(file, ".go.buildinfo", 4096, &size);

	/* Behind 32 bytes: the length of the text, and the text. Before Go 1.18, pointers. */
	if (info && size > 40 && memcmp(info, magic, strlen(magic)) == 0 && info[15] & 2) {
		info[size - 1] = '\0';
		if (sscanf(info + 33, "go1.%3u", &version) != 1)
			version = 0;
	}
	free(info);
	return version;
}

/* Whether the program has the function that sets labels, by the names that tracebacks print. */
static bool sets_labels(const struct elf_file *file)
{
	static const char setter[] = "runtime/pprof.runtime_setProfLabel";
	/* The header: 8 bytes, and numbers; the names begin at the fourth, up to the fifth. */
	uint64_t header[6];
	GElf_Shdr section;
	bool found = false;
	size_t size;
	char *names = NULL;

	if (elf_find_section(file->elf, ".gopclntab", &section) &&
	    elf_source_read(&file->source, header, sizeof(header), section.sh_offset) ==
		    sizeof(header) &&
	    header[4] < header[5] && header[5] <= section.sh_size &&
	    header[5] - header[4] <= NAMES_MAX) {
		size = header[5] - header[4];
		names = malloc(size);
		found = names &&
			elf_source_read(&file->source, names, size,
					section.sh_offset + header[4]) == size &&
			memmem(names, size, setter, sizeof(setter));
	}
	free(names);
	return found;
}

/*
 * Where the pointer to the goroutine is, from the thread pointer: before it, in a program whose
 * thread-local data are Go's alone. With those of C, linked by its linker, a symbol says where.
 * Returns 0 if that is not known.
 */
static int64_t find_pointer(struct elf_file *file, uint64_t thread_local_size)
{
	struct symbol_reader reader;
	struct error ignored;
	GElf_Ehdr header;
	const char *name;
	GElf_Sym symbol;
	int64_t at = 0;

	if (!thread_local_size)
		return gelf_getehdr(file->elf, &header) && header.e_type == ET_EXEC ? -8 : 0;
	if (thread_local_size == 8)
		return -8;
	if (symbol_reader_open(&reader, file, SHT_SYMTAB, &ignored) == 0)
		while (!at && symbol_reader_next(&reader, &symbol, &name))
			if (GELF_ST_TYPE(symbol.st_info) == STT_TLS &&
			    strcmp(name, "runtime.tlsg") == 0)
				at = symbol.st_value - thread_local_size;
	symbol_reader_close(&reader);
	return at;
}

bool context_find_go(struct elf_file *file, uint64_t thread_local_size, struct context_image *image)
{
	struct context_variable v = {
		.rule = CONTEXT_PLAIN,
		.label = CONTEXT_LABEL_COUNT,
		.place = CONTEXT_OF_THREAD,
	};
	unsigned int version = read_version(file);

	if (!version || image->count == CONTEXT_VARIABLES || !sets_labels(file))
		return true;
	v.offset = find_pointer(file, thread_local_size);
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts) && v.offset; i++)
		if (version >= layouts[i].first && version <= layouts[i].last) {
			v.kind = layouts[i].kind;
			v.within = layouts[i].labels;
			v.current = layouts[i].current;
			image->variables[image->count++] = v;
			return true;
		}
	return !v.offset;
}
