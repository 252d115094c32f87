/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_CFI_H
#define PROFIL_SYMBOL_CFI_H

#include <stddef.h>
#include <stdint.h>

#include "capture/unwind/unwind_rows.h"
#include "symbol/elf_file.h"

/*
 * Call frame information: unwinds code without frame pointers, and says where functions begin and
 * end in files without symbols.
 */

/*
 * Reads the rows of an x86-64 or arm64 file in this process, as an unwind_reader; other files have
 * no rows. The caller frees them. Returns 0, or -EINVAL (corrupt, or above a limit), -ENOMEM, or
 * the error of reading the file, and sets e.
 */
int cfi_read(int fd, const char *path, const struct context_wishes *wishes,
	     struct read_budget *budget, struct unwind_rows *rows, struct error *e);

struct cfi_function {
	uint64_t start, limit; /* ELF virtual addresses */
};

/* Sorted, without overlaps. Zero-initialised: none. */
struct cfi_functions {
	struct cfi_function *all;
	size_t count;
};

/*
 * Reads the functions of a file of any machine, of x86-64 also those without call frame
 * information. Returns 0, also if there are none, or -EINVAL (corrupt) or -ENOMEM, and sets e.
 */
int cfi_functions_read(struct cfi_functions *functions, const struct elf_file *file,
		       struct error *e);
void cfi_functions_free(struct cfi_functions *functions);

/* The function around an address, or NULL. */
const struct cfi_function *cfi_functions_find(const struct cfi_functions *functions,
					      uint64_t address);

#endif
