/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_DISASSEMBLY_H
#define PROFIL_REPORT_DISASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

/* The instructions of a part of an ELF file, as objdump(1) of binutils prints them. */

/*
 * Instructions. More than any function has: the size of such a symbol is wrong.
 * Bound: files: instructions of a function; then: it is not shown.
 */
#define DISASSEMBLY_MAX 1000000

/*
 * Seconds that objdump may take, which it needs mostly to read the symbols of large files.
 * Bound: files: time for objdump; then: the code is not shown.
 */
#define DISASSEMBLY_SECONDS 60

struct instruction {
	uint64_t address;
	char *text;
	uint64_t target; /* address that it jumps to; 0: none, or unknown */
	bool is_target;	 /* one in the disassembly jumps here */
};

struct disassembly {
	struct instruction *instructions; /* ordered by address */
	size_t count, room;
};

/*
 * Disassembles [start, limit), in the file's own numbering, in `seconds` at most. Returns 0, or a
 * negative errno with e set; call disassembly_free() in any case.
 */
int disassemble(struct disassembly *d, const char *path, uint64_t start, uint64_t limit,
		unsigned int seconds, struct error *e);
void disassembly_free(struct disassembly *d);

/* The number of the instruction that contains an address, or SIZE_MAX. */
size_t disassembly_find(const struct disassembly *d, uint64_t address);

/* The number of the instruction that instruction `number` jumps to, or SIZE_MAX. */
size_t disassembly_target(const struct disassembly *d, size_t number);

#endif
