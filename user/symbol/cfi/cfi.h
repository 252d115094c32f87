/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_CFI_H
#define PROFIL_SYMBOL_CFI_H

#include <stddef.h>
#include <stdint.h>

#include "capture/unwind/unwind_rows.h"
#include "symbol/elf_file.h"

/*
 * Call frame information: what finds the callers of code that has no frame pointers. It also tells
 * where functions begin and end in files that have no symbols.
 */

/*
 * Of x86-64 files; others have no rows. The rows are the caller's to free unless it fails:
 * -EINVAL (corrupt, or more than a limit), -ENOMEM, or why the file cannot be read.
 */
unwind_reader cfi_read;

struct cfi_function {
	uint64_t start, limit; /* ELF virtual addresses */
};

/* Sorted, and they do not overlap. Zero-initialised is none. */
struct cfi_functions {
	struct cfi_function *all;
	size_t count;
};

/*
 * Of any machine. Returns 0, also when there is no call frame information, -ENOMEM, or -EINVAL and
 * says in e what is wrong with it.
 */
int cfi_functions_read(struct cfi_functions *functions, const struct elf_file *file,
		       struct error *e);
void cfi_functions_free(struct cfi_functions *functions);

/* The function that has an address, or NULL. */
const struct cfi_function *cfi_functions_find(const struct cfi_functions *functions,
					      uint64_t address);

#endif
