/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_JIT_FILE_H
#define PROFIL_SYMBOL_JIT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/batch.h"
#include "symbol/elf_file.h"

/* How perf-PID.map and jit-PID.dump are read */

#define JIT_WINDOW ((size_t)64 * 1024) /* longer names are truncated */
#define JIT_BUFFER ((size_t)1024 * 1024)

/*
 * The budgets. Runtimes write maps of 100 MB with a million functions. Dumps also have the code,
 * most of which is skipped. The entries' budget also applies to source lines of functions with
 * samples.
 */
#define JIT_MAP_MAX	((uint64_t)256 * 1024 * 1024)
#define JIT_DUMP_MAX	((uint64_t)1024 * 1024 * 1024)
#define JIT_ENTRIES_MAX ((uint64_t)4 * 1024 * 1024)

struct jit_file {
	struct elf_source source;
	char *buffer; /* JIT_BUFFER bytes */
	uint64_t offset;
	size_t size;
	uint64_t limit; /* nothing is read from this offset on */
	uint64_t entries, lines;
	bool large, many_entries, many_lines; /* the budget of bytes, entries, lines is exceeded */
};

/*
 * Sets *bytes to the bytes at `offset`, valid until the next call. wanted: at most JIT_WINDOW.
 * Returns their number, less than `wanted` at the end of the file.
 */
size_t jit_read(struct jit_file *f, uint64_t offset, size_t wanted, const char **bytes);

/* Counts the entry at an offset. False: the budget is exceeded; reading ends there. */
bool jit_count_entry(struct jit_file *f, uint64_t at);

/* Counts a source line. False: the budget is exceeded. */
bool jit_count_line(struct jit_file *f);

/*
 * Finds for each address the last entry of the file that covers it. Entries are offered in the
 * order of the file, with increasing numbers above 0.
 */
struct jit_cover {
	const struct batch_address *addresses; /* sorted */
	size_t count;
	uint64_t *tree; /* a segment tree over the addresses */
};

void jit_offer(struct jit_cover *c, uint64_t start, uint64_t size, uint64_t entry);

/* The entry of address i; 0: none. */
uint64_t jit_find(const struct jit_cover *c, size_t i);

/* The name of an entry, and the source line of an address in it. Zero-initialised: none. */
struct jit_name {
	const char *text; /* valid until f is read, or find() called */
	size_t size;
	char *file; /* of the source line, to be free()d; NULL: unknown */
	uint32_t line;
};

/* Sets *name for an address in an entry. Returns 0 or -ENOMEM. */
typedef int jit_find_name(struct jit_file *f, uint64_t entry, uint64_t address, void *context,
			  struct jit_name *name);

/* Names all addresses that have an entry, by find(). Returns 0 or -ENOMEM. */
int jit_name_all(struct batch *b, struct jit_file *f, const struct jit_cover *c,
		 jit_find_name *find, void *context);

/* The two kinds of files: offer all entries, then name all addresses. Return 0 or -ENOMEM. */
int jit_map_resolve(struct batch *b, struct jit_file *f, struct jit_cover *c);
int jit_dump_resolve(struct batch *b, struct jit_file *f, struct jit_cover *c);

#endif
