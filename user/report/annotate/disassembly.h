/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_DISASSEMBLY_H
#define PROFIL_REPORT_DISASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

/* The instructions of a part of an ELF file, as objdump(1) of binutils prints them. */

/* More than any function has: a symbol that claims so much is wrong. */
#define DISASSEMBLY_MAX 1000000

/* Seconds that objdump may take: most of it for reading the symbols of a large file. */
#define DISASSEMBLY_SECONDS 60

struct instruction {
	uint64_t address;
	char *text;
	uint64_t target; /* where it may jump to; 0: it does not, or nobody can know */
	bool is_target;	 /* another one in the disassembly jumps here */
};

struct disassembly {
	struct instruction *instructions; /* by address, rising */
	size_t count, room;
};

/*
 * Disassembles [start, limit), in the file's own numbering, in so many seconds. Returns 0, or a
 * negative errno with e set; disassembly_free() is due in any case.
 */
int disassemble(struct disassembly *d, const char *path, uint64_t start, uint64_t limit,
		unsigned int seconds, struct error *e);
void disassembly_free(struct disassembly *d);

/* The number of the instruction that holds an address, or SIZE_MAX. */
size_t disassembly_find(const struct disassembly *d, uint64_t address);

/* The number of the instruction that it jumps to in the disassembly, or SIZE_MAX. */
size_t disassembly_target(const struct disassembly *d, size_t number);

#endif
