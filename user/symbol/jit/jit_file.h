/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_JIT_FILE_H
#define PROFIL_SYMBOL_JIT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/batch.h"

/* What such a file is read by */
#define JIT_WINDOW ((size_t)64 * 1024) /* longer lines and names are cut */
#define JIT_BUFFER ((size_t)1024 * 1024)

/*
 * The budgets. Engines write maps of 100 MB with a million functions; dumps hold the code besides,
 * most of which is passed over. Source lines, of the functions with samples, have one of their own.
 */
#define JIT_MAP_MAX	((uint64_t)256 * 1024 * 1024)
#define JIT_DUMP_MAX	((uint64_t)1024 * 1024 * 1024)
#define JIT_ENTRIES_MAX ((uint64_t)4 * 1024 * 1024)

struct jit_file {
	int fd;
	char *buffer; /* JIT_BUFFER bytes */
	uint64_t offset;
	size_t size;
	uint64_t limit; /* what stands from here on is not read */
	uint64_t entries, lines;
	bool large, crowded, long_winded; /* a budget is used up: bytes, entries, lines */
};

/*
 * What stands at `offset`: *bytes, until the next call. Returns how many bytes they are: `wanted`
 * (at most JIT_WINDOW), or less when the file ends there.
 */
size_t jit_read(struct jit_file *f, uint64_t offset, size_t wanted, const char **bytes);

/* Counts the entry at `at`. False: it is one too many, and the file ends there. */
bool jit_count_entry(struct jit_file *f, uint64_t at);

/* Counts a source line. False: it is one too many. */
bool jit_count_line(struct jit_file *f);

/*
 * Which entry of the file holds each address: the last one that covers it. Entries pass by in
 * their order, each with a number that grows and is not 0.
 */
struct jit_cover {
	const struct batch_address *addresses; /* sorted */
	size_t count;
	uint64_t *tree; /* a segment tree over the addresses */
};

void jit_offer(struct jit_cover *c, uint64_t start, uint64_t size, uint64_t entry);

/* The entry of address i; 0: none. */
uint64_t jit_find(const struct jit_cover *c, size_t i);

/*
 * Names all addresses that have an entry. find: the name in an entry, and the source line for an
 * address in it, when it tells one; *size is 0 when there is no name.
 */
struct jit_name {
	const char *text; /* until f is read again, or find called */
	size_t size;
	char *file; /* of the source line, to be free()d; NULL: not known */
	uint32_t line;
};

typedef int jit_find_name(struct jit_file *f, uint64_t entry, uint64_t address, void *context,
			  struct jit_name *name);

int jit_name_all(struct batch *b, struct jit_file *f, const struct jit_cover *c,
		 jit_find_name *find, void *context);

/* The two kinds of file. Each offers all its entries, and then names all addresses. */
int jit_map_resolve(struct batch *b, struct jit_file *f, struct jit_cover *c);
int jit_dump_resolve(struct batch *b, struct jit_file *f, struct jit_cover *c);

#endif
