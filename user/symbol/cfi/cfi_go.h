/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_CFI_GO_H
#define PROFIL_SYMBOL_CFI_GO_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_table.h"
#include "symbol/elf_file.h"

/* A function of Go's runtime on x86-64 that calls others on another stack. */
struct cfi_switch {
	uint64_t start; /* ELF virtual address */
	enum unwind_switch kind;
};

#define CFI_SWITCHES_MAX 16

/* Zero-initialised: none. */
struct cfi_switches {
	struct cfi_switch all[CFI_SWITCHES_MAX];
	size_t count;
};

/* Finds these functions in an x86-64 file; none unless it is Go's, with a symbol table. */
void cfi_switches_read(struct cfi_switches *s, struct elf_file *file);

/* The function that starts at an address, or NULL. */
const struct cfi_switch *cfi_switches_find(const struct cfi_switches *s, uint64_t start);

#endif
