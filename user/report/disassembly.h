/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_DISASSEMBLY_H
#define PROFIL_REPORT_DISASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

/* The instructions of a part of an ELF file, as objdump(1) of binutils prints them. */

#define NO_SOURCE SIZE_MAX

struct instruction {
	uint64_t address;
	char *text;
	uint64_t target;   /* where it may jump to; 0: it does not, or nobody can know */
	bool is_target;	   /* another one in the disassembly jumps here */
	size_t new_source; /* the source lines that begin here: new_source .. source */
	size_t source;	   /* the line that it belongs to; NO_SOURCE: not known */
};

struct disassembly {
	struct instruction *instructions; /* by address, rising */
	size_t count, room;
	char **sources; /* "FILE:LINE  text", or "FILE:LINE" when the file is not there */
	size_t source_count, source_room;
};

/*
 * Disassembles [start, limit), in the file's own numbering. sources: with source lines, where the
 * file has them; this takes long for large ones. Returns 0, or a negative errno with e set;
 * disassembly_free() is due in any case.
 */
int disassemble(struct disassembly *d, const char *path, uint64_t start, uint64_t limit,
		bool sources, struct error *e);
void disassembly_free(struct disassembly *d);

/* The number of the instruction that holds an address, or SIZE_MAX. */
size_t disassembly_find(const struct disassembly *d, uint64_t address);

#endif
