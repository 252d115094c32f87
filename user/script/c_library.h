/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SCRIPT_C_LIBRARY_H
#define PROFIL_SCRIPT_C_LIBRARY_H

#include "bpf/context.h"
#include "symbol/elf_file.h"

/* Dynamic symbols of a C library that say where it keeps modules' thread-local variables. */
struct c_library_symbols {
	/* glibc says it to debuggers (libthread_db), since 2.0. */
	uint64_t vector, elements, thread_size;
	/* musl: its own function that finds such a variable, and that it is a C library. */
	uint64_t get_address, get_address_size;
	bool has_start;
};

/* Notes one of them. symbol: defined in the image. */
void c_library_take_symbol(struct c_library_symbols *s, const char *name, const GElf_Sym *symbol);

/* Where a thread's vector of modules is. shift 0: it is no C library, or an unknown one. */
struct context_vector c_library_vector(const struct elf_file *file, GElf_Half machine,
				       const struct c_library_symbols *s);

#endif
